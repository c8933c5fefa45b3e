#include "transforms/Quantize/BalanceKeys.h"

#include "lib/Weights/WeightSpill.h"
#include "lib/Weights/WeightStore.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-quantize-kv";
/// No factor is farther from 1: what f16 and a norm's own numbers bear.
static constexpr double kMost = 256;

namespace {

/// Queries or keys: normalised, then turned or not.
struct Channels {
  RmsNormOp norm;
  RopeOp rope;
};

/// All that reads one layer's cache, and what fills it.
struct Balanced {
  Channels keys;
  SmallVector<Channels> queries;
};

} // namespace

static Channels channelsOf(Value value, int64_t width) {
  Channels found;
  if (!value.hasOneUse())
    return found;
  if ((found.rope = value.getDefiningOp<RopeOp>()))
    value = found.rope.getInput();
  auto norm = value.hasOneUse() ? value.getDefiningOp<RmsNormOp>() : RmsNormOp();
  if (norm && norm.getGamma() && cast<ShapedType>(norm.getGamma().getType()).getDimSize(0) == width)
    found.norm = norm;
  return found;
}

/// Channels that have to share a factor: the number of the first of each pair, itself for those that do not turn.
static std::vector<int64_t> pairsOf(RopeOp rope, int64_t width) {
  std::vector<int64_t> first(static_cast<size_t>(width));
  std::iota(first.begin(), first.end(), 0);
  const int64_t turning = rope ? rope.getRotatedDims() : 0;
  for (int64_t i = 0; i < turning / 2; ++i)
    if (rope.getInterleaved())
      first[size_t(2 * i + 1)] = 2 * i;
    else
      first[size_t(i + turning / 2)] = i;
  return first;
}

/// What fills and what reads the cache of a layer; nothing where one of them is not of this kind.
static std::optional<Balanced> balancedOf(ArrayRef<KVOp> handles) {
  Balanced found;
  KVOp any = handles.front();
  const int64_t width = any.getHandle().getType().getKeyWidth();
  bool filled = false;
  for (KVOp handle : handles)
    for (Operation *user : handle.getHandle().getUsers()) {
      if (auto append = dyn_cast<KVAppendOp>(user)) {
        if (filled)
          return std::nullopt;
        filled = true;
        found.keys = channelsOf(append.getKey(), width);
      } else if (isa<AttentionOp, TreeAttentionOp>(user)) {
        found.queries.push_back(channelsOf(user->getOperand(0), width));
      } else {
        return std::nullopt;
      }
    }
  if (!filled || found.queries.size() != 1 || !found.keys.norm || !found.queries.front().norm)
    return std::nullopt;
  const std::vector<int64_t> pairs = pairsOf(found.keys.rope, width);
  if (pairs != pairsOf(found.queries.front().rope, width))
    return std::nullopt;
  return found;
}

static LogicalResult scaleGamma(RmsNormOp norm, ArrayRef<float> gamma, ArrayRef<double> factors, WeightSpill &spill) {
  std::vector<float> scaled;
  for (auto [number, factor] : llvm::zip_equal(gamma, factors))
    scaled.push_back(float(double(number) * factor));
  OpBuilder builder(norm);
  FailureOr<Value> weight =
      spill.add(builder, norm.getLoc(), weightName(norm.getGamma()) + ".balanced",
                RankedTensorType::get({int64_t(scaled.size())}, builder.getF32Type()), std::as_bytes(std::span(scaled)));
  if (failed(weight))
    return failure();
  replaceWeight(norm.getGammaMutable()[0], *weight);
  return success();
}

static LogicalResult balance(Balanced &site, WeightStore &store) {
  RmsNormOp keys = site.keys.norm, queries = site.queries.front().norm;
  FailureOr<Matrix> k = readMatrix(keys.getGamma(), store, keys), q = readMatrix(queries.getGamma(), store, queries);
  if (failed(k) || failed(q))
    return failure();
  const std::vector<int64_t> first = pairsOf(site.keys.rope, int64_t(k->numbers.size()));
  std::vector<double> ofKeys(first.size(), 0), ofQueries(first.size(), 0), up(first.size()), down(first.size());
  for (auto [c, pair] : llvm::enumerate(first)) {
    ofKeys[size_t(pair)] += double(k->numbers[c]) * double(k->numbers[c]);
    ofQueries[size_t(pair)] += double(q->numbers[c]) * double(q->numbers[c]);
  }
  for (auto [c, pair] : llvm::enumerate(first)) {
    const double key = ofKeys[size_t(pair)], query = ofQueries[size_t(pair)];
    const double factor = key > 0 && query > 0 ? std::clamp(std::pow(query / key, 0.25), 1 / kMost, kMost) : 1;
    up[c] = factor, down[c] = 1 / factor;
  }
  WeightSpill *spill = store.spill(keys);
  return success(spill && succeeded(scaleGamma(keys, k->numbers, up, *spill)) &&
                 succeeded(scaleGamma(queries, q->numbers, down, *spill)));
}

LogicalResult mlir::llm::balanceKeys(ModuleOp module) {
  WeightStore *store = WeightStore::of(module.getContext());
  if (!store)
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    llvm::MapVector<std::pair<StringRef, int64_t>, SmallVector<KVOp>> handles;
    function.walk([&](KVOp handle) { handles[{handle.getCache(), int64_t(handle.getIndex())}].push_back(handle); });
    for (auto &[place, list] : handles)
      if (auto site = balancedOf(list)) {
        if (failed(balance(*site, *store)))
          return failure();
        report(site->keys.norm, kPass, "factors moved from keys to queries");
      }
  }
  return success();
}
