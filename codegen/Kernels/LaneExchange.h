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

/// The Walsh-Hadamard transform, without its factor, of runs of `block` numbers that lie in neighbouring lanes, each of
/// which holds `numbers` of them one after another. `lane`: its place among them (the low bits are enough); otherwise as
/// above.
inline void transformLanes(KernelBuilder &b, Values &numbers, int64_t block, Value lane, int64_t lanes, Value &array) {
  const auto pack = int64_t(numbers.size());
  for (int64_t bit = 1; bit < std::min(block, pack); bit *= 2)
    for (int64_t i = 0; i < pack; ++i)
      if (!(i & bit)) {
        Value low = numbers[i], high = numbers[i | bit];
        numbers[i] = b.add(low, high), numbers[i | bit] = b.sub(low, high);
      }
  for (int64_t mask = 1; mask * pack < block; mask *= 2) {
    Values others = exchangeLanes(b, numbers, unsigned(mask), lanes, array);
    Value upper = b.less(b.index(0), b.bitAnd(lane, mask));
    for (auto [number, other] : llvm::zip_equal(numbers, others))
      number = b.select(upper, b.sub(other, number), b.add(number, other));
  }
}

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LANEEXCHANGE_H
