// What attention of integers (`llm.attention … integers`) reads.
#ifndef SPRIG_DIALECTS_LLM_INTEGERATTENTION_H
#define SPRIG_DIALECTS_LLM_INTEGERATTENTION_H

#include "dialects/LLM/LLM.h"
#include "dialects/LLM/WeightBlock.h"

namespace mlir::llm {

/// What its keys and values are, and what it makes of queries: 8-bit integers with a scale a head.
inline QuantizedType integerHead(MLIRContext *context) {
  return QuantizedType::get(context, QuantCode::signedInt(8), {QuantLevel::scaled(kWholeRow, ScaleType::f32())});
}

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_INTEGERATTENTION_H
