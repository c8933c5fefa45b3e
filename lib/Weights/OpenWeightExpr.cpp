// From operations to views.
#include "lib/Weights/AssembleView.h"
#include "lib/Weights/WeightTypes.h"
#include "lib/Weights/WeightViews.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::weights;
namespace quant = sprig::quant;

namespace {

/// How a tensor's rows fall apart along a dimension that is not the last:
/// `outer` times `size` slices of `inner` rows.
struct Axis {
  int64_t outer = 1, size, inner = 1;

  Axis(ArrayRef<int64_t> shape, int64_t axis) : size(shape[size_t(axis)]) {
    for (int64_t before : shape.take_front(size_t(axis)))
      outer *= before;
    for (int64_t after : shape.drop_front(size_t(axis) + 1).drop_back())
      inner *= after;
  }
};

class Opener {
public:
  explicit Opener(WeightStore &store) : store(store) {}

  FailureOr<Expr> open(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return emitError(value.getLoc(),
                       "expects a weight, but got an argument of a block");
    Attribute constant;
    if (!isa<WeightOp>(op) && matchPattern(op, m_Constant(&constant)))
      return openElements(op, dyn_cast<ElementsAttr>(constant),
                          dyn_cast<RankedTensorType>(value.getType()));
    return llvm::TypeSwitch<Operation *, FailureOr<Expr>>(op)
        .Case<WeightOp, SliceOp, ConcatOp, GatherOp, ScaleAxisOp, OffsetOp,
              TransposeOp, ReshapeOp, DequantizeOp, RelayoutOp, AssembleOp, ArgsortOp,
              HadamardOp, RmsNormOp>(
            [&](auto typed) { return openOp(typed); })
        .Default([](Operation *other) {
          return other->emitOpError("cannot be evaluated while weights are "
                                    "read; its result has to be written as a "
                                    "new weight first");
        });
  }

private:
  FailureOr<Expr> openOp(WeightOp weight) {
    auto type = cast<RankedTensorType>(weight.getType());
    if (weight.isInline())
      return openElements(weight, weight.getValueAttr(), type);
    auto source = store.source(weight, weight.getSourceAttr());
    if (failed(source))
      return failure();
    auto tensor = (*source)->get(*weight.getKey());
    if (!tensor)
      return weight.emitOpError() << llvm::toString(tensor.takeError());
    FailureOr<Format> format =
        checkPromise(weight, type, **tensor, (*source)->path());
    if (failed(format))
      return failure();
    return memory(*format, type.getShape(), (*tensor)->data, *source);
  }

  FailureOr<Expr> openElements(Operation *op, ElementsAttr value,
                               RankedTensorType type) {
    const auto format = type ? storageFormatOf(type) : std::nullopt;
    const size_t bytes =
        format ? quant::info(*format).rowBytes(size_t(type.getNumElements()))
               : 0;
    std::vector<std::byte> owned;
    if (auto dense = dyn_cast_if_present<DenseElementsAttr>(value)) {
      const auto raw = std::as_bytes(
          std::span(dense.getRawData().data(), dense.getRawData().size()));
      while (owned.size() < bytes) { // a splat has one element
        owned.insert(owned.end(), raw.begin(), raw.end());
        if (!dense.isSplat())
          break;
      }
    } else if (auto resource =
                   dyn_cast_if_present<DenseResourceElementsAttr>(value)) {
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob()) {
        const auto raw = std::as_bytes(
            std::span(blob->getData().data(), blob->getData().size()));
        owned.assign(raw.begin(), raw.end());
      }
    }
    if (!format || owned.size() != bytes)
      return op->emitOpError("expects an inline value of floats, integers or "
                             "GGUF blocks, but got ")
             << op->getResult(0).getType();
    return memory(*format, type.getShape(), std::move(owned));
  }

  FailureOr<Expr> openOp(SliceOp slice) {
    FailureOr<Expr> input = open(slice.getInput());
    if (failed(input))
      return failure();
    const int64_t begin = int64_t(slice.getBegin()),
                  end = int64_t(slice.getEnd());
    const int64_t axis = int64_t(slice.getAxis());
    SmallVector<int64_t, 4> shape((*input)->shape());
    if (axis + 1 == int64_t(shape.size()))
      return sliceColumns(std::move(*input), begin, end);
    const Axis rows(shape, axis);
    std::vector<RowRun> runs;
    for (int64_t o = 0; o < rows.outer; ++o)
      runs.push_back({0, (o * rows.size + begin) * rows.inner,
                      (end - begin) * rows.inner});
    shape[size_t(axis)] = end - begin;
    return pick(std::move(*input), shape, std::move(runs));
  }

