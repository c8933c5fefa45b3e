#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Awq.h"
#include "transforms/Quantize/Codebook.h"
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

/// Each row has a book: of more entries it would outgrow what it saves.
static constexpr unsigned kMostBookBits = 4;

namespace {

struct QuantizeWeightsPass final : llm::impl::QuantizeWeightsPassBase<QuantizeWeightsPass> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  void runOnOperation() override {
    const std::string why = readOptions();
    if (!why.empty()) {
      getOperation().emitError() << kPass << " " << why;
      return signalPassFailure();
    }
    if (failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return quantize(function); })))
      return signalPassFailure();
    if (!report.empty() && failed(writeReport()))
      return signalPassFailure();
  }

private:
  std::string readOptions() {
    scheme = {bits, group, symmetric};
    if (method != "rtn" && method != "mse" && method != "gptq" && method != "awq" && method != "codebook")
      return "expects a method rtn, mse, gptq, awq or codebook, but got '" + method + "'";
    if (method == "codebook" && bits > kMostBookBits)
      return "expects 2 to " + std::to_string(kMostBookBits) + " bits for codebooks, but got " + std::to_string(bits);
    return scheme.whyRefused();
  }

  bool wants(Operation *op) const {
    return !productWeights(op).empty() && (head || layerOf(op)) && !staysInFloats(op);
  }

  LogicalResult quantize(func::FuncOp function) {
    // Codebooks are of all columns alike where no text says which matter.
    if (method == "gptq" || method == "awq" || (method == "codebook" && ActivationSource::of(&getContext())))
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
    request.gram = method != "codebook";
    request.replay = replay;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *layer, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                if (failed(quantizeLayer(layer, inputs)))
                                  return failure();
                                return LayerChange::Rewritten;
                              });
  }

  LogicalResult quantizeLayer(Operation *layer, const LayerStatistics &inputs) {
    scales.clear();
    if (method == "awq") {
      FailureOr<ColumnScales> found = scaleForRounding(layer, inputs, scheme, *store, *spill);
      if (failed(found))
        return failure();
      scales = std::move(*found);
    }
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
    const bool sparse = method != "codebook" && (scheme.bits == 4 || scheme.bits == 8);
    scheme.sparsity = sparse ? sparsityOf(*weight) : Sparsity();
    kept = scheme.sparsity.of ? keptNumbers(*weight, scheme.sparsity) : KeptNumbers();
    FailureOr<Value> value = writeRounded(product, name, type, *weight, inputs);
    if (failed(value))
      return failure();
    replaceInProducts(product, operand, *value, [this](Operation *op) { return wants(op); }, finished);
    product->removeAttr("llm.bits");
    mlir::llm::report(product, kPass, name);
    return success();
  }

  /// The numbers of a weight rounded, as a new one.
  FailureOr<Value> writeRounded(Operation *product, StringRef name, RankedTensorType type, const Matrix &weight,
                                const InputStatistics *inputs) {
    OpBuilder builder(product);
    if (method == "codebook") {
      const CodebookRows rows = learnCodebooks(&getContext(), scheme.bits, weight,
                                               inputs ? ArrayRef<double>(inputs->squares) : ArrayRef<double>());
      if (!report.empty())
        note(name, weight, weightError(weight, [&](int64_t n, int64_t k) { return rows.value(n, k); }));
      return writePacked(builder, product->getLoc(), *spill, name, type, rows);
    }
    FailureOr<QuantizedRows> rows = round(product, weight, inputs);
    if (failed(rows))
      return failure();
    if (!report.empty())
      note(product, name, weight, *rows, inputs);
    return writePacked(builder, product->getLoc(), *spill, name, type, scheme, *rows);
  }

  FailureOr<QuantizedRows> round(Operation *product, const Matrix &weight, const InputStatistics *inputs) {
    if (method == "awq" && inputs && !inputs->gram.empty())
      return roundFor(weight, momentsOf(product, *inputs));
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

  /// Of the inputs that a product reads now: AWQ has divided some by its scales.
  std::vector<float> momentsOf(Operation *product, const InputStatistics &inputs) const {
    auto found = scales.find(product);
    return found == scales.end() ? inputs.gram : scaledMoments(inputs.gram, found->second);
  }

  QuantizedRows roundFor(const Matrix &weight, ArrayRef<float> moments) {
    QuantizedRows rows{weight.N, weight.K, std::vector<int8_t>(weight.numbers.size()),
                       std::vector<GroupGrid>(size_t(weight.N * scheme.groups(weight.K))), kept};
    forRows(&getContext(), weight.N, 16, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        roundRowFor(scheme, weight.row(n), moments, rows, n);
    });
    return rows;
  }

  static double weightError(const Matrix &weight, llvm::function_ref<float(int64_t, int64_t)> rounded) {
    double lost = 0, all = 0;
    for (int64_t n = 0; n < weight.N; ++n)
      for (int64_t k = 0; k < weight.K; ++k) {
        const double w = weight.row(n)[size_t(k)], error = w - rounded(n, k);
        lost += error * error, all += w * w;
      }
    return all == 0 ? 0 : lost / all;
  }

  double weightError(const Matrix &weight, const QuantizedRows &rows) const {
    return weightError(weight, [&](int64_t n, int64_t k) { return rows.value(scheme, n, k); });
  }

  llvm::json::Object &note(StringRef name, const Matrix &weight, double error) {
    notes.push_back(llvm::json::Object{{"weight", name.str()},
                                       {"rows", weight.N},
                                       {"columns", weight.K},
                                       {"weight_error", error},
                                       {"rtn_weight_error", weightError(weight, roundRows(weight, /*best=*/false))}});
    return *notes.back().getAsObject();
  }

  void note(Operation *product, StringRef name, const Matrix &weight, const QuantizedRows &rows,
            const InputStatistics *inputs) {
    llvm::json::Object &entry = note(name, weight, weightError(weight, rows));
    if (!inputs || inputs->gram.empty())
      return;
    const std::vector<float> moments = momentsOf(product, *inputs);
    entry["output_error"] = outputError(&getContext(), scheme, weight, rows, moments);
    entry["rtn_output_error"] =
        outputError(&getContext(), scheme, weight, roundRows(weight, /*best=*/false), moments);
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
  ColumnScales scales;                                                      ///< of AWQ, in one layer
  llvm::json::Array notes;
};

} // namespace
