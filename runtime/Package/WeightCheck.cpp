#include "runtime/Package/WeightCheck.h"
#include "runtime/Support/Strings.h"

#include <system_error>
#include <xxhash.h>

namespace sprig {

WeightCheck::WeightCheck(std::shared_ptr<const Package> checked, unsigned count)
    : package(std::move(checked)) {
  // Where the system refuses more threads, `wait` does what is left.
  try {
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([this] { work(); });
  } catch (const std::system_error &) {
    return;
  }
}

WeightCheck::~WeightCheck() {
  stop = true;
  for (std::thread &thread : threads)
    thread.join();
}

void WeightCheck::work() {
  const auto &chunks = *package->metadata().chunks();
  for (uint32_t i; !stop && (i = next.fetch_add(1)) < chunks.size();) {
    const format::Chunk &chunk = *chunks.Get(i);
    if (XXH3_64bits(package->weights() + chunk.offset(), chunk.bytes()) ==
        chunk.hash())
      continue;
    uint32_t seen = firstBad;
    while (i < seen && !firstBad.compare_exchange_weak(seen, i))
      ;
  }
}

Status WeightCheck::wait() {
  work();
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
  }
  uint32_t bad = firstBad;
  if (bad == UINT32_MAX)
    return {};
  const format::Chunk &chunk = *package->metadata().chunks()->Get(bad);
  return {
      StatusCode::Corrupt,
      concat(package->path(), ": the weights at bytes ",
             package->header().weightsOffset + chunk.offset(), " to ",
             package->header().weightsOffset + chunk.offset() + chunk.bytes(),
             " of the file do not match their hash: the file is damaged")};
}

} // namespace sprig
