// Numbers of one lane in another: by shuffles where they reach, else through shared memory.
#ifndef SPRIG_CODEGEN_KERNELS_LANEEXCHANGE_H
#define SPRIG_CODEGEN_KERNELS_LANEEXCHANGE_H

#include "codegen/Kernels/KernelBuilder.h"

namespace mlir::llm {

/// The numbers of the lane whose place in the workgroup of `lanes` differs in the bits of `mask`. `array` is shared memory
/// of a number of each lane after another, made when it is first needed; every lane must arrive here.
inline Values exchangeLanes(KernelBuilder &b, const Values &numbers, unsigned mask, int64_t lanes, Value &array) {
  Values others;
  if (b.target().canShuffle() && mask < b.target().subgroupSize) {
    for (Value number : numbers)
      others.push_back(b.shuffleXor(number, mask));
    return others;
  }
  if (!array)
    array = b.shared(numbers[0].getType(), lanes * int64_t(numbers.size()));
  b.barrier();
  for (auto [i, number] : llvm::enumerate(numbers))
    b.store(number, array, b.add(b.localId(), int64_t(i) * lanes));
  b.barrier();
  Value other = b.bitXor(b.localId(), b.index(mask));
  for (size_t i = 0; i < numbers.size(); ++i)
    others.push_back(b.load(array, b.add(other, int64_t(i) * lanes)));
  return others;
}

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LANEEXCHANGE_H
