#include "lib/Calibration/ActivationSource.h"
#include "transforms/Passes.h"
#include "transforms/Prune/Attentions.h"
#include "transforms/Prune/HeadBasis.h"
#include "transforms/Prune/Narrow.h"
#include "transforms/Prune/Rewrite.h"
#include "transforms/Prune/SiteKinds.h"
#include "transforms/Remarks.h"

namespace mlir::llm {
#define GEN_PASS_DEF_MERGEKVHEADSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-merge-kv-heads";

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Pairs = SmallVector<std::pair<int64_t, int64_t>>;

namespace {

/// The products around an attention: `from` of queries, keys and values, and the one that reads the result.
struct Products {
  AttentionOp attention;
  KVAppendOp append;
  LinearOp query, key, value, output;
  SmallVector<RopeOp> keyRotations;
  Pairs pairs;
  int64_t heads, queryHeads; ///< key-value heads, query heads
};

/// A product with its bias as a further column of its weight.
struct Augmented {
  Eigen::MatrixXd rows;
  bool biased = false;
};

struct MergeKVHeadsPass final : llm::impl::MergeKVHeadsPassBase<MergeKVHeadsPass> {
  using MergeKVHeadsPassBase::MergeKVHeadsPassBase;

  void runOnOperation() override {
    if (heads < 1)
      getOperation().emitError() << kPass << " expects heads, a number of key-value heads of at least 1, but got "
                                 << int64_t(heads);
    if (heads < 1 || failed(checkNotFused(getOperation(), kPass)) ||
        failed(rewriteFunctions(getOperation(), store, spill, [this](func::FuncOp function) { return run(function); })) ||
        failed(retypeCaches(getOperation())))
      return signalPassFailure();
    describeShape(getOperation());
  }

private:
  LogicalResult run(func::FuncOp function) {
    const ChannelGroups groups(function);
    IRRewriter rewriter(&getContext());
    llvm::MapVector<Operation *, Products> byKey;
    for (AttentionSite site : attentionsOf(function, groups, kPass)) {
      const int64_t have = site.kvHeads->size;
      if (heads > have || have % heads)
        return site.op.emitOpError("has ") << have << " key-value heads: " << kPass
                                           << " expects heads to divide them, but got " << int64_t(heads);
      if (heads == have)
        continue;
      FailureOr<Products> found = productsOf(site, rewriter);
      if (succeeded(found))
        byKey[found->key] = *found;
    }
    if (byKey.empty()) {
      function.emitWarning() << kPass << " merges nothing: no attention has more than " << int64_t(heads)
                             << " key-value heads that it can merge";
      return success();
    }
    const auto all = [&](auto use) {
      for (auto &[key, products] : byKey)
        if (failed(use(products)))
          return failure();
      return LogicalResult(success());
    };
    if (!whiten)
      return all([&](Products &products) { return merge(products, Eigen::MatrixXd()); });
    ActivationSource *source = ActivationSource::of(&getContext());
    if (!source)
      return function.emitOpError("needs activations to know what keys and values there are: name a text with "
                                  "--calibrate, or say whiten=false");
    StatisticsRequest request;
    request.wants = [&](Operation *op) { return byKey.contains(op); };
    return source->statistics(function, {tokens, window}, request,
                              [&](Operation *, const LayerStatistics &inputs) -> FailureOr<LayerChange> {
                                for (auto &[key, statistics] : inputs)
                                  if (failed(merge(byKey[key], momentsOf(*statistics))))
                                    return failure();
                                return LayerChange::Rewritten;
                              });
  }

  /// E[x xᵀ] with a 1 behind x, for the bias.
  static Eigen::MatrixXd momentsOf(const InputStatistics &x) {
    const Eigen::Index K = x.width;
    Eigen::MatrixXd all(K + 1, K + 1);
    all.topLeftCorner(K, K) = Eigen::Map<const Rows>(x.gram.data(), K, K).cast<double>();
    all.topRightCorner(K, 1) = Eigen::Map<const Eigen::VectorXd>(x.sums.data(), K);
    all.bottomLeftCorner(1, K) = all.topRightCorner(K, 1).transpose();
    all(K, K) = double(x.rows);
    return all / double(std::max<int64_t>(1, x.rows));
  }

