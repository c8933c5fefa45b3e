//===- SteadyTest.cpp - the decode loop asks the host for no memory
//---------------===//
#include "../Tiny/DeviceTest.h"

#include <cstdlib>
#include <new>

namespace {
thread_local size_t allocations = 0; // of this thread: drivers have their own
} // namespace

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

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
