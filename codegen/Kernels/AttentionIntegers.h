// Codes that attention of integers makes: of queries, and of the weights of a chunk.
#ifndef SPRIG_CODEGEN_KERNELS_ATTENTIONINTEGERS_H
#define SPRIG_CODEGEN_KERNELS_ATTENTIONINTEGERS_H

#include "codegen/Kernels/IntegerRows.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "dialects/LLM/WeightBlock.h"

namespace mlir::llm {

/// The scale of a head whose numbers are spread over `lanes` lanes, of which this one has `numbers`.
inline IntegerScale headScale(KernelBuilder &b, ValueRange numbers, unsigned lanes) {
  Value most = b.constant(0.0f);
  for (Value number : numbers)
    most = b.max(most, b.max(number, b.neg(number)));
  return {b, b.reduce(most, lanes, KernelBuilder::Reduction::Max), 8};
}

/// The code of a number as f32.
inline Value codeOf(KernelBuilder &b, const IntegerScale &scale, Value number) {
  return b.sub(b.unsignedToF32(scale.code(b, number)), b.constant(128.0f));
}

/// Four codes or fewer, as signed bytes of a word.
inline Value packedCodes(KernelBuilder &b, const IntegerScale &scale, ValueRange numbers) {
  Value word;
  for (auto [i, number] : llvm::enumerate(numbers)) {
    Value code = b.shl(b.bitXor(scale.code(b, number), b.constant(0x80u)), int64_t(i) * 8);
    word = word ? b.bitOr(word, code) : code;
  }
  return word;
}

/// The code, as an i32, of what this lane's position weighs: `weight` times the scale of its value. Blocks of
/// kWeightBlock lanes share a scale.
struct RoundedWeight {
  RoundedWeight(KernelBuilder &b, Value seen, Value weight, Value valueScale) {
    // What is not seen may have a scale that is no number.
    Value weighed = b.select(seen, b.mul(weight, valueScale), b.constant(0.0f));
    const IntegerScale rounding(b, b.reduce(weighed, unsigned(kWeightBlock), KernelBuilder::Reduction::Max), 8);
    scale = rounding.scale;
    code = b.floorToI32(b.fma(weighed, rounding.inverse, b.constant(0.5f)));
  }
  Value code, scale;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ATTENTIONINTEGERS_H