  FailureOr<Products> productsOf(AttentionSite &site, IRRewriter &rewriter) {
    Products found{site.op, appendOf(site.op), {}, {}, {}, {}, {}, {}, site.kvHeads->size, site.queryHeads->size};
    const auto no = [&](const Twine &why) { return FailureOr<Products>(refuse(rewriter, site.op, kPass, why)); };
    SmallVector<RopeOp> queryRotations, none;
    const auto product = [](Value value, SmallVector<RopeOp> &rotations) {
      while (auto rope = value.getDefiningOp<RopeOp>())
        rotations.push_back(rope), value = rope.getInput();
      return value.hasOneUse() ? value.getDefiningOp<LinearOp>() : LinearOp();
    };
    found.query = product(site.op.getQuery(), queryRotations);
    found.key = product(found.append.getKey(), found.keyRotations);
    found.value = product(found.append.getValue(), none);
    if (!found.query || !found.key || !found.value)
      return no("its queries and keys are no rotated products: a norm between them does not bear a merger");
    if (found.key.getInput() != found.query.getInput() || found.key.getInput() != found.value.getInput())
      return no("its queries, keys and values are made of different activations");
    for (LinearOp linear : {found.query, found.key, found.value})
      if (linear.getGamma() || linear.getRowScale() || linear.getResidual() ||
          cast<ShapedType>(linear.getType()).getRank() != 3)
        return no("its products do more than multiply: merge before norms are fused");
    if (site.op->hasOneUse())
      found.output = dyn_cast<LinearOp>(*site.op->user_begin());
    if (!found.output || found.output.getInput() != site.op.getResult() || found.output.getGamma())
      return no("what reads it is no product");
    if (queryRotations.size() != found.keyRotations.size() || queryRotations.size() > 1)
      return no("its queries and keys turn differently");
    if (!queryRotations.empty()) {
      RopeOp rope = found.keyRotations.front();
      if (rope.getRotatedDims() != queryRotations.front().getRotatedDims() ||
          rope.getInterleaved() != queryRotations.front().getInterleaved())
        return no("its queries and keys turn differently");
      const int64_t pairs = int64_t(rope.getRotatedDims()) / 2;
      for (int64_t i = 0; i < pairs; ++i)
        found.pairs.push_back(rope.getInterleaved() ? std::pair(2 * i, 2 * i + 1) : std::pair(i, i + pairs));
    }
    return found;
  }

  FailureOr<Augmented> read(LinearOp linear) {
    FailureOr<Matrix> weight = readMatrix(linear.getWeight(), *store, linear);
    if (failed(weight))
      return failure();
    Augmented all{Eigen::MatrixXd::Zero(weight->N, weight->K + 1)};
    all.rows.leftCols(weight->K) = Eigen::Map<const Rows>(weight->numbers.data(), weight->N, weight->K).cast<double>();
    if (!linear.getBias())
      return all;
    FailureOr<Matrix> bias = readMatrix(linear.getBias(), *store, linear);
    if (failed(bias))
      return failure();
    all.biased = true;
    for (Eigen::Index n = 0; n < all.rows.rows(); ++n)
      all.rows(n, weight->K) = bias->numbers[size_t(n)];
    return all;
  }

  /// Gives a product these rows, in the formats that its weight and bias have.
  LogicalResult write(LinearOp linear, const Augmented &all, int64_t ownHeads) {
    OpBuilder builder(linear);
    const Eigen::Index N = all.rows.rows(), K = all.rows.cols() - 1;
    const auto one = [&](OpOperand &operand, Matrix matrix, ArrayRef<int64_t> shape) {
      const auto type = cast<RankedTensorType>(operand.get().getType());
      const auto like = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
      FailureOr<Value> made =
          writeLike(builder, linear.getLoc(), *spill, weightName(operand.get()) + ".merged", like, matrix);
      if (succeeded(made))
        replaceWeight(operand, *made);
      return LogicalResult(made);
    };
    Matrix weight{N, K, std::vector<float>(size_t(N * K))};
    Eigen::Map<Rows>(weight.numbers.data(), N, K) = all.rows.leftCols(K).cast<float>();
    if (failed(one(linear.getWeightMutable(), std::move(weight), {N, K})))
      return failure();
    if (all.biased) {
      const auto rank = cast<ShapedType>(linear.getBias().getType()).getRank();
      Matrix bias{rank == 1 ? 1 : ownHeads, rank == 1 ? N : N / ownHeads, {}};
      for (Eigen::Index n = 0; n < N; ++n)
        bias.numbers.push_back(float(all.rows(n, K)));
      const SmallVector<int64_t> shape = rank == 1 ? SmallVector<int64_t>{N} : SmallVector<int64_t>{ownHeads, N / ownHeads};
      if (failed(one(linear.getBiasMutable()[0], std::move(bias), shape)))
        return failure();
    }
    return success();
  }

  static void setHeads(Value value, int64_t count) {
    auto type = cast<RankedTensorType>(value.getType());
    value.setType(RankedTensorType::get({type.getDimSize(0), count, type.getDimSize(2)}, type.getElementType()));
  }

