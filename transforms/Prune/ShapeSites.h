// Where a search for a shape can take channels or heads, what each unit costs and what it says.
#ifndef SPRIG_TRANSFORMS_PRUNE_SHAPESITES_H
#define SPRIG_TRANSFORMS_PRUNE_SHAPESITES_H

#include "transforms/Prune/SiteKinds.h"

#include <vector>

namespace mlir::llm {

struct ShapeSite {
  SiteKind kind;
  int64_t index; ///< among the sites of this kind in the function
  int64_t size, unit, parts; ///< as SiteSize has them
  Operation *at;
  ChannelGroup *group = nullptr; ///< whose columns say what its channels are worth; null where nothing can go
  double cost = 0;               ///< bytes of a unit: of weights, or of a token's keys and values
  std::vector<double> losses;    ///< of taking one unit more, ascending

  /// What is left where all whole units but one go.
  int64_t least() const { return size % unit ? size % unit : unit; }
};

/// How many channels of each site stay.
using Shape = std::vector<int64_t>;

/// All sites of these kinds, in program order by kind. `kvBytes`: units cost what they take of a token's cache, not of the
/// weights.
FailureOr<std::vector<ShapeSite>> shapeSites(func::FuncOp function, const ChannelGroups &groups, ArrayRef<SiteKind> kinds,
                                             int64_t unit, bool kvBytes);

/// Fills in what each unit says over the text: the squares of the columns that read it times what meets them. Each token
/// counts by the residual that its layer leaves, so that the few of huge activations (the first of a text above all) do
/// not outweigh the rest.
LogicalResult measureLosses(func::FuncOp function, const PruneSettings &settings, ActivationSource &source,
                            std::vector<ShapeSite> &sites);

/// Bytes of a token's keys and values in all caches of a function.
double kvBytesOf(func::FuncOp function);

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_SHAPESITES_H
