// What the pruning passes did, site by site, for a page that shows it.
#ifndef SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H
#define SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H

#include "mlir/IR/MLIRContext.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::llm {

struct PruneRecord {
  std::string pass, what;  ///< "llm-prune-ffn", "channels"
  int64_t layer = -1;      ///< index, or -1 for what belongs to no layer
  int64_t removed = 0, of = 0;
  double score = -1;       ///< share of the sum of scores that went; -1: there were none
  /// Share of the output of the products behind it, over the calibration text, that went with it: as it is, and after the
  /// fit. -1: not measured.
  double before = -1, after = -1;
};

/// Collects records of all passes that run in a context.
class PruneReport {
public:
  std::vector<PruneRecord> records;

  /// The report of a context, or null where no tool wants one.
  static PruneReport *of(MLIRContext *context);
  static void attach(MLIRContext *context, std::shared_ptr<PruneReport> report);
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_PRUNEREPORT_H
