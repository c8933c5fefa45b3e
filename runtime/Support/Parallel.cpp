#include "runtime/Support/Parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace sprig {

unsigned usefulThreads() {
  return std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
}

void parallelFor(size_t count, unsigned threads,
                 const std::function<void(size_t)> &body) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      body(i);
  };
  std::vector<std::thread> helpers;
  size_t wanted = std::min<size_t>(std::max(threads, 1u), count);
  // A system out of threads throws here; the caller's own thread still does
  // all the work.
  try {
    while (helpers.size() + 1 < wanted)
      helpers.emplace_back(work);
  } catch (const std::system_error &) {
    wanted = helpers.size() + 1;
  }
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

} // namespace sprig
