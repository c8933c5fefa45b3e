#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Awq.h"
#include "transforms/Quantize/Gptq.h"
#include "transforms/Quantize/KeptNumbers.h"
#include "transforms/Quantize/PackedWeight.h"
#include "transforms/Remarks.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <optional>

namespace mlir::llm {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-quantize-weights";

namespace {

struct QuantizeWeightsPass final : llm::impl::QuantizeWeightsPassBase<QuantizeWeightsPass> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  void runOnOperation() override {
    const std::string why = readOptions();
    if (!why.empty()) {
      getOperation().emitError() << kPass << " " << why;
      return signalPassFailure();
    }
    store = weightStoreOf(getOperation());
    spill = store ? store->spill(getOperation()) : nullptr;
    if (!spill)
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(quantize(function)))
        return signalPassFailure();
    if (!report.empty() && failed(writeReport()))
      return signalPassFailure();
  }

private:
  std::string readOptions() {
    scheme = {bits, group, symmetric};
    if (method != "rtn" && method != "mse" && method != "gptq" && method != "awq")
      return "expects a method rtn, mse, gptq or awq, but got '" + method + "'";
    return scheme.whyRefused();
  }

  bool wants(Operation *op) const {
    return !productWeights(op).empty() && (head || layerOf(op)) && !readsOutliers(op);
  }

  LogicalResult quantize(func::FuncOp function) {
    if (method == "gptq" || method == "awq")
      return calibrate(function);
    SmallVector<Operation *> products;
    function.walk([&](Operation *op) {
      if (wants(op))
        products.push_back(op);
    });
    for (Operation *product : products)
      if (failed(quantizeProduct(product, nullptr)))
        return failure();
    return success();
  }

  LogicalResult calibrate(func::FuncOp function) {
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations for the method ")
             << method << ": name a text with --calibrate";
    StatisticsRequest request;
    request.wants = [this](Operation *op) { return wants(op); };
    request.replay = replay;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                if (failed(quantizeLayer(layer, inputs)))
                                  return failure();
                                return LayerChange::Rewritten;
                              });
  }

  LogicalResult quantizeLayer(Operation *layer, const LayerStatistics &inputs) {
    if (method == "awq" && failed(scaleForRounding(layer, inputs, scheme, *store, *spill)))
      return failure();
    inverses.clear();
    for (const auto &[product, statistics] : inputs)
      if (failed(quantizeProduct(product, statistics.get())))
        return failure();
    return success();
  }

  LogicalResult quantizeProduct(Operation *product, const InputStatistics *inputs) {
    for (OpOperand *operand : productWeights(product))
      if (!finished.contains(operand) && failed(quantizeWeight(product, *operand, inputs)))
        return failure();
    return success();
  }

  LogicalResult quantizeWeight(Operation *product, OpOperand &operand, const InputStatistics *inputs) {
    Value before = operand.get();
    const std::string name = weightName(before);
    // llm-mix-precision has chosen a width for some.
    auto chosen = product->getAttrOfType<IntegerAttr>("llm.bits");
    scheme.bits = chosen ? unsigned(chosen.getInt()) : unsigned(bits);
    if (const std::string why = scheme.whyRefused(); !why.empty())
      return product->emitOpError(why);
    auto type = cast<RankedTensorType>(before.getType());
    if (type.getShape().back() % 32 != 0)
      return product->emitOpError("expects rows of a multiple of 32 numbers to quantise in groups, but \"")
             << name << "\" has " << type.getShape().back();
    FailureOr<Matrix> weight = readMatrix(before, *store, product);
    if (failed(weight))
      return failure();
    // What llm-sparsify (or training) has made of zeros stays so, and is stored without them.
    scheme.sparsity = scheme.bits == 4 || scheme.bits == 8 ? sparsityOf(*weight) : Sparsity();
    kept = scheme.sparsity.of ? keptNumbers(*weight, scheme.sparsity) : KeptNumbers();
    FailureOr<QuantizedRows> rows = round(product, *weight, inputs);
    if (failed(rows))
      return failure();
    if (!report.empty())
      note(name, *weight, *rows, inputs);
    OpBuilder builder(product);
    FailureOr<Value> value = writePacked(builder, product->getLoc(), *spill, name, type, scheme, *rows);
    if (failed(value))
      return failure();
    replaceInProducts(product, operand, *value, [this](Operation *op) { return wants(op); }, finished);
    product->removeAttr("llm.bits");
    mlir::llm::report(product, kPass, name);
    return success();
  }

  FailureOr<QuantizedRows> round(Operation *product, const Matrix &weight, const InputStatistics *inputs) {
    if (method != "gptq")
      return roundRows(weight, /*best=*/method != "rtn");
    std::optional<InverseFactor> &inverse = inverses[inputs];
    if (!inverse) {
      FailureOr<InverseFactor> found = invertWithDamping(product, inputs->gram, inputs->width, damping, actOrder);
      if (failed(found))
        return failure();
      inverse = std::move(*found);
    }
    return gptq(&getContext(), scheme, weight, *inverse, kept);
  }

  QuantizedRows roundRows(const Matrix &weight, bool best) {
    QuantizedRows rows{weight.N, weight.K, std::vector<int8_t>(weight.numbers.size()),
                       std::vector<GroupGrid>(size_t(weight.N * scheme.groups(weight.K))), kept};
    forRows(&getContext(), weight.N, 16, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        roundRow(scheme, weight.row(n), best, rows, n);
    });
    return rows;
  }

  double weightError(const Matrix &weight, const QuantizedRows &rows) {
    double lost = 0, all = 0;
    for (int64_t n = 0; n < weight.N; ++n)
      for (int64_t k = 0; k < weight.K; ++k) {
        const double w = weight.row(n)[size_t(k)], error = w - rows.value(scheme, n, k);
        lost += error * error, all += w * w;
      }
    return all == 0 ? 0 : lost / all;
  }

  void note(StringRef name, const Matrix &weight, const QuantizedRows &rows, const InputStatistics *inputs) {
    const QuantizedRows plain = roundRows(weight, /*best=*/false);
    llvm::json::Object entry{{"weight", name.str()},
                             {"rows", weight.N},
                             {"columns", weight.K},
                             {"weight_error", weightError(weight, rows)},
                             {"rtn_weight_error", weightError(weight, plain)}};
    // AWQ's weights meet inputs that were divided by its scales, which these moments are not.
    if (inputs && !inputs->gram.empty() && method != "awq") {
      entry["output_error"] = outputError(&getContext(), scheme, weight, rows, inputs->gram);
      entry["rtn_output_error"] = outputError(&getContext(), scheme, weight, plain, inputs->gram);
    }
    notes.push_back(std::move(entry));
  }

  LogicalResult writeReport() {
    std::error_code code;
    llvm::raw_fd_ostream file(report, code);
    if (code)
      return getOperation().emitError() << "cannot write '" << report << "': " << code.message();
    file << llvm::json::Value(std::move(notes)) << '\n';
    return success();
  }

  WeightScheme scheme;
  KeptNumbers kept; ///< of the weight at hand
  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
  llvm::DenseSet<OpOperand *> finished;
  std::map<const InputStatistics *, std::optional<InverseFactor>> inverses; ///< of one layer
  llvm::json::Array notes;
};

} // namespace
