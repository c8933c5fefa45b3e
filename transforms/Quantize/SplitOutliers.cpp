#include "lib/Calibration/ActivationSource.h"
#include "lib/Quant/Half.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/PackedWeight.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_SPLITOUTLIERSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-split-outliers";

namespace {

struct SplitOutliersPass final : llm::impl::SplitOutliersPassBase<SplitOutliersPass> {
  using SplitOutliersPassBase::SplitOutliersPassBase;

  void runOnOperation() override {
    if (!(threshold > 0)) {
      getOperation().emitError() << kPass << " expects a threshold above 0, but got " << double(threshold);
      return signalPassFailure();
    }
    if (failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return split(function); })))
      signalPassFailure();
  }

private:
  static bool isPlain(LinearOp linear) {
    return cast<ShapedType>(linear.getWeight().getType()).getRank() == 2 &&
           cast<ShapedType>(linear.getInput().getType()).getRank() == 2 && !linear.getGamma() && !linear.getRowScale();
  }

  LogicalResult split(func::FuncOp function) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to find outliers: name a text with --calibrate");
    StatisticsRequest request;
    request.wants = [](Operation *op) {
      auto linear = dyn_cast<LinearOp>(op);
      return linear && layerOf(op) && isPlain(linear);
    };
    request.gram = false;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                for (const auto &[product, statistics] : inputs)
                                  if (failed(split(cast<LinearOp>(product), *statistics)))
                                    return failure();
                                return LayerChange::Rewritten;
                              });
  }

  /// linear(x, w) ==> linear(x without outliers, w) + linear(outliers of x, their columns of w)
  LogicalResult split(LinearOp linear, const InputStatistics &inputs) {
    std::vector<double> mask;
    std::vector<int32_t> columns;
    for (auto [k, most] : llvm::enumerate(inputs.largest)) {
      const bool outlier = double(most) > threshold;
      mask.push_back(outlier ? 0 : 1);
      if (outlier)
        columns.push_back(int32_t(k));
    }
    if (columns.empty())
      return success();
    OpBuilder builder(linear);
    const Location loc = linear.getLoc();
    const std::string name = weightName(linear.getWeight());
    FailureOr<Value> factors = writeVector(builder, loc, *spill, name + ".regular", mask);
    FailureOr<Value> index = spill->add(builder, loc, name + ".outliers",
                                        RankedTensorType::get({int64_t(columns.size())}, builder.getI32Type()),
                                        std::as_bytes(std::span(columns)));
    if (failed(factors) || failed(index))
      return failure();
    FailureOr<Value> partWeight = columnsOf(linear, name, columns);
    if (failed(partWeight))
      return failure();
    Value x = linear.getInput();
    Value part = GatherOp::create(builder, loc, x, *index, 1);
    Value side = LinearOp::create(builder, loc, linear.getType(), part, *partWeight, /*bias=*/Value(), linear.getResidual());
    linear.getInputMutable().set(ScaleAxisOp::create(builder, loc, x.getType(), x, *factors, 1));
    linear.getResidualMutable().assign(side);
    report(linear, kPass, Twine(columns.size()) + " of " + Twine(mask.size()) + " columns apart");
    return success();
  }

  /// Some columns of a product's weight as a new one, in f16.
  FailureOr<Value> columnsOf(LinearOp linear, const std::string &name, ArrayRef<int32_t> columns) {
    FailureOr<Matrix> weight = readMatrix(linear.getWeight(), *store, linear);
    if (failed(weight))
      return failure();
    std::vector<uint16_t> halves;
    for (int64_t n = 0; n < weight->N; ++n)
      for (int32_t column : columns)
        halves.push_back(sprig::quant::floatToHalf(weight->row(n)[size_t(column)]));
    OpBuilder builder(linear);
    return spill->add(builder, linear.getLoc(), name + ".columns",
                      RankedTensorType::get({weight->N, int64_t(columns.size())}, builder.getF16Type()),
                      std::as_bytes(std::span(halves)));
  }

  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
};

} // namespace
