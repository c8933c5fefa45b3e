// Activations in 8-bit integers: what rounds them, and products of integers.
#include "codegen/Kernels/IntegerLinear.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// Numbers of quantised activations that share a scale.
int64_t groupOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<QuantLevel> levels =
      cast<QuantizedType>(type.getElementType()).getLevels();
  return levels.empty() || levels[0].group == kWholeRow
             ? type.getShape().back()
             : levels[0].group;
}

/// The rows of a quantised value; the failure is reported.
FailureOr<QuantizeRowsSpec> rowsSpec(Operation *op, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto element = cast<QuantizedType>(type.getElementType());
  const QuantCode code = element.getCode();
  if (code.kind != CodeKind::Signed || element.isSparse() ||
      element.getLevels().size() != 1 ||
      element.getLevels()[0] !=
          QuantLevel::scaled(element.getLevels()[0].group, ScaleType::f32()))
    return op->emitOpError("expects activations in signed integers with one f32 "
                           "scale a token, head or group, but got ")
           << type;
  QuantizeRowsSpec spec;
  spec.width = ProgramLowering::rowElements(value);
  spec.bits = code.bits;
  if (int64_t group = groupOf(value); group != spec.width)
    spec.group = group;
  if (spec.row().group % 4 || type.getShape().back() % spec.row().group)
    return op->emitOpError("expects groups of a multiple of 4 numbers that "
                           "divide a row, but got ")
           << type;
  return spec;
}

IntegerLinearSpec shapeOf(ProgramLowering &p, Value input,
                          const sprig::quant::TensorLayout &weight) {
  IntegerLinearSpec spec;
  spec.format = weight.format;
  spec.n = int64_t(weight.N), spec.k = int64_t(weight.K);
  const int64_t group = groupOf(input);
  spec.xGroup = group == spec.k ? 0 : group;
  spec.tokens = p.tokenTile(p.rowsOf(input));
  return spec;
}

/// The spec of a product without its epilogue, where there is a kernel for it.
template <typename OpT>
std::optional<IntegerLinearSpec> integerProduct(ProgramLowering &p, OpT op,
                                                Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (op.getGamma() || op.getRowScale() || type.getRank() != 2)
    return std::nullopt;
  auto silent = [&] { return InFlightDiagnostic(); };
  auto layout = tiledLayout(type, kTileRows, silent);
  const int64_t group = groupOf(op.getInput());
  if (failed(layout) ||
      !IntegerLinearSpec::canMultiply(layout->format, group))
    return std::nullopt;
  return shapeOf(p, op.getInput(), *layout);
}

bool fits(ProgramLowering &p, const IntegerLinearSpec &spec) {
  auto interface =
      spec.interface(p.profile(), [] { return InFlightDiagnostic(); });
  return succeeded(interface) &&
         interface->bindings.size() <= p.profile().limits.storageBuffers &&
         p.rowsWithin(*interface, spec.n) == spec.n;
}

/// Whether `user` multiplies the integers of `value`.
bool takesIntegers(ProgramLowering &p, Operation *user, Value value) {
  if (user->getOperand(0) != value)
    return false;
  if (auto linear = dyn_cast<LinearOp>(user)) {
    auto spec = integerProduct(p, linear, linear.getWeight());
    if (!spec)
      return false;
    spec->bias = bool(linear.getBias());
    spec->residual = bool(linear.getResidual());
    return fits(p, *spec);
  }
  auto gated = dyn_cast<GatedLinearOp>(user);
  auto spec = gated ? integerProduct(p, gated, gated.getGate()) : std::nullopt;
  if (!spec)
    return false;
  spec->gate = stringifyActivationKind(gated.getKind());
  return fits(p, *spec);
}

Attribute integersMark(ProgramLowering &p, Value value) {
  // By its view: every value has one of its own.
  return p.ops().getStringAttr(
      "integers " +
      std::to_string(reinterpret_cast<uintptr_t>(value.getAsOpaquePointer())));
}

LogicalResult lowerQuantize(ProgramLowering &p, QuantizeOp op) {
  if (op.getClip())
    return op.emitOpError("expects activations that are not clipped, but got a "
                          "clip");
  return quantizeRows(p, op, /*norm=*/nullptr, op.getInput(), op.getResult());
}

LogicalResult lowerReshape(ProgramLowering &p, ReshapeOp op) {
  if (!p.view(op.getInput()))
    return op.emitOpError("expects an input that is whole, but got a part of a "
                          "product");
  p.setView(op.getResult(), p.view(op.getInput()), p.rowsOf(op.getInput()));
  return success();
}

} // namespace

bool holdsIntegers(ProgramLowering &p, Value value) {
  return bool(p.remembered(integersMark(p, p.resolve(value))));
}

