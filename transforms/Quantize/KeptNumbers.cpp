#include "transforms/Quantize/KeptNumbers.h"

#include "lib/Quant/Affine.h"

using namespace mlir;
using namespace mlir::llm;

static bool holds(const Matrix &weight, Sparsity sparsity) {
  for (size_t begin = 0; begin < weight.numbers.size(); begin += sparsity.of) {
    unsigned kept = 0;
    for (size_t i = begin; i < begin + sparsity.of; ++i)
      kept += weight.numbers[i] != 0;
    if (kept > sparsity.kept)
      return false;
  }
  return true;
}

Sparsity mlir::llm::sparsityOf(const Matrix &weight) {
  if (weight.K % sprig::quant::kAffineUnit == 0)
    for (Sparsity sparsity : {Sparsity{2, 4}, Sparsity{4, 8}})
      if (holds(weight, sparsity))
        return sparsity;
  return {};
}

KeptNumbers mlir::llm::keptNumbers(const Matrix &weight, Sparsity sparsity) {
  KeptNumbers kept(weight.numbers.size(), 0);
  for (size_t begin = 0; begin < kept.size(); begin += sparsity.of) {
    unsigned left = sparsity.kept;
    for (bool zeros : {false, true})
      for (size_t i = begin; i < begin + sparsity.of && left; ++i)
        if ((weight.numbers[i] == 0) == zeros)
          kept[i] = 1, --left;
  }
  return kept;
}
