// What the pruning passes did, site by site, for a page that shows it.
#ifndef SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H
#define SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H

#include "mlir/IR/MLIRContext.h"
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace mlir::llm {

/// Share of the output of the products behind what went, over the calibration text, that is lost: as it is, and after the
/// fit. -1: not measured.
struct LostShares {
  double before = -1, after = -1;
  /// The worst of what was and of these.
  void add(double asItIs, double fitted) {
    before = std::max(before, asItIs), after = std::max(after, fitted);
  }
};

struct PruneRecord {
  std::string pass, what;  ///< "llm-prune-ffn", "channels"
  int64_t layer = -1;      ///< index, or -1 for what belongs to no layer
  int64_t removed = 0, of = 0;
  double score = -1;       ///< share of the sum of scores that went; -1: there were none
  LostShares lost;
};

/// A shape that a search tried out, or a part of one.
struct TriedShape {
  std::string what;
  double divergence = 0; ///< of guesses from the model's own, nats a token
};

/// Collects records of all passes that run in a context.
class PruneReport {
public:
  std::vector<PruneRecord> records;
  std::vector<TriedShape> tried;

  /// The report of a context, or null where no tool wants one.
  static PruneReport *of(MLIRContext *context);
  static void attach(MLIRContext *context, std::shared_ptr<PruneReport> report);
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H
