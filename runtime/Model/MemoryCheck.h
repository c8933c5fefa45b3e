//===- MemoryCheck.h - does a model fit, and if not, what would?
//------------------------===//
#pragma once

#include "runtime/Package/MemoryPlan.h"
#include "runtime/Support/Status.h"

#include <string>

namespace sprig {

/// What is about to be allocated, and where.
struct MemoryNeed {
  uint64_t weights = 0;   ///< 0: in place, or there already
  uint64_t available = 0; ///< for all of it
  std::string device;     ///< for messages
};

/// OutOfMemory where `need.weights` and one session of `target` are more than
/// what is available: the message says how much is missing, and which context
/// or numbers of the cache would fit.
Status checkMemory(const format::Target &target, const format::Model &model,
                   const MemoryNeed &need);

} // namespace sprig
