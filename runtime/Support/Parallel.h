//===- Parallel.h - a few threads over independent items
//---------------------===//
#pragma once

#include <cstddef>
#include <functional>

namespace sprig {

/// Threads that are worth starting here: at least 1, at most 16.
unsigned usefulThreads();

/// Calls `body(i)` for every i < count, on up to `threads` threads (the caller
/// is one of them), in no particular order; returns when all are done. Bodies
/// must not throw. Runs on fewer threads where the system refuses to start
/// more.
void parallelFor(size_t count, unsigned threads,
                 const std::function<void(size_t)> &body);

} // namespace sprig