  FailureOr<Expr> openOp(ConcatOp concat) {
    std::vector<Expr> inputs;
    for (Value value : concat.getInputs()) {
      FailureOr<Expr> input = open(value);
      if (failed(input))
        return failure();
      inputs.push_back(std::move(*input));
    }
    const int64_t axis = int64_t(concat.getAxis());
    SmallVector<int64_t, 4> shape(inputs.front()->shape());
    if (axis + 1 == int64_t(shape.size()))
      return concatColumns(std::move(inputs));
    const Axis rows(shape, axis);
    std::vector<RowRun> runs;
    for (int64_t o = 0; o < rows.outer; ++o)
      for (auto [i, input] : llvm::enumerate(inputs)) {
        const int64_t count = input->shape()[size_t(axis)] * rows.inner;
        runs.push_back({i, o * count, count});
      }
    shape[size_t(axis)] = 0;
    for (const Expr &input : inputs)
      shape[size_t(axis)] += input->shape()[size_t(axis)];
    return pickRows(std::move(inputs), shape, std::move(runs));
  }

  FailureOr<Expr> openOp(GatherOp gather) {
    FailureOr<Expr> input = open(gather.getInput());
    auto index = readIntegers(gather.getIndex(), store);
    if (failed(input) || failed(index))
      return failure();
    const int64_t axis = int64_t(gather.getAxis());
    SmallVector<int64_t, 4> shape((*input)->shape());
    for (auto [i, at] : llvm::enumerate(*index))
      if (at < 0 || at >= shape[size_t(axis)])
        return gather.emitOpError("expects indices from 0 to ")
               << shape[size_t(axis)] - 1 << ", but index " << i << " is "
               << at;
    if (axis + 1 == int64_t(shape.size()))
      return gatherColumns(std::move(*input), *index);
    const Axis rows(shape, axis);
    std::vector<RowRun> runs;
    for (int64_t o = 0; o < rows.outer; ++o)
      for (int64_t at : *index)
        runs.push_back({0, (o * rows.size + at) * rows.inner, rows.inner});
    shape[size_t(axis)] = int64_t(index->size());
    return pick(std::move(*input), shape, std::move(runs));
  }

  FailureOr<Expr> openOp(TransposeOp transpose) {
    FailureOr<Expr> input = open(transpose.getInput());
    if (failed(input))
      return failure();
    ArrayRef<int64_t> order = transpose.getOrder();
    ArrayRef<int64_t> shape = (*input)->shape();
    if (order.empty() || order.back() + 1 != int64_t(order.size()))
      return transposeElements(std::move(*input), order);
    // Whole rows change places: the result's row r, in mixed radix of the
    // result's shape, is the row of the input with its digits permuted.
    SmallVector<int64_t> steps(order.size() - 1, 1);
    SmallVector<int64_t, 4> result(shape);
    for (size_t axis = 0; axis + 1 < order.size(); ++axis) {
      result[axis] = shape[size_t(order[axis])];
      for (int64_t after :
           shape.drop_front(size_t(order[axis]) + 1).drop_back())
        steps[axis] *= after;
    }
    std::vector<RowRun> runs;
    for (int64_t row = 0; row < (*input)->rows(); ++row) {
      int64_t rest = row, from = 0;
      for (size_t axis = order.size() - 1; axis-- > 0;) {
        from += rest % result[axis] * steps[axis];
        rest /= result[axis];
      }
      runs.push_back({0, from, 1});
    }
    return pick(std::move(*input), result, std::move(runs));
  }

  FailureOr<Expr> openOp(ReshapeOp op) {
    FailureOr<Expr> input = open(op.getInput());
    if (failed(input))
      return failure();
    return reshape(std::move(*input), op.getResult().getType().getShape());
  }

  FailureOr<Expr> openOp(ScaleAxisOp op) {
    FailureOr<Expr> input = open(op.getInput());
    FailureOr<Expr> factors = open(op.getFactors());
    if (failed(input) || failed(factors))
      return failure();
    std::vector<double> numbers(size_t((*factors)->columns()));
    (*factors)->decode(0, 1, numbers.data());
    return scale(std::move(*input), std::move(numbers), int64_t(op.getAxis()),
                 floatFormat(op.getResult().getType()));
  }

  FailureOr<Expr> openOp(OffsetOp op) {
    FailureOr<Expr> input = open(op.getInput());
    if (failed(input))
      return failure();
    return offset(std::move(*input), double(op.getAmount().convertToFloat()));
  }

