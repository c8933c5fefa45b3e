#include "lib/Calibration/StatisticsCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;

namespace {
class StatisticsCacheTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-statistics", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error))
      names.push_back(it->path());
    return names;
  }
  SmallString<128> folder;
};

std::shared_ptr<InputStatistics> sample() {
  auto one = std::make_shared<InputStatistics>();
  one->rows = 3, one->width = 2;
  one->largest = {1, 2}, one->sums = {-1, 4}, one->magnitudes = {3, 4}, one->squares = {5, 6};
  one->gram = {5, 1, 1, 6};
  return one;
}
} // namespace

TEST_F(StatisticsCacheTest, KeepsWhatItWasGiven) {
  StatisticsCache cache(folder, 42);
  EXPECT_FALSE(cache.load(0));
  cache.store(0, {sample(), std::make_shared<InputStatistics>()});
  const auto loaded = StatisticsCache(folder, 42).load(0);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ((*loaded)[0].rows, 3);
  EXPECT_EQ((*loaded)[0].largest, sample()->largest);
  EXPECT_EQ((*loaded)[0].sums, sample()->sums);
  EXPECT_EQ((*loaded)[0].squares, sample()->squares);
  EXPECT_EQ((*loaded)[0].gram, sample()->gram);
  EXPECT_EQ((*loaded)[0].meanSquare(1), 2);
  EXPECT_FALSE(cache.load(1));
  EXPECT_FALSE(StatisticsCache(folder, 43).load(0));
}

TEST_F(StatisticsCacheTest, DamagedFilesAreAbsent) {
  StatisticsCache cache(folder, 1);
  cache.store(0, {sample()});
  ASSERT_EQ(files().size(), 1u);
  const std::string path = files()[0];
  const std::string whole = (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  for (size_t at : {size_t(0), size_t(12), whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << damaged;
    EXPECT_FALSE(cache.load(0)) << "byte " << at;
    llvm::raw_fd_ostream(path, error) << whole.substr(0, at);
    EXPECT_FALSE(cache.load(0)) << "cut at " << at;
  }
}

TEST_F(StatisticsCacheTest, KeepsOnlyTheLastState) {
  StatisticsCache cache(folder, 1);
  cache.storeState(3, {SavedValue{2, 0, 1, {2, 2}, {1, 2, 3, 4}}});
  cache.storeState(5, {SavedValue{4, 1, 0, {1}, {9}}});
  EXPECT_FALSE(cache.loadState(3));
  const auto state = cache.loadState(5);
  ASSERT_TRUE(state);
  ASSERT_EQ(state->size(), 1u);
  EXPECT_EQ((*state)[0].op, 4);
  EXPECT_EQ((*state)[0].result, 1);
  EXPECT_EQ((*state)[0].numbers, (std::vector<float>{9}));
  cache.dropState();
  EXPECT_FALSE(cache.loadState(5));
  EXPECT_TRUE(files().empty());
}

TEST_F(StatisticsCacheTest, NoFolderCachesNothing) {
  StatisticsCache cache("", 1);
  cache.store(0, {sample()});
  cache.storeState(0, {});
  EXPECT_FALSE(cache.load(0));
  EXPECT_FALSE(cache.loadState(0));
  EXPECT_TRUE(files().empty());
}
