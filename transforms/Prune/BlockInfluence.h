// How much each layer changes what flows through it.
#ifndef SPRIG_TRANSFORMS_PRUNE_BLOCKINFLUENCE_H
#define SPRIG_TRANSFORMS_PRUNE_BLOCKINFLUENCE_H

#include "dialects/LLM/LLM.h"
#include "lib/Calibration/ActivationSource.h"
#include <cmath>
#include <map>

namespace mlir::llm {

/// Block influence, 1 - E cos(x, layer(x)) (ShortGPT, arXiv 2403.03853).
class BlockInfluence final : public ActivationVisitor {
public:
  bool wants(Operation *op) override { return isa<LayerOp>(op); }
  LogicalResult visit(Operation *op, int64_t, const ActivationRows &input, const ActivationRows &output) override {
    auto &[sum, rows] = sums[op];
    for (int64_t t = 0; t < input.rows; ++t) {
      double dot = 0, a = 0, b = 0;
      for (auto [x, y] : llvm::zip(input.row(t), output.row(t)))
        dot += double(x) * y, a += double(x) * x, b += double(y) * y;
      sum += 1 - dot / std::sqrt(std::max(a * b, 1e-300));
      ++rows;
    }
    return success();
  }
  double of(Operation *layer) const {
    auto found = sums.find(layer);
    return found == sums.end() ? 0 : found->second.first / double(found->second.second);
  }

private:
  std::map<Operation *, std::pair<double, int64_t>> sums;
};

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PRUNE_BLOCKINFLUENCE_H