  FailureOr<Expr> openOp(RmsNormOp op) {
    if (op.getGamma())
      return op.emitOpError("expects a weight that is normalised without "
                            "factors, but got a gamma");
    FailureOr<Expr> input = open(op.getInput());
    if (failed(input))
      return failure();
    const int64_t width = (*input)->columns();
    return normalise(std::move(*input), double(op.getCount().value_or(width)),
                     op.getEps().convertToDouble(),
                     floatFormat(cast<RankedTensorType>(op.getType())));
  }

  FailureOr<Expr> openOp(HadamardOp op) {
    FailureOr<Expr> input = open(op.getInput());
    if (failed(input))
      return failure();
    std::vector<double> signs;
    if (std::optional<ArrayRef<int64_t>> words = op.getSigns())
      for (int64_t i = 0; i < (*input)->columns(); ++i)
        signs.push_back((*words)[size_t(i / 64)] >> (i % 64) & 1 ? -1 : 1);
    return hadamard(std::move(*input), int64_t(op.getBlock()), std::move(signs),
                    op.getInverse(), floatFormat(op.getResult().getType()));
  }

  FailureOr<Expr> openOp(DequantizeOp op) {
    FailureOr<Expr> input = open(op.getInput());
    if (failed(input))
      return failure();
    return convert(std::move(*input), floatFormat(op.getResult().getType()));
  }

  /// The layout of a value is a wish of its user, who gets rows and lays them
  /// out himself.
  FailureOr<Expr> openOp(RelayoutOp op) { return open(op.getInput()); }

  FailureOr<Expr> openOp(ArgsortOp op) {
    FailureOr<SmallVector<int64_t>> keys = readIntegers(op.getInput(), store);
    if (failed(keys))
      return failure();
    std::vector<int32_t> order(keys->size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int32_t left, int32_t right) {
      return std::pair((*keys)[left], left) < std::pair((*keys)[right], right);
    });
    const auto bytes = std::as_bytes(std::span(order));
    return memory(Format::I32, op.getType().getShape(),
                  std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  FailureOr<Expr> openOp(AssembleOp op) {
    AssembleParts parts;
    FailureOr<Expr> codes = open(op.getCodes());
    if (failed(codes))
      return failure();
    parts.codes = std::move(*codes);
    for (auto [values, exprs] : {std::pair(op.getScales(), &parts.scales),
                                 std::pair(op.getZeros(), &parts.zeros)})
      for (Value value : values) {
        FailureOr<Expr> part = open(value);
        if (failed(part))
          return failure();
        exprs->push_back(std::move(*part));
      }
    if (op.getCodebook()) {
      FailureOr<Expr> codebook = open(op.getCodebook());
      if (failed(codebook))
        return failure();
      parts.codebook = std::move(*codebook);
    }
    if (op.getPatterns()) {
      FailureOr<Expr> patterns = open(op.getPatterns());
      if (failed(patterns))
        return failure();
      parts.patterns = std::move(*patterns);
    }
    if (op.getOrder()) {
      FailureOr<SmallVector<int64_t>> order =
          readIntegers(op.getOrder(), store);
      if (failed(order))
        return failure();
      parts.order = std::move(*order);
    }
    return assemble(op, std::move(parts));
  }

  static Expr pick(Expr input, ArrayRef<int64_t> shape,
                   std::vector<RowRun> runs) {
    std::vector<Expr> inputs;
    inputs.push_back(std::move(input));
    return pickRows(std::move(inputs), shape, std::move(runs));
  }

  static Format floatFormat(RankedTensorType type) {
    return storageFormatOf(type).value_or(Format::F32);
  }

  WeightStore &store;
};

} // namespace

bool mlir::llm::isWeightExpr(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<WeightOp>(op) || matchPattern(op, m_Constant()))
    return true;
  return isa<SliceOp, ConcatOp, GatherOp, ScaleAxisOp, OffsetOp, TransposeOp,
             ReshapeOp, DequantizeOp, RelayoutOp, AssembleOp, ArgsortOp, HadamardOp, RmsNormOp>(op) &&
         llvm::all_of(op->getOperands(), isWeightExpr);
}

FailureOr<std::unique_ptr<WeightExpr>>
mlir::llm::openWeightExpr(Value value, WeightStore &store) {
  return Opener(store).open(value);
}

FailureOr<SmallVector<int64_t>> mlir::llm::readIntegers(Value value,
                                                        WeightStore &store) {
  FailureOr<Expr> expr = openWeightExpr(value, store);
  if (failed(expr))
    return failure();
  std::vector<double> numbers(size_t((*expr)->rows() * (*expr)->columns()));
  (*expr)->decode(0, (*expr)->rows(), numbers.data());
  return SmallVector<int64_t>(numbers.begin(), numbers.end());
}