  LogicalResult merge(Products &products, const Eigen::MatrixXd &given) {
    FailureOr<Augmented> query = read(products.query), key = read(products.key), value = read(products.value);
    FailureOr<Matrix> out = readMatrix(products.output.getWeight(), *store, products.output);
    if (failed(query) || failed(key) || failed(value) || failed(out))
      return failure();
    const Eigen::Index H = products.queryHeads, G = products.heads, n = G / heads, shared = H / G;
    const Eigen::Index E = key->rows.rows() / G, EV = value->rows.rows() / G;
    const Eigen::MatrixXd moments =
        given.size() ? given : Eigen::MatrixXd(Eigen::MatrixXd::Identity(key->rows.cols(), key->rows.cols()));
    Eigen::MatrixXd output = Eigen::Map<const Rows>(out->numbers.data(), out->N, out->K).cast<double>();
    Augmented keys{Eigen::MatrixXd::Zero(heads * E, key->rows.cols()), key->biased};
    Augmented values{Eigen::MatrixXd::Zero(heads * EV, value->rows.cols()), value->biased};
    double lost = 0;
    for (Eigen::Index m = 0; m < heads; ++m) {
      std::vector<Eigen::MatrixXd> asked, read; // what an error of a key or a value is worth
      for (Eigen::Index g = m * n; g < (m + 1) * n; ++g) {
        asked.push_back(Eigen::MatrixXd::Zero(E, E)), read.push_back(Eigen::MatrixXd::Zero(EV, EV));
        for (Eigen::Index h = g * shared; h < (g + 1) * shared; ++h) {
          const Eigen::MatrixXd q = query->rows.middleRows(h * E, E), o = output.middleCols(h * EV, EV);
          asked.back() += q * moments * q.transpose();
          read.back() += o.transpose() * o;
        }
      }
      const Eigen::MatrixXd k = key->rows.middleRows(m * n * E, n * E), v = value->rows.middleRows(m * n * EV, n * EV);
      const std::optional<HeadBasis> turned = mergeHeads(k * moments * k.transpose(), asked, products.pairs);
      const std::optional<HeadBasis> plain = mergeHeads(v * moments * v.transpose(), read, {});
      if (!turned || !plain)
        return products.attention.emitOpError("has keys or values whose second moments have no eigenvectors");
      for (Eigen::Index i = 0; i < n; ++i) {
        const Eigen::Index g = m * n + i;
        keys.rows.middleRows(m * E, E) += turned->into[size_t(i)] * key->rows.middleRows(g * E, E);
        values.rows.middleRows(m * EV, EV) += plain->into[size_t(i)] * value->rows.middleRows(g * EV, EV);
        for (Eigen::Index h = g * shared; h < (g + 1) * shared; ++h) {
          query->rows.middleRows(h * E, E) = (turned->from[size_t(i)].transpose() * query->rows.middleRows(h * E, E)).eval();
          output.middleCols(h * EV, EV) = (output.middleCols(h * EV, EV) * plain->from[size_t(i)]).eval();
        }
      }
      lost = std::max({lost, turned->lost, plain->lost});
    }
    Augmented outputs{Eigen::MatrixXd::Zero(out->N, out->K + 1)};
    outputs.rows.leftCols(out->K) = output;
    if (!keys.rows.allFinite() || !values.rows.allFinite() || !query->rows.allFinite() || !outputs.rows.allFinite())
      return products.attention.emitOpError("cannot merge its heads: the result is not finite");
    if (failed(write(products.query, *query, H)) || failed(write(products.key, keys, heads)) ||
        failed(write(products.value, values, heads)) || failed(write(products.output, outputs, 0)))
      return failure();
    for (Value each : {products.key.getResult(), products.value.getResult()})
      setHeads(each, heads);
    for (RopeOp rope : products.keyRotations)
      setHeads(rope.getResult(), heads);
    if (PruneReport *page = PruneReport::of(&getContext())) {
      auto layer = products.attention->getParentOfType<LayerOp>();
      page->records.push_back({kPass.str(), "key-value heads merged", layer ? int64_t(layer.getIndex()) : -1, G - heads, G, -1,
                               {lost, lost}});
    }
    report(products.attention, kPass, Twine(G) + " key-value heads became " + Twine(int64_t(heads)) + ", " +
                                          Twine(int64_t(1000 * lost)) + " of 1000 parts of their keys or values lost");
    return success();
  }

  WeightStore *store = nullptr;
  WeightSpill *spill = nullptr;
};

} // namespace
