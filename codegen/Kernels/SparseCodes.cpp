#include "codegen/Kernels/SparseCodes.h"

using sprig::quant::AffineFormat;
using sprig::quant::SparseLanes;

namespace mlir::llm {

CodePlace placeOfSparse(const AffineFormat &affine, unsigned k) {
  const SparseLanes lanes(affine);
  const unsigned index = k / affine.among;
  return {index % lanes.sets * affine.among + k % affine.among, index / lanes.sets * lanes.bits};
}

/// mask ? a : b, bit by bit.
static Value selectBits(KernelBuilder &b, Value mask, Value a, Value other) {
  return b.bitXor(b.bitAnd(b.bitXor(a, other), mask), other);
}

/// The words of the numbers 0, 1, … of all neighbours, from those of the ranks.
static Values spread(KernelBuilder &b, ArrayRef<Value> ranks, ArrayRef<Value> masks) {
  const size_t of = masks.size(), kept = ranks.size();
  Values numbers(of, Value());
  // The first `kept` numbers count ranks from the front, the others from the back.
  for (bool back : {false, true}) {
    Values queue(ranks);
    if (back)
      std::reverse(queue.begin(), queue.end());
    for (size_t step = 0; step < kept; ++step) {
      const size_t k = back ? of - 1 - step : step;
      numbers[k] = b.bitAnd(queue[0], masks[k]);
      for (size_t i = 0; i + 1 < kept - step; ++i)
        queue[i] = selectBits(b, masks[k], queue[i + 1], queue[i]);
    }
  }
  return numbers;
}

Values spreadCodes(KernelBuilder &b, const AffineFormat &affine, ArrayRef<Value> words, Value pattern, Value zero) {
  const SparseLanes lanes(affine);
  const unsigned perLane = lanes.bits / affine.bits;
  // One in every lane.
  const int64_t ones = lanes.bits == 4 ? 0x11111111 : 0x01010101;
  Value fill = zero ? b.mul(zero, ones) : Value();
  auto flip = [&](Value word) { return fill ? b.bitXor(word, fill) : word; };
  Values numbers;
  for (unsigned set = 0; set < lanes.sets; ++set) {
    Values ranks, masks;
    for (unsigned rank = 0; rank < affine.kept(); ++rank) {
      Value word = words[rank / perLane * lanes.sets + set];
      if (perLane > 1)
        word = b.bitAnd(b.shr(word, int64_t(rank % perLane * affine.bits)), ones * 15);
      // What is masked away becomes the code of zero by being flipped back.
      ranks.push_back(flip(word));
    }
    for (unsigned place = 0; place < affine.among; ++place) {
      Value kept = b.bitAnd(b.shr(pattern, int64_t(set * affine.among + place)), ones);
      masks.push_back(b.sub(b.shl(kept, int64_t(affine.bits)), kept)); // a shift of 1 in each lane, less itself
    }
    for (Value word : spread(b, ranks, masks))
      numbers.push_back(flip(word));
  }
  return numbers;
}

} // namespace mlir::llm
