#include "transforms/Prune/Rewrite.h"

#include "lib/Quant/Affine.h"
#include "lib/Weights/WeightTypes.h"
#include "transforms/Quantize/KeptNumbers.h"
#include "transforms/Quantize/PackedWeight.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

/// The scheme of a format of groups; none for all others.
static std::optional<WeightScheme> schemeOf(RankedTensorType like) {
  const auto format = storageFormatOf(like) ? std::nullopt : affineFormatOf(like);
  const auto affine = format ? quant::affineOf(*format) : std::nullopt;
  if (!affine || affine->kind == quant::AffineFormat::Kind::Book)
    return std::nullopt;
  return WeightScheme{affine->bits, int64_t(affine->group), affine->kind == quant::AffineFormat::Kind::Symmetric,
                      cast<QuantizedType>(like.getElementType()).getSparsity()};
}

static FailureOr<Value> writeGroups(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                    RankedTensorType like, WeightScheme scheme, const Matrix &matrix) {
  const Sparsity fits = scheme.sparsity.of ? sparsityOf(matrix) : Sparsity();
  if (fits.of != scheme.sparsity.of || fits.kept != scheme.sparsity.kept)
    scheme.sparsity = Sparsity();
  QuantizedRows rows{matrix.N, matrix.K, std::vector<int8_t>(matrix.numbers.size()),
                     std::vector<GroupGrid>(size_t(matrix.N * scheme.groups(matrix.K))),
                     scheme.sparsity.of ? keptNumbers(matrix, scheme.sparsity) : KeptNumbers()};
  forRows(builder.getContext(), matrix.N, 16, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      roundRow(scheme, matrix.row(n), /*best=*/true, rows, n);
  });
  return writeQuantised(builder, loc, spill, name, like, scheme, rows);
}

FailureOr<Value> mlir::llm::writeLike(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                      RankedTensorType like, const Matrix &matrix) {
  if (const auto scheme = schemeOf(like); scheme && matrix.K % quant::kAffineUnit == 0)
    return writeGroups(builder, loc, spill, name, like, *scheme, matrix);
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> shape(like.getShape());
  shape.back() = matrix.K;
  Type element = like.getElementType();
  Attribute layout = like.getEncoding();
  std::optional<quant::Format> format = storageFormatOf(like);
  if (!format || !quant::info(*format).encode || matrix.K % quant::info(*format).blockElements) {
    format = quant::Format::F16, element = Float16Type::get(context), layout = {};
  }
  auto type = RankedTensorType::get(shape, element, layout);
  // All rows at once, on all threads: the search for the best scales takes its time.
  const size_t rowBytes = quant::info(*format).rowBytes(size_t(matrix.K));
  std::vector<std::byte> bytes(size_t(matrix.N) * rowBytes);
  forRows(context, matrix.N, 16, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      (void)quant::encodeBest(*format, matrix.row(n).data(), bytes.data() + size_t(n) * rowBytes, size_t(matrix.K));
  });
  return spill.add(builder, loc, name, type, bytes);
}

FailureOr<Value> mlir::llm::writeIndex(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                       ArrayRef<int64_t> index) {
  std::vector<int32_t> numbers(index.begin(), index.end());
  return spill.add(builder, loc, name, RankedTensorType::get({int64_t(index.size())}, builder.getI32Type()),
                   std::as_bytes(std::span(numbers)));
}

int64_t mlir::llm::blockOf(RankedTensorType type) {
  if (const auto format = storageFormatOf(type))
    return quant::info(*format).blockElements;
  // Groups may be short at the end of a row, whole units of codes may not.
  return affineFormatOf(type) ? int64_t(quant::kAffineUnit) : 1;
}

SmallVector<int64_t> mlir::llm::largest(ArrayRef<double> scores, int64_t keep) {
  SmallVector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    const double first = scores[size_t(a)], second = scores[size_t(b)];
    return first != second ? first > second : a < b;
  });
  order.resize(size_t(keep));
  llvm::sort(order);
  return order;
}

FailureOr<Matrix> mlir::llm::refitColumns(const Matrix &weight, ArrayRef<float> gram, ArrayRef<int64_t> kept,
                                          double damping) {
  const int64_t K = weight.K, S = int64_t(kept.size());
  Eigen::MatrixXd inner(S, S), cross(S, K);
  double mean = 0;
  for (int64_t k = 0; k < K; ++k)
    mean += gram[size_t(k * K + k)] / double(K);
  for (int64_t i = 0; i < S; ++i) {
    for (int64_t k = 0; k < K; ++k)
      cross(i, k) = gram[size_t(kept[size_t(i)] * K + k)];
    for (int64_t j = 0; j < S; ++j)
      inner(i, j) = cross(i, kept[size_t(j)]);
    inner(i, i) += damping * mean + 1e-30;
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(inner);
  if (factor.info() != Eigen::Success)
    return failure();
  // (H_SS + λI)⁻¹ H_S: turns the old columns into the new ones.
  const Eigen::MatrixXf change = factor.solve(cross).cast<float>();
  if (!change.allFinite())
    return failure();
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix result{weight.N, S, std::vector<float>(size_t(weight.N * S))};
  Eigen::Map<Rows>(result.numbers.data(), weight.N, S).noalias() =
      Eigen::Map<const Rows>(weight.numbers.data(), weight.N, K) * change.transpose();
  return result;
}

double mlir::llm::lostShare(const Matrix &weight, ArrayRef<float> gram, ArrayRef<int64_t> kept, const Matrix &columns) {
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t N = weight.N, K = weight.K;
  const Eigen::Map<const Rows> W(weight.numbers.data(), N, K), H(gram.data(), K, K);
  Rows lost = W;
  for (auto [i, k] : llvm::enumerate(kept))
    lost.col(k) -= Eigen::Map<const Rows>(columns.numbers.data(), N, columns.K).col(int64_t(i));
  const double all = double((W * H).cwiseProduct(W).sum()), gone = double((lost * H).cwiseProduct(lost).sum());
  return all > 0 ? std::max(0.0, gone / all) : 0;
}

Matrix mlir::llm::chooseColumns(const Matrix &weight, ArrayRef<int64_t> kept) {
  Matrix result{weight.N, int64_t(kept.size()), {}};
  result.numbers.reserve(size_t(weight.N) * kept.size());
  for (int64_t n = 0; n < weight.N; ++n)
    for (int64_t k : kept)
      result.numbers.push_back(weight.row(n)[size_t(k)]);
  return result;
}

void mlir::llm::describeModel(ModuleOp module, StringRef key, int64_t value) {
  auto model = module->getAttrOfType<DictionaryAttr>("llm.model");
  if (!model)
    return;
  NamedAttrList list(model);
  list.set(key, IntegerAttr::get(IntegerType::get(module.getContext(), 64), value));
  module->setAttr("llm.model", list.getDictionary(module.getContext()));
}
