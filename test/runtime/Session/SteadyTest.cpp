//===- SteadyTest.cpp - the decode loop asks the host for no memory
//---------------===//
#include "../Tiny/CountedAllocations.h"
#include "../Tiny/DeviceTest.h"

using namespace sprig;
using namespace sprig::test;

namespace {

class SteadyTest : public DeviceTest {};

TEST_F(SteadyTest, DecodingAllocatesNothing) {
  ModelOptions options;
  options.cacheFolder = std::string();
  Result<std::shared_ptr<Model>> opened =
      Model::open(tinyPackage("steady"), options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Result<std::unique_ptr<Session>> session = Session::create(*opened, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<uint32_t> tokens = {1, 2, 3};
  ASSERT_OK((*session)->start(tokens.data(), tokens.size(), 40));
  ASSERT_TRUE((*session)->next().ok());
  size_t before = allocations;
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE((*session)->next().ok());
  EXPECT_EQ(allocations - before, 0u);
}

} // namespace
