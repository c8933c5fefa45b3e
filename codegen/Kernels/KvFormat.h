// How keys and values lie in the cache: [slot][G][E], as f32, or as f16 in
// pairs (even element in the low half of a 32-bit word), so that devices
// without 16-bit types can read them. One word array per layer and side.
#ifndef SPRIG_CODEGEN_KERNELS_KVFORMAT_H
#define SPRIG_CODEGEN_KERNELS_KVFORMAT_H

#include "codegen/Kernels/KernelBuilder.h"

namespace mlir::llm {

struct KvFormat {
  bool half = true;

  static bool known(llvm::StringRef name) {
    return name == "f16" || name == "f32";
  }
  static KvFormat named(llvm::StringRef name) { return {name == "f16"}; }

  unsigned elementsPerWord() const { return half ? 2 : 1; }
  /// Words of one head of one slot.
  int64_t headWords(int64_t headSize) const {
    return headSize / elementsPerWord();
  }
  /// The one or two numbers in a word, in order.
  Values unpack(KernelBuilder &b, Value word) const {
    if (!half)
      return {b.f32FromBits(word)};
    auto [low, high] = b.unpackHalves(word);
    return {low, high};
  }
  Value pack(KernelBuilder &b, ValueRange numbers) const {
    return half ? b.packHalves(numbers[0], numbers[1])
                : b.bitsOfF32(numbers[0]);
  }
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_KVFORMAT_H
