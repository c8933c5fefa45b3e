// One head in the place of several: the linear maps that say least wrong of their keys or values.
#ifndef SPRIG_TRANSFORMS_PRUNE_HEADBASIS_H
#define SPRIG_TRANSFORMS_PRUNE_HEADBASIS_H

#include "mlir/Support/LLVM.h"

#include <Eigen/Core>
#include <optional>
#include <vector>

namespace mlir::llm {

/// z = Σ_g into[g] · x_g, and x_g ≈ from[g] · z, of n heads x_g of width E.
struct HeadBasis {
  std::vector<Eigen::MatrixXd> into, from; ///< [E, E] each
  double lost = 0;                         ///< share of the weighted energy of all x_g that is not in z
};

/// The best there is by least squares: principal directions of the heads together.
///   moments: E[x xᵀ] of all heads one after another, [nE, nE]
///   weights: what an error of each head is measured by, [E, E], positive semidefinite
///   pairs:   channels that a rotation by position turns together. A map of these must commute with it, so each is one
///            complex number and maps are complex factors; all other channels mix freely.
/// None where the eigenvectors cannot be found.
std::optional<HeadBasis> mergeHeads(const Eigen::MatrixXd &moments, ArrayRef<Eigen::MatrixXd> weights,
                                    ArrayRef<std::pair<int64_t, int64_t>> pairs);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_HEADBASIS_H
