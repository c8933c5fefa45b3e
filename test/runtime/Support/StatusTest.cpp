#include "runtime/Support/Status.h"

#include <gtest/gtest.h>
#include <memory>

using namespace sprig;

TEST(Status, SuccessIsTheDefault) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::Ok);
  EXPECT_TRUE(status.within("x").ok());
}

TEST(Status, PrefixNamesTheObject) {
  Status status = Status(StatusCode::Corrupt, "expects 4, but got 5").within("a.sprig");
  EXPECT_FALSE(status);
  EXPECT_EQ(status.message(), "a.sprig: expects 4, but got 5");
  EXPECT_STREQ(statusCodeName(status.code()), "Corrupt");
}

TEST(Status, ResultHoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> good = std::make_unique<int>(7);
  ASSERT_TRUE(good.ok());
  std::unique_ptr<int> taken = std::move(*good);
  EXPECT_EQ(*taken, 7);
  Result<std::unique_ptr<int>> bad(StatusCode::NotFound, "no such file");
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.status().code(), StatusCode::NotFound);
}
