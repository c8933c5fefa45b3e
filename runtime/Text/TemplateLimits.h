//===- TemplateLimits.h - what a chat template may spend -----------------===//
#pragma once

#include <cstdint>

namespace sprig {

/// A template comes with a model, from anyone. One that passes a limit is
/// refused with the place where it did.
struct TemplateLimits {
  uint64_t source = uint64_t(1) << 20;  // bytes of the template
  uint64_t steps = 2'000'000;           // evaluations and elements looked at
  uint64_t bytes = uint64_t(256) << 20; // made in all, whether kept or not
  uint64_t output = uint64_t(16) << 20; // bytes of the rendered text
  uint32_t depth = 120;                 // of the source, and of the data
  uint32_t calls = 400; // of evaluation; about 1 KiB of stack each
};

} // namespace sprig
