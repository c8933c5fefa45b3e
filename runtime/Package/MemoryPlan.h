//===- MemoryPlan.h - the memory a target takes, before any is allocated
//-----===//
#pragma once

#include "runtime/Format/Package_generated.h"

#include <algorithm>

namespace sprig {

/// Bytes by what they are for. Weights are held once a model, the rest once a
/// session.
struct MemoryPlan {
  uint64_t weights = 0;
  uint64_t kv = 0;
  uint64_t scratch = 0;
  uint64_t logits = 0;
  uint64_t control = 0; ///< control block and history
  uint64_t largest = 0; ///< the largest single buffer

  uint64_t session() const { return kv + scratch + logits + control; }
  uint64_t total() const { return weights + session(); }

  static MemoryPlan of(const format::Target &target) {
    MemoryPlan plan;
    for (const format::Buffer *buffer : *target.buffers()) {
      plan.largest = std::max(plan.largest, buffer->bytes());
      switch (buffer->kind()) {
      case format::BufferKind::weights:
        plan.weights += buffer->bytes();
        break;
      case format::BufferKind::kv:
        plan.kv += buffer->bytes();
        break;
      case format::BufferKind::scratch:
      case format::BufferKind::state:
        plan.scratch += buffer->bytes();
        break;
      case format::BufferKind::logits:
        plan.logits += buffer->bytes();
        break;
      case format::BufferKind::control:
      case format::BufferKind::history:
        plan.control += buffer->bytes();
        break;
      }
    }
    return plan;
  }
};

} // namespace sprig
