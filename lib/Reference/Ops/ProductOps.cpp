// Embedding and the products: linear, gated, sparse.
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Products.h"
#include "lib/Reference/Math/Rows.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

template <typename F> static LogicalResult evaluateEmbedding(const OpContext<F> &context) {
  auto op = cast<EmbeddingOp>(context.op);
  const ArrayRef<int32_t> ids = context.ints(op.getIds());
  const F scale = op.getScale() ? F(op.getScale()->convertToDouble()) : F(1);
  Tensor rows;
  if (const Tensor &table = context.get(op.getTable())) {
    const size_t D = size_t(table.width());
    F *data;
    rows = Tensor::make<F>({int64_t(ids.size()), int64_t(D)}, data);
    for (auto [t, id] : llvm::enumerate(ids)) {
      const int64_t row = std::clamp<int64_t>(id, 0, table.rows() - 1);
      llvm::copy(table.as<F>().slice(size_t(row) * D, D), data + t * D);
    }
  } else {
    FailureOr<Tensor> read = context.interpreter.weights.rows(op.getTable().template getDefiningOp<WeightOp>(), ids);
    if (failed(read))
      return failure();
    rows = *read;
  }
  F *y = context.make(op.getResult(), int64_t(ids.size()));
  for (auto [to, from] : llvm::zip(MutableArrayRef<F>(y, size_t(rows.elements())), rows.as<F>()))
    to = scale * from;
  return success();
}

/// gamma ∘ x, or x itself where there is none.
template <typename F> static Tensor withGamma(const OpContext<F> &context, const Tensor &x, Value gamma) {
  if (!gamma)
    return x;
  const ArrayRef<F> factors = context.floats(gamma);
  F *data;
  Tensor result = Tensor::make<F>(x.shape(), data);
  for (auto [i, number] : llvm::enumerate(x.as<F>()))
    data[i] = number * factors[i % factors.size()];
  return result;
}

/// y = w·x of rows; a weight [H, N, K] is one product a head of x [T, H, K].
template <typename F> static void multiply(Workers &workers, const Tensor &x, const Tensor &w, F *y) {
  const size_t T = size_t(x.rows()), K = size_t(w.shape().back());
  if (w.shape().size() == 2) {
    linear<F>(workers, x.as<F>().data(), w.as<F>().data(), y, T, size_t(w.rows()), K);
    return;
  }
  const size_t H = size_t(w.rows()), N = size_t(w.shape()[1]);
  workers.run(H, [&](size_t h) {
    productKernels<F>().timesTransposed(x.as<F>().data() + h * K, ptrdiff_t(H * K), w.as<F>().data() + h * N * K,
                                        ptrdiff_t(K), y + h * N, ptrdiff_t(H * N), ptrdiff_t(T), ptrdiff_t(N),
                                        ptrdiff_t(K));
  });
}

/// y[t] = rowScale[t] · y[t] + bias + residual[t], each where given.
template <typename F>
static void finish(Workers &workers, F *y, size_t T, size_t N, std::span<const F> rowScale, std::span<const F> bias,
                   std::span<const F> residual) {
  if (rowScale.empty() && bias.empty() && residual.empty())
    return;
  workers.ranges(T, 16, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      for (size_t n = 0; n < N; ++n) {
        F value = y[t * N + n];
        if (!rowScale.empty())
          value *= rowScale[t];
        if (!bias.empty())
          value += bias[n];
        if (!residual.empty())
          value += residual[t * N + n];
        y[t * N + n] = value;
      }
  });
}

template <typename F> static LogicalResult evaluateLinear(const OpContext<F> &context) {
  auto op = cast<LinearOp>(context.op);
  const Tensor x = withGamma(context, context.get(op.getInput()), op.getGamma());
  const Tensor &w = context.get(op.getWeight());
  F *y = context.make(op.getResult(), x.rows());
  multiply<F>(context.workers(), x, w, y);
  const size_t N = size_t(w.elements() / w.shape().back());
  finish<F>(context.workers(), y, size_t(x.rows()), N, context.optional(op.getRowScale()),
            context.optional(op.getBias()), context.optional(op.getResidual()));
  return success();
}

/// The enumeration of the dialect and that of the numerics have one order.
static Nonlinearity kindOf(ActivationKind kind) { return Nonlinearity(uint32_t(kind)); }

template <typename F> static LogicalResult evaluateGatedLinear(const OpContext<F> &context) {
  auto op = cast<GatedLinearOp>(context.op);
  const Tensor x = withGamma(context, context.get(op.getInput()), op.getGamma());
  const Tensor &gate = context.get(op.getGate()), &up = context.get(op.getUp());
  const size_t T = size_t(x.rows()), N = size_t(gate.rows());
  const auto rowScale = context.optional(op.getRowScale());
  F *raised, *y = context.make(op.getResult(), x.rows());
  const Tensor scratch = Tensor::make<F>({int64_t(T), int64_t(N)}, raised);
  multiply<F>(context.workers(), x, gate, y);
  multiply<F>(context.workers(), x, up, raised);
  finish<F>(context.workers(), y, T, N, rowScale, {}, {});
  finish<F>(context.workers(), raised, T, N, rowScale, {}, {});
  activate<F>(context.workers(), kindOf(op.getKind()), y, raised, y, T * N);
  return success();
}

template <typename F> static LogicalResult evaluateSparseLinear(const OpContext<F> &context) {
  auto op = cast<SparseLinearOp>(context.op);
  const Tensor &x = context.get(op.getInput()), &values = context.get(op.getValues());
  const ArrayRef<int32_t> index = context.ints(op.getIndex());
  const size_t T = size_t(x.rows()), K = size_t(x.width());
  const size_t N = size_t(values.rows()), P = size_t(values.width());
  for (int32_t column : index)
    if (column < 0 || size_t(column) >= K)
      return op.emitOpError("expects columns from 0 to ") << K - 1 << ", but got " << column;
  F *y = context.make(op.getResult(), x.rows());
  for (size_t t = 0; t < T; ++t)
    for (size_t n = 0; n < N; ++n) {
      F sum = 0;
      for (size_t p = 0; p < P; ++p)
        sum += values.as<F>()[n * P + p] * x.as<F>()[t * K + size_t(index[n * P + p])];
      y[t * N + n] = sum;
    }
  finish<F>(context.workers(), y, T, N, {}, {}, context.optional(op.getResidual()));
  return success();
}

template <typename F> void reference::addProductOps(OpTable<F> &table) {
  table[TypeID::get<EmbeddingOp>()] = {evaluateEmbedding<F>};
  table[TypeID::get<LinearOp>()] = {evaluateLinear<F>};
  table[TypeID::get<GatedLinearOp>()] = {evaluateGatedLinear<F>, true};
  table[TypeID::get<SparseLinearOp>()] = {evaluateSparseLinear<F>};
}
template void reference::addProductOps<float>(OpTable<float> &);
template void reference::addProductOps<double>(OpTable<double> &);
