#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/InputScales.h"
#include "transforms/Remarks.h"
#include <cmath>

namespace mlir::llm {
#define GEN_PASS_DEF_SMOOTHPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-smooth";

namespace {

struct SmoothPass final : llm::impl::SmoothPassBase<SmoothPass> {
  using SmoothPassBase::SmoothPassBase;

  void runOnOperation() override {
    if (!(alpha >= 0 && alpha <= 1)) {
      getOperation().emitError() << kPass << " expects an alpha from 0 to 1, but got " << double(alpha);
      return signalPassFailure();
    }
    if (failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return smooth(function); })))
      signalPassFailure();
  }

private:
  LogicalResult smooth(func::FuncOp function) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to be smoothed: name a text with --calibrate");
    StatisticsRequest request;
    request.wants = [](Operation *op) { return isa<LinearOp>(op) && layerOf(op); };
    request.gram = false;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                for (ScalableInput &input : scalableInputs(layer))
                                  if (failed(smooth(input, inputs)))
                                    return failure();
                                return LayerChange::Rewritten;
                              });
  }

  /// s_j = max|x_j|^α / max|w_j|^(1 - α), over all that share a factor.
  LogicalResult smooth(ScalableInput &input, const LayerStatistics &statistics) {
    auto found = statistics.find(input.products.front());
    if (found == statistics.end())
      return success();
    std::vector<double> x(size_t(input.factors()), 0), w(x.size(), 0);
    for (auto [k, most] : llvm::enumerate(found->second->largest)) {
      double &known = x[size_t(input.factorOf(int64_t(k)))];
      known = std::max<double>(known, most);
    }
    for (LinearOp product : input.products) {
      FailureOr<Matrix> weight = readMatrix(product.getWeight(), *store, product);
      if (failed(weight))
        return failure();
      for (int64_t n = 0; n < weight->N; ++n)
        for (int64_t k = 0; k < weight->K; ++k) {
          double &known = w[size_t(input.factorOf(k))];
          known = std::max<double>(known, std::fabs(weight->row(n)[size_t(k)]));
        }
    }
    std::vector<double> scales;
    for (auto [most, weight] : llvm::zip(x, w)) {
      // What never meets anything, or has no weight, is left alone.
      const bool both = most > 1e-9 && weight > 1e-9;
      scales.push_back(both ? std::clamp(std::pow(most, alpha) / std::pow(weight, 1 - alpha), 1e-4, 1e4) : 1.0);
    }
    report(input.products.front(), kPass, "scales moved into the producer of the input");
    return scaleInput(input, scales, *spill);
  }

  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
};

} // namespace