LogicalResult quantizeRows(ProgramLowering &p, Operation *op, RmsNormOp norm,
                           Value input, Value result) {
  FailureOr<QuantizeRowsSpec> spec = rowsSpec(op, result);
  if (failed(spec))
    return failure();
  spec->rounded = !llvm::all_of(result.getUsers(), [&](Operation *user) {
    return takesIntegers(p, user, result);
  });
  if (!p.view(input))
    return op->emitOpError("expects an input that is whole, but got a part of a "
                           "product");
  SmallVector<Operand> operands{{"x", p.view(input)}};
  if (norm) {
    spec->norm = true;
    spec->eps = norm.getEps().convertToDouble();
    spec->count = norm.getCount().value_or(0);
    if (norm.getGamma()) {
      FailureOr<Value> gamma = p.vectorWeight(norm.getGamma(), op);
      if (failed(gamma))
        return failure();
      spec->gamma = true;
      operands.push_back({"gamma", *gamma});
    }
  }
  const int64_t rows = p.rowsOf(input);
  const int64_t words = spec->rounded ? spec->width : spec->row().words();
  Value y = p.scratch("quantized", uint64_t(p.paddedRows(rows) * words) * 4);
  p.setView(result, y, rows);
  if (!spec->rounded)
    p.remembered(integersMark(p, result)) = y;
  operands.push_back({"y", y});
  return p.dispatch(op, QuantizeRowsSpec::kFamily, spec->toAttr(p.context()),
                    operands, rows, norm ? "norm, quantize" : "quantize");
}

LogicalResult roundResult(ProgramLowering &p, Operation *op) {
  Value result = op->getResult(0);
  if (!isa<QuantizedType>(
          cast<RankedTensorType>(result.getType()).getElementType()))
    return success();
  return quantizeRows(p, op, /*norm=*/nullptr, result, result);
}

/// The group by which the kernel of `op` rounds its result; 0 where the result
/// is f32, or rounded by a kernel of its own.
static FailureOr<int64_t> roundedBy(ProgramLowering &p, GatedLinearOp op,
                                    const IntegerLinearSpec &spec) {
  Value result = op.getResult();
  if (!isa<QuantizedType>(
          cast<RankedTensorType>(result.getType()).getElementType()))
    return 0;
  FailureOr<QuantizeRowsSpec> rows = rowsSpec(op, result);
  if (failed(rows))
    return failure();
  const bool possible =
      rows->bits == 8 && spec.canRound(rows->row().group, p.profile()) &&
      llvm::all_of(result.getUsers(), [&](Operation *user) {
        return takesIntegers(p, user, result);
      });
  return possible ? rows->row().group : 0;
}

LogicalResult lowerIntegerLinear(ProgramLowering &p, LinearOp op) {
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return failure();
  IntegerLinearSpec spec = shapeOf(p, op.getInput(), weight->layout);
  SmallVector<Operand> operands = weight->named("weight");
  operands.push_back({"x", p.view(op.getInput())});
  if (op.getBias()) {
    FailureOr<Value> bias = p.vectorWeight(op.getBias(), op);
    if (failed(bias))
      return failure();
    spec.bias = true;
    operands.push_back({"bias", *bias});
  }
  if (op.getResidual()) {
    spec.residual = true;
    operands.push_back({"residual", p.view(op.getResidual())});
  }
  const int64_t rows = p.rowsOf(op.getInput());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, IntegerLinearSpec::kFamily, spec.toAttr(p.context()),
                    operands, rows,
                    op.getResidual() ? "linear, residual" : "linear",
                    spec.n * spec.k * rows);
}

LogicalResult lowerIntegerLinear(ProgramLowering &p, GatedLinearOp op) {
  FailureOr<WeightOperand> gate = p.tiledWeight(op.getGate(), op),
                           up = p.tiledWeight(op.getUp(), op);
  if (failed(gate) || failed(up))
    return failure();
  IntegerLinearSpec spec = shapeOf(p, op.getInput(), gate->layout);
  spec.gate = stringifyActivationKind(op.getKind());
  SmallVector<Operand> operands = gate->named("gate");
  operands.append(up->named("up"));
  operands.push_back({"x", p.view(op.getInput())});
  const int64_t rows = p.rowsOf(op.getInput()), work = 2 * spec.n * spec.k * rows;
  FailureOr<int64_t> group = roundedBy(p, op, spec);
  if (failed(group))
    return failure();
  if (*group) {
    spec.yGroup = *group;
    Value y = p.scratch("quantized", uint64_t(p.paddedRows(rows) *
                                              spec.yRow().words()) * 4);
    operands.push_back({"y", y});
    p.setView(op.getResult(), y, rows);
    p.remembered(integersMark(p, op.getResult())) = y;
    return p.dispatch(op, IntegerLinearSpec::kFamily, spec.toAttr(p.context()),
                      operands, rows, "gate, up, quantize", work);
  }
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  if (failed(p.dispatch(op, IntegerLinearSpec::kFamily, spec.toAttr(p.context()),
                        operands, rows, "gate, up", work)))
    return failure();
  return roundResult(p, op);
}

ArrayRef<OpLoweringRow> integerLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<QuantizeOp, lowerQuantize>(),
      loweringOf<ReshapeOp, lowerReshape>(),
  };
  return rows;
}

} // namespace mlir::llm
