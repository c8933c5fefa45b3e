// Norms, rotary embeddings and Hadamard transforms.
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Rows.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// The width that a norm divides by.
template <typename Op> static size_t countOf(Op op, size_t width) {
  return op.getCount() ? size_t(*op.getCount()) : width;
}

template <typename F> static LogicalResult evaluateRmsNorm(const OpContext<F> &context) {
  auto op = cast<RmsNormOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  // A gamma as long as a whole row makes the norm run over all heads together.
  const auto gamma = context.optional(op.getGamma());
  const size_t D = gamma.empty() ? size_t(x.shape().back()) : gamma.size();
  F *y = context.make(op.getResult(), x.rows());
  rmsNorm<F>(context.workers(), x.as<F>().data(), y, size_t(x.elements()) / D, D, gamma, op.getEps().convertToDouble(),
             countOf(op, D));
  return success();
}

template <typename F> static LogicalResult evaluateLayerNorm(const OpContext<F> &context) {
  auto op = cast<LayerNormOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const size_t D = size_t(x.shape().back());
  F *y = context.make(op.getResult(), x.rows());
  layerNorm<F>(context.workers(), x.as<F>().data(), y, size_t(x.elements()) / D, D, context.optional(op.getGamma()),
               context.optional(op.getBeta()), op.getEps().convertToDouble(), countOf(op, D));
  return success();
}

template <typename F> static LogicalResult evaluateRmsScale(const OpContext<F> &context) {
  auto op = cast<RmsScaleOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const size_t D = size_t(x.width());
  F *y = context.make(op.getResult(), x.rows());
  for (int64_t t = 0; t < x.rows(); ++t)
    y[t] = F(rmsScale<F>({x.as<F>().data() + size_t(t) * D, D}, op.getEps().convertToDouble(), countOf(op, D)));
  return success();
}

template <typename F> static LogicalResult evaluateRope(const OpContext<F> &context) {
  auto op = cast<RopeOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const ArrayRef<int32_t> positions = context.ints(op.getPositions());
  const size_t P = size_t(op.getRotatedDims()) / 2, H = size_t(x.shape()[1]), E = size_t(x.shape()[2]);
  const double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
  const double amplitude = op.getAmplitude() ? op.getAmplitude()->convertToDouble() : 1;

  // Angles a position, one row for each set (LongRoPE has two).
  std::vector<double> frequencies;
  if (op.getFrequencies()) {
    for (F frequency : context.floats(op.getFrequencies()))
      frequencies.push_back(double(frequency) * scale);
  } else {
    const double base = op.getBase()->convertToDouble();
    for (size_t i = 0; i < P; ++i)
      frequencies.push_back(scale * std::pow(base, -2.0 * double(i) / double(2 * P)));
  }
  const std::span<const double> set(frequencies.data(), P);
  F *y = context.make(op.getResult(), x.rows());
  if (!op.getLongFrom()) {
    rope<F>(context.workers(), x.as<F>().data(), y, positions, H, E, set, op.getInterleaved(), amplitude);
    return success();
  }
  for (int64_t t = 0; t < x.rows(); ++t) {
    const bool isLong = positions[size_t(t)] >= int64_t(*op.getLongFrom());
    rope<F>(context.workers(), x.as<F>().data() + t * x.width(), y + t * x.width(), positions.slice(size_t(t), 1), H, E,
            {frequencies.data() + (isLong ? P : 0), P}, op.getInterleaved(), amplitude);
  }
  return success();
}

template <typename F> static LogicalResult evaluateHadamard(const OpContext<F> &context) {
  auto op = cast<HadamardOp>(context.op);
  const Tensor &x = context.get(op.getInput());
  const size_t width = size_t(x.shape().back());
  std::vector<F> signs;
  if (std::optional<ArrayRef<int64_t>> words = op.getSigns())
    for (size_t i = 0; i < width; ++i)
      signs.push_back((*words)[i / 64] >> (i % 64) & 1 ? F(-1) : F(1));
  F *y = context.make(op.getResult(), x.rows());
  hadamard<F>(context.workers(), x.as<F>().data(), y, size_t(x.elements()) / width, width, size_t(op.getBlock()), signs,
              op.getInverse());
  return success();
}

template <typename F> void reference::addNormOps(OpTable<F> &table) {
  table[TypeID::get<RmsNormOp>()] = {evaluateRmsNorm<F>, true};
  table[TypeID::get<LayerNormOp>()] = {evaluateLayerNorm<F>, true};
  table[TypeID::get<RmsScaleOp>()] = {evaluateRmsScale<F>};
  table[TypeID::get<RopeOp>()] = {evaluateRope<F>};
  table[TypeID::get<HadamardOp>()] = {evaluateHadamard<F>};
}
template void reference::addNormOps<float>(OpTable<float> &);
template void reference::addNormOps<double>(OpTable<double> &);
