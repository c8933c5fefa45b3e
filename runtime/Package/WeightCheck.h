//===- WeightCheck.h - hashes the weights beside other work
//------------------===//
#pragma once

#include "runtime/Package/Package.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace sprig {

/// Compares every chunk of the weight section with its hash, on threads of its
/// own, while the caller creates pipelines. `wait` has to answer before a
/// result computed from the weights is shown to anyone.
class WeightCheck {
public:
  /// `threads` = 0: hashes inside `wait`, on the caller's thread.
  WeightCheck(std::shared_ptr<const Package> package, unsigned threads);
  /// Stops early.
  ~WeightCheck();

  /// The first damaged chunk, or success. May be called from several threads
  /// and more than once.
  Status wait();

private:
  void work();

  std::shared_ptr<const Package> package;
  std::atomic<uint32_t> next{0};
  std::atomic<uint32_t> firstBad{UINT32_MAX};
  std::atomic<bool> stop{false};
  std::mutex mutex; ///< guards threads
  std::vector<std::thread> threads;
};

} // namespace sprig
