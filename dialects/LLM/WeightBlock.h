// How the weights of attention of integers are rounded; needs no MLIR.
#ifndef SPRIG_DIALECTS_LLM_WEIGHTBLOCK_H
#define SPRIG_DIALECTS_LLM_WEIGHTBLOCK_H

#include <cstdint>

namespace mlir::llm {

/// Positions, from a multiple of it on, whose weights share a scale. No more than the narrowest subgroup has lanes: so
/// codes are the same on all devices, however much of a context they look at together.
inline constexpr int64_t kWeightBlock = 8;

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_WEIGHTBLOCK_H
