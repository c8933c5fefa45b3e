#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Prune/PruneReport.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/SparseMasks.h"
#include "transforms/Quantize/PackedWeight.h"
#include "transforms/Remarks.h"

#include <cmath>
#include <map>
#include <optional>

namespace mlir::llm {
#define GEN_PASS_DEF_SPARSIFYPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-sparsify";
/// Bits that say: floats, for a quantise step to come.
static constexpr unsigned kFloats = 16;

namespace {

struct SparsifyPass final : llm::impl::SparsifyPassBase<SparsifyPass> {
  using SparsifyPassBase::SparsifyPassBase;

  void runOnOperation() override {
    if (const std::string why = readOptions(); !why.empty()) {
      getOperation().emitError() << kPass << " " << why;
      return signalPassFailure();
    }
    if (failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return run(function); })))
      signalPassFailure();
  }

private:
  std::string readOptions() {
    rule = {};
    if (pattern == "2:4" || pattern == "4:8")
      rule.pattern = pattern == "2:4" ? Sparsity{2, 4} : Sparsity{4, 8};
    else if (StringRef(pattern).getAsDouble(rule.ratio) || !(rule.ratio > 0 && rule.ratio < 1))
      return "expects a pattern 2:4 or 4:8, or a ratio above 0 and below 1, but got '" + pattern + "'";
    if (score != "magnitude" && score != "wanda" && score != "sparsegpt")
      return "expects a score magnitude, wanda or sparsegpt, but got '" + score + "'";
    if (bits != 0 && bits != 4 && bits != 8 && bits != kFloats)
      return "expects 4 or 8 bits, 16 for floats, or 0 for about as many as there were, but got " +
             std::to_string(bits);
    return WeightScheme{4, group, symmetric, rule.pattern}.whyRefused();
  }

  bool wants(Operation *op) const {
    return !productWeights(op).empty() && (head || layerOf(op)) && !staysInFloats(op);
  }

  LogicalResult run(func::FuncOp function) {
    if (score == "magnitude") {
      SmallVector<Operation *> products;
      function.walk([&](Operation *op) {
        if (wants(op))
          products.push_back(op);
      });
      for (Operation *product : products)
        if (failed(sparsifyProduct(product, nullptr)))
          return failure();
      return success();
    }
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations for the score ")
             << score << ": name a text with --calibrate, or take magnitude";
    StatisticsRequest request;
    request.wants = [this](Operation *op) { return wants(op); };
    request.replay = replay;
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                inverses.clear();
                                for (const auto &[product, statistics] : inputs)
                                  if (failed(sparsifyProduct(product, statistics.get())))
                                    return failure();
                                return LayerChange::Rewritten;
                              });
  }

  LogicalResult sparsifyProduct(Operation *product, const InputStatistics *inputs) {
    for (OpOperand *operand : productWeights(product))
      if (!finished.contains(operand) && failed(sparsify(product, *operand, inputs)))
        return failure();
    return success();
  }

  LogicalResult sparsify(Operation *product, OpOperand &operand, const InputStatistics *inputs) {
    const auto type = cast<RankedTensorType>(operand.get().getType());
    const std::string name = weightName(operand.get());
    if (type.getShape().back() % 32 != 0) {
      IRRewriter rewriter(&getContext());
      (void)refuse(rewriter, product, kPass,
                   "rows of " + Twine(type.getShape().back()) + " numbers are not whole units of 32");
      return success();
    }
    FailureOr<Matrix> weight = readMatrix(operand.get(), *store, product);
    if (failed(weight))
      return failure();
    WeightScheme scheme{bitsOf(type), group, symmetric, rule.pattern};
    std::optional<QuantizedRows> rows;
    if (scheme.bits != kFloats)
      rows = QuantizedRows{weight->N, weight->K, std::vector<int8_t>(weight->numbers.size()),
                           std::vector<GroupGrid>(size_t(weight->N * scheme.groups(weight->K)))};
    const bool measures = PruneReport::of(&getContext()) && inputs;
    const Matrix before = measures ? *weight : Matrix();
    if (failed(change(product, scheme, *weight, rows ? &*rows : nullptr, inputs)))
      return failure();
    OpBuilder builder(product);
    FailureOr<Value> value =
        rows ? writePacked(builder, product->getLoc(), *spill, name, type, scheme, *rows)
             : writeLike(builder, product->getLoc(), *spill, name + ".sparse",
                         RankedTensorType::get(type.getShape(), builder.getF16Type()), *weight);
    if (failed(value))
      return failure();
    if (measures)
      record(product, name, before, *weight, scheme, rows ? &*rows : nullptr, *inputs);
    replaceInProducts(product, operand, *value, [this](Operation *op) { return wants(op); }, finished);
    mlir::llm::report(product, kPass,
                      name + (rule.pattern.of ? ", " + pattern.getValue() + " of it stored"
                                              : ": " + pattern.getValue() +
                                                    " of it zero, in blocks that are no smaller for it"));
    return success();
  }

  /// New numbers, or codes for them.
  LogicalResult change(Operation *product, const WeightScheme &scheme, Matrix &weight, QuantizedRows *rows,
                       const InputStatistics *inputs) {
    if (score == "sparsegpt") {
      const InverseFactor *inverse = inverseOf(product, inputs);
      if (!inverse)
        return failure();
      sparseGpt(&getContext(), rule, weight, *inverse, scheme, rows);
      return success();
    }
    std::vector<float> norms;
    for (int64_t k = 0; inputs && k < weight.K; ++k)
      norms.push_back(float(std::sqrt(inputs->meanSquare(k))));
    const KeptNumbers kept = keepLargest(&getContext(), rule, weight, norms);
    for (auto [number, stays] : llvm::zip_equal(weight.numbers, kept))
      if (!stays)
        number = 0;
    if (!rows)
      return success();
    rows->kept = kept;
    forRows(&getContext(), weight.N, 16, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        roundRow(scheme, weight.row(n), /*best=*/true, *rows, n);
    });
    return success();
  }

  const InverseFactor *inverseOf(Operation *product, const InputStatistics *inputs) {
    std::optional<InverseFactor> &inverse = inverses[inputs];
    if (!inverse)
      if (FailureOr<InverseFactor> found =
              invertWithDamping(product, inputs->gram, inputs->width, damping, /*byImportance=*/false);
          succeeded(found))
        inverse = std::move(*found);
    return inverse ? &*inverse : nullptr;
  }

  unsigned bitsOf(RankedTensorType type) const {
    if (bits)
      return bits;
    auto quantised = dyn_cast<QuantizedType>(type.getElementType());
    return quantised && quantised.getCode().bits <= 4 ? 4 : 8;
  }

  void record(Operation *product, StringRef name, const Matrix &before, Matrix &after, const WeightScheme &scheme,
              const QuantizedRows *rows, const InputStatistics &inputs) {
    for (int64_t n = 0; rows && n < after.N; ++n)
      for (int64_t k = 0; k < after.K; ++k)
        after.row(n)[size_t(k)] = rows->value(scheme, n, k);
    SmallVector<int64_t> all;
    for (int64_t k = 0; k < before.K; ++k)
      all.push_back(k);
    const double lost = lostShare(before, inputs.gram, all, after);
    auto layer = product->getParentOfType<LayerOp>();
    const int64_t count = before.N * before.K;
    const double share = rule.pattern.of ? 1 - double(rule.pattern.kept) / rule.pattern.of : rule.ratio;
    PruneReport::of(&getContext())
        ->records.push_back({kPass.str(), ("numbers of " + name).str(), layer ? int64_t(layer.getIndex()) : -1,
                             int64_t(share * double(count)), count, -1, {lost, lost}});
  }

  SparseRule rule;
  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
  llvm::DenseSet<OpOperand *> finished;
  std::map<const InputStatistics *, std::optional<InverseFactor>> inverses; ///< of one layer
};

} // namespace
