#include "transforms/Quantize/InputScales.h"

#include "transforms/Quantize/PackedWeight.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::llm;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t ScalableInput::width() const { return typeOf(products.front()->getOperand(1)).getShape().back(); }

/// Whether a product reads rows of a plain weight and nothing is folded into it yet.
static bool isPlain(LinearOp linear) {
  return typeOf(linear.getWeight()).getRank() == 2 && !linear.getGamma() && !linear.getRowScale();
}

/// The linear whose rows are the columns of `value`, when nothing else reads it.
static LinearOp rowsOf(Value value, unsigned uses) {
  auto linear = value.getDefiningOp<LinearOp>();
  const bool good = linear && isPlain(linear) && !linear.getResidual() &&
                    size_t(std::distance(linear->use_begin(), linear->use_end())) == uses;
  return good ? linear : LinearOp();
}

/// The product that makes the values of the cache that an attention reads, when the cache gets them from nowhere else.
static LinearOp valuesOf(AttentionOp attention) {
  auto handle = attention.getCache().getDefiningOp<KVOp>();
  if (!handle)
    return {};
  bool shared = false;
  attention->getParentOfType<func::FuncOp>().walk([&](KVOp other) {
    shared |= other != handle && other.getCache() == handle.getCache() && other.getIndex() == handle.getIndex();
  });
  if (shared)
    return {};
  KVAppendOp append;
  for (Operation *user : attention.getCache().getUsers()) {
    if (user == attention)
      continue;
    auto other = dyn_cast<KVAppendOp>(user);
    if (!other || append)
      return {};
    append = other;
  }
  return append && append.getValue() ? rowsOf(append.getValue(), 1) : LinearOp();
}

static bool findProducer(ScalableInput &found) {
  Operation *maker = found.input.getDefiningOp();
  if (auto norm = dyn_cast_or_null<RmsNormOp>(maker)) {
    found.producer = ScalableInput::Producer::Norm, found.source = norm;
    return norm.getGamma() && norm.getResult().getType() == norm.getInput().getType() &&
           typeOf(norm.getInput()).getRank() == 2;
  }
  if (auto gated = dyn_cast_or_null<GatedActivationOp>(maker)) {
    found.producer = ScalableInput::Producer::Up;
    LinearOp up = gated.getGate() == gated.getUp() ? LinearOp() : rowsOf(gated.getUp(), 1);
    found.source = up;
    return bool(up);
  }
  if (auto attention = dyn_cast_or_null<AttentionOp>(maker)) {
    found.producer = ScalableInput::Producer::Values;
    LinearOp values = valuesOf(attention);
    if (!values)
      return false;
    found.source = values;
    const auto heads = typeOf(attention.getResult()), keys = typeOf(values.getResult());
    if (heads.getRank() != 3 || keys.getRank() != 3 || heads.getDimSize(2) != keys.getDimSize(2))
      return false;
    found.share = heads.getDimSize(1) / keys.getDimSize(1), found.headSize = heads.getDimSize(2);
    return true;
  }
  return false;
}

SmallVector<ScalableInput> mlir::llm::scalableInputs(Operation *op) {
  llvm::MapVector<Value, ScalableInput> byInput;
  op->walk<WalkOrder::PreOrder>([&](LinearOp linear) {
    ScalableInput &entry = byInput[linear.getInput()];
    entry.input = linear.getInput();
    entry.products.push_back(linear);
  });
  SmallVector<ScalableInput> result;
  for (auto &[value, entry] : byInput) {
    const auto readsIt = [](OpOperand &use) {
      auto linear = dyn_cast<LinearOp>(use.getOwner());
      return linear && use.getOperandNumber() == 0 && isPlain(linear);
    };
    if (llvm::all_of(value.getUses(), readsIt) && findProducer(entry))
      result.push_back(std::move(entry));
  }
  return result;
}

/// scale_axis of a float weight.
static Value scaled(OpBuilder &builder, Location loc, Value weight, Value factors, int64_t axis) {
  if (isa<QuantizedType>(typeOf(weight).getElementType()))
    weight = DequantizeOp::create(builder, loc, RankedTensorType::get(typeOf(weight).getShape(), builder.getF32Type()),
                                  weight);
  return ScaleAxisOp::create(builder, loc, weight.getType(), weight, factors, uint64_t(axis));
}

LogicalResult mlir::llm::scaleInput(ScalableInput &input, ArrayRef<double> scales, WeightSpill &spill) {
  const int64_t K = input.width();
  std::vector<double> columns(size_t(K), 1);
  for (int64_t k = 0; k < K; ++k)
    columns[size_t(k)] = scales[size_t(input.factorOf(k))];
  const std::string name = weightName(input.products.front().getWeight());
  for (LinearOp product : input.products) {
    OpBuilder builder(product);
    FailureOr<Value> factors = writeVector(builder, product.getLoc(), spill, name + ".input_scales", columns);
    if (failed(factors))
      return failure();
    product.getWeightMutable().set(scaled(builder, product.getLoc(), product.getWeight(), *factors, 1));
  }
  OpBuilder builder(input.source);
  const Location loc = input.source->getLoc();
  std::vector<double> inverse;
  for (double scale : scales)
    inverse.push_back(1 / scale);
  FailureOr<Value> factors = writeVector(builder, loc, spill, name + ".inverse_scales", inverse);
  if (failed(factors))
    return failure();
  if (auto norm = dyn_cast<RmsNormOp>(input.source)) {
    norm.getGammaMutable()[0].set(scaled(builder, loc, norm.getGamma(), *factors, 0));
    return success();
  }
  auto rows = cast<LinearOp>(input.source);
  rows.getWeightMutable().set(scaled(builder, loc, rows.getWeight(), *factors, 0));
  if (rows.getBias())
    rows.getBiasMutable()[0].set(scaled(builder, loc, rows.getBias(), *factors, 0));
  return success();
}
