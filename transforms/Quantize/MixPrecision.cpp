#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Gptq.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_MIXPRECISIONPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-mix-precision";
static constexpr unsigned kBits[] = {2, 3, 4, 5, 6, 8};
/// Rows of a weight that stand for all: an even choice of about so many.
static constexpr int64_t kRows = 64;

namespace {

/// Products of one input, which have one width so that they can be joined.
struct Unit {
  SmallVector<LinearOp> products;
  int64_t numbers = 0;
  double errors[std::size(kBits)] = {}; ///< of the output, as a share of it
  size_t choice = 0;
};

struct MixPrecisionPass final : llm::impl::MixPrecisionPassBase<MixPrecisionPass> {
  using MixPrecisionPassBase::MixPrecisionPassBase;

  void runOnOperation() override {
    if (!(bits >= kBits[0] && bits <= 8)) {
      getOperation().emitOpError() << kPass << " expects 2 to 8 bits on average, but got " << double(bits);
      return signalPassFailure();
    }
    store = weightStoreOf(getOperation());
    ActivationSource *source = ActivationSource::of(&getContext());
    if (store && !source)
      getOperation().emitOpError("needs activations to tell what matters: name a text with --calibrate");
    if (!store || !source)
      return signalPassFailure();
    StatisticsRequest request;
    request.wants = [](Operation *op) { return isa<LinearOp>(op) && layerOf(op); };
    if (failed(source->statistics(getOperation(), {tokens, window}, request,
                                  [&](Operation *, const LayerStatistics &inputs) { return measure(inputs); })))
      return signalPassFailure();
    choose();
    for (const Unit &unit : units)
      for (LinearOp product : unit.products) {
        product->setAttr("llm.bits", IntegerAttr::get(IntegerType::get(&getContext(), 64), kBits[unit.choice]));
        report(product, kPass, Twine(kBits[unit.choice]) + " bits");
      }
  }

private:
  FailureOr<LayerChange> measure(const LayerStatistics &inputs) {
    llvm::MapVector<const InputStatistics *, Unit> byInput;
    for (const auto &[product, statistics] : inputs) {
      auto linear = cast<LinearOp>(product);
      FailureOr<Matrix> weight = readMatrix(linear.getWeight(), *store, linear);
      if (failed(weight))
        return failure();
      Unit &unit = byInput[statistics.get()];
      unit.products.push_back(linear);
      unit.numbers += weight->N * weight->K;
      add(unit, sample(*weight), *statistics);
    }
    for (auto &[statistics, unit] : byInput)
      units.push_back(std::move(unit));
    return LayerChange::None;
  }

  static Matrix sample(const Matrix &all) {
    const int64_t step = std::max<int64_t>(1, all.N / kRows);
    Matrix some{(all.N + step - 1) / step, all.K, {}};
    for (int64_t n = 0; n < all.N; n += step)
      some.numbers.insert(some.numbers.end(), all.row(n).begin(), all.row(n).end());
    return some;
  }

  void add(Unit &unit, const Matrix &weight, const InputStatistics &x) {
    for (auto [i, width] : llvm::enumerate(kBits)) {
      const WeightScheme scheme{width, group, true};
      QuantizedRows rows{weight.N, weight.K, std::vector<int8_t>(weight.numbers.size()),
                         std::vector<GroupGrid>(size_t(weight.N * scheme.groups(weight.K)))};
      // Codes of zero lose all: the energy of the output.
      const double all = outputError(&getContext(), scheme, weight, rows, x.gram);
      for (int64_t n = 0; n < weight.N; ++n)
        roundRow(scheme, weight.row(n), /*best=*/true, rows, n);
      unit.errors[i] += all > 0 ? outputError(&getContext(), scheme, weight, rows, x.gram) / all : 0;
    }
  }

  /// The cheapest step of all again and again, while the average allows it.
  void choose() {
    double numbers = 0, spent = 0;
    for (const Unit &unit : units)
      numbers += double(unit.numbers), spent += double(unit.numbers) * kBits[0];
    while (true) {
      Unit *best = nullptr;
      double gain = 0;
      for (Unit &unit : units) {
        if (unit.choice + 1 == std::size(kBits))
          continue;
        const double cost = double(unit.numbers) * (kBits[unit.choice + 1] - kBits[unit.choice]);
        const double less = (unit.errors[unit.choice] - unit.errors[unit.choice + 1]) / cost;
        if (spent + cost <= double(bits) * numbers && less > gain)
          best = &unit, gain = less;
      }
      if (!best)
        return;
      spent += double(best->numbers) * (kBits[best->choice + 1] - kBits[best->choice]);
      ++best->choice;
    }
  }

  WeightStore *store = nullptr;
  std::vector<Unit> units;
};

} // namespace
