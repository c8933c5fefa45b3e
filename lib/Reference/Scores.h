// How well rows of logits predict, and how far two models are apart. All sums are taken in f64.
#ifndef SPRIG_LIB_REFERENCE_SCORES_H
#define SPRIG_LIB_REFERENCE_SCORES_H

#include "lib/Reference/Math/Workers.h"
#include "lib/Reference/Tensor.h"

namespace mlir::llm::reference {

/// Logits are [rows, V] of f32 or f64.

/// −ln p(target) of each row, in nats.
std::vector<double> negativeLogLikelihoods(Workers &workers, const Tensor &logits, llvm::ArrayRef<int32_t> targets);

/// KL(reference ‖ other) = Σ p ln(p / q) of each row, in nats.
std::vector<double> divergences(Workers &workers, const Tensor &reference, const Tensor &other);

/// The largest element of each row, the first of equals.
std::vector<int32_t> argmaxima(const Tensor &logits);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_SCORES_H
