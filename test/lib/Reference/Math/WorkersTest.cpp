#include "lib/Reference/Math/Workers.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

using mlir::llm::reference::Workers;

TEST(Workers, EveryTaskRunsOnce) {
  Workers workers(3);
  EXPECT_EQ(workers.size(), 3u);
  for (size_t tasks : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> counts(tasks);
    workers.run(tasks, [&](size_t i) { ++counts[i]; });
    for (const auto &count : counts)
      EXPECT_EQ(count, 1);
  }
}

TEST(Workers, RangesCoverWithoutOverlap) {
  Workers workers(2);
  for (size_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(count);
    workers.ranges(count, 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        ++seen[i];
    });
    for (const auto &one : seen)
      EXPECT_EQ(one, 1);
  }
}

TEST(Workers, OneThread) {
  Workers workers(1);
  int sum = 0;
  workers.run(4, [&](size_t i) { sum += int(i); });
  EXPECT_EQ(sum, 6);
}
