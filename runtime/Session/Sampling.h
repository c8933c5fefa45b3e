//===- Sampling.h - how the next token is chosen
//-------------------------------===//
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>

namespace sprig {

/// Parameters of the sampling kernels; the defaults choose the likeliest token.
/// docs/sampling.md defines what each does, and in which order.
struct Sampling {
  uint64_t seed = 0;
  float temperature = 0;     ///< 0: the likeliest token
  uint32_t topK = 0;         ///< 0: all
  float topP = 1;            ///< 1: all
  float minP = 0;            ///< 0: all
  float repeatPenalty = 1;   ///< 1: none
  uint32_t repeatLastN = 64; ///< tokens back that the penalty looks at

  /// InvalidArgument with the name and value of what is out of range.
  Status check() const;
};

} // namespace sprig
