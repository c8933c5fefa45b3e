// Products with a weight, and what is fused with them.
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// The RMS factor that a product scales its rows by, where it is of the rows
/// that the product reads anyway and the kernel can find it on the way.
template <typename OpT> RmsScaleOp findsFactor(ProgramLowering &p, OpT op) {
  auto scale =
      p.resolve(op.getRowScale()).template getDefiningOp<RmsScaleOp>();
  bool same = scale && !scale.getEps().isZero() &&
              p.resolve(scale.getInput()) == p.resolve(op.getInput());
  return same ? scale : nullptr;
}

/// What linear and gated_linear have in common: x, the norm, the result, and
/// the spec's shape.
template <typename OpT>
LogicalResult prepare(ProgramLowering &p, OpT op, const WeightOperand &weight,
                      LinearSpec &spec, SmallVectorImpl<Operand> &operands) {
  auto inputType = cast<RankedTensorType>(op.getInput().getType());
  auto resultType = cast<RankedTensorType>(op.getResult().getType());
  // Quantised rows lie as the f32 numbers that they stand for where they do not
  // lie as integers.
  const bool rounded = isa<QuantizedType>(inputType.getElementType());
  if (!(inputType.getElementType().isF32() || rounded) ||
      !resultType.getElementType().isF32())
    return op.emitOpError("expects activations of f32, but got ")
           << inputType << " and " << resultType;
  spec.format = weight.layout.format;
  spec.n = int64_t(weight.layout.N);
  spec.k = int64_t(weight.layout.K);
  spec.tokens = p.tokenTile(p.rowsOf(op.getInput()));
  p.addFormatTable(spec.format, operands);
  operands.push_back({"x", p.view(op.getInput())});
  if (!op.getGamma() && !op.getRowScale())
    return success();
  spec.norm = true;
  if (op.getGamma()) {
    FailureOr<Value> gamma = p.vectorWeight(op.getGamma(), op);
    if (failed(gamma))
      return failure();
    operands.push_back({"gamma", *gamma});
  } else {
    auto type = RankedTensorType::get({spec.k}, p.ops().getF32Type());
    operands.push_back(
        {"gamma", p.constant("ones", DenseElementsAttr::get(type, 1.0f))});
  }
  if (!op.getRowScale())
    return op.emitOpError("expects a row_scale beside gamma, but got none; "
                          "scale the weight's columns instead");
  if (auto scale = findsFactor(p, op)) {
    spec.eps = scale.getEps().convertToDouble();
    spec.count = scale.getCount().value_or(0);
  } else {
    operands.push_back({"factor", p.view(op.getRowScale())});
  }
  return success();
}

/// Rows of the weight that one kernel takes: all, or fewer where no binding can
/// span them. The failure is reported.
FailureOr<int64_t> rowsOfAPart(ProgramLowering &p, Operation *op,
                               const LinearSpec &spec) {
  FailureOr<KernelInterface> interface =
      spec.interface(p.profile(), [&] { return op->emitOpError(); });
  if (failed(interface))
    return failure();
  const int64_t part = p.rowsWithin(*interface, spec.n);
  if (part == 0) {
    op->emitOpError("expects a weight of which ")
        << ProgramLowering::kRowsOfAPart << " rows fit a binding of target '"
        << p.profile().name << "', but rows are " << spec.k << " wide";
    return failure();
  }
  return part;
}

/// y = x · wᵀ (+ bias) by as many kernels as it takes; no gate, no residual.
LogicalResult product(ProgramLowering &p, Operation *op, LinearSpec spec,
                      Value weight, ArrayRef<Operand> inputs, Value bias,
                      Value y, int64_t rows, StringRef what) {
  const int64_t all = spec.n;
  FailureOr<int64_t> part = rowsOfAPart(p, op, spec);
  if (failed(part))
    return failure();
  const uint64_t bytes = uint64_t(plan::getViewBytes(y));
  for (int64_t first = 0; first < all; first += *part) {
    spec.n = std::min(*part, all - first);
    spec.stride = *part == all ? 0 : all;
    FailureOr<WeightOperand> planes = p.rowsOfWeight(weight, first, spec.n, op);
    if (failed(planes))
      return failure();
    SmallVector<Operand> operands = planes->named("weight");
    llvm::append_range(operands, inputs);
    const uint64_t offset = uint64_t(first) * 4;
    auto partOf = [&](Value view, uint64_t size) {
      return *part == all ? view : p.slice(view, offset, size);
    };
    if (bias)
      operands.push_back({"bias", partOf(bias, uint64_t(spec.n) * 4)});
    operands.push_back({"y", partOf(y, bytes - offset)});
    if (failed(p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()),
                          operands, rows, what, spec.n * spec.k * rows)))
      return failure();
  }
  return success();
}

/// An elementwise operation of two inputs, after products that could not take
/// it along.
LogicalResult combine(ProgramLowering &p, Operation *op, StringRef kind,
                      StringRef activation, Value a, Value b, Value y,
                      int64_t rows, StringRef what) {
  ElementwiseSpec spec;
  spec.op = kind;
  spec.kind = activation;
  spec.width = p.rowElements(op->getResult(0));
  return p.dispatch(op, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                    {{"a", a}, {"b", b}, {"y", y}}, rows, what);
}

Value scratchLike(ProgramLowering &p, Value result, int64_t rows,
                  StringRef label) {
  return p.scratch(label, uint64_t(p.paddedRows(rows) *
                                   p.rowElements(result)) *
                              4);
}

/// The bias of a product, or a null value.
LogicalResult addBias(ProgramLowering &p, LinearOp op, LinearSpec &spec,
                      Value &bias) {
  if (!op.getBias())
    return success();
  FailureOr<Value> numbers = p.vectorWeight(op.getBias(), op);
  if (failed(numbers))
    return failure();
  spec.bias = true;
  bias = *numbers;
  return success();
}

LogicalResult lowerLinear(ProgramLowering &p, LinearOp op) {
  auto weightType = cast<RankedTensorType>(op.getWeight().getType());
  if (weightType.getRank() != 2)
    return op.emitOpError("expects a weight NxK, but got ") << weightType;
  if (holdsIntegers(p, op.getInput()))
    return lowerIntegerLinear(p, op);
  FailureOr<KVAppendOp> append = appendOf(p, op);
  if (failed(append))
    return failure();
  if (*append) // and the dispatch is the append's
    return success();
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return failure();
  LinearSpec spec;
  SmallVector<Operand> inputs;
  Value bias;
  if (failed(prepare(p, op, *weight, spec, inputs)) ||
      failed(addBias(p, op, spec, bias)))
    return failure();
  const int64_t rows = p.rowsOf(op.getInput());
  StringRef what = p.isResult(op.getResult()) ? "head"
                   : op.getResidual()         ? "linear, residual"
                                              : "linear";
  if (!op.getResidual())
    return product(p, op, spec, op.getWeight(), inputs, bias,
                   p.allocate(op.getResult(), rows), rows, what);

  FailureOr<int64_t> part = rowsOfAPart(p, op, spec);
  if (failed(part))
    return failure();
  if (*part != spec.n) {
    Value sum = scratchLike(p, op.getResult(), rows, "linear");
    if (failed(product(p, op, spec, op.getWeight(), inputs, bias, sum, rows,
                       "linear")))
      return failure();
    return combine(p, op, "add", "", sum, p.view(op.getResidual()),
                   p.allocate(op.getResult(), rows), rows, "residual");
  }
  spec.residual = true;
  SmallVector<Operand> operands = weight->named("weight");
  operands.append(inputs);
  if (bias)
    operands.push_back({"bias", bias});
  operands.push_back({"residual", p.view(op.getResidual())});
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  return p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows, what, spec.n * spec.k * rows);
}

LogicalResult lowerGatedLinear(ProgramLowering &p, GatedLinearOp op) {
  if (holdsIntegers(p, op.getInput()))
    return lowerIntegerLinear(p, op);
  FailureOr<WeightOperand> gate = p.tiledWeight(op.getGate(), op),
                           up = p.tiledWeight(op.getUp(), op);
  if (failed(gate) || failed(up))
    return failure();
  LinearSpec spec;
  SmallVector<Operand> inputs;
  if (failed(prepare(p, op, *gate, spec, inputs)))
    return failure();
  const int64_t rows = p.rowsOf(op.getInput());
  SmallVector<Operand> operands = gate->named("gate");
  operands.append(up->named("up"));
  operands.append(inputs);
  FailureOr<int64_t> part = rowsOfAPart(p, op, spec);
  if (failed(part))
    return failure();
  // Formats have up to four planes, and both matrices have them: two products
  // for a device whose kernels cannot bind all that the fused one reads.
  if (operands.size() + 1 > p.profile().limits.storageBuffers ||
      *part != spec.n) {
    Value sums[] = {scratchLike(p, op.getResult(), rows, "gate"),
                    scratchLike(p, op.getResult(), rows, "up")};
    if (failed(product(p, op, spec, op.getGate(), inputs, nullptr, sums[0],
                       rows, "gate")) ||
        failed(product(p, op, spec, op.getUp(), inputs, nullptr, sums[1], rows,
                       "up")))
      return failure();
    if (failed(combine(p, op, "gated", stringifyActivationKind(op.getKind()),
                       sums[0], sums[1], p.allocate(op.getResult(), rows), rows,
                       "gated")))
      return failure();
    return roundResult(p, op);
  }
  spec.gate = stringifyActivationKind(op.getKind());
  operands.push_back({"y", p.allocate(op.getResult(), rows)});
  if (failed(p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()),
                        operands, rows, "gate, up", 2 * spec.n * spec.k * rows)))
    return failure();
  return roundResult(p, op);
}

} // namespace

bool canAppend(ProgramLowering &p, LinearOp op, const RopeAppendSpec &append) {
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  if (op.getResidual() || p.isResult(op.getResult()) ||
      holdsIntegers(p, op.getInput()) || type.getRank() != 2)
    return false;
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return false;
  LinearSpec spec;
  spec.format = weight->layout.format;
  spec.n = int64_t(weight->layout.N), spec.k = int64_t(weight->layout.K);
  spec.tokens = p.tokenTile(p.rowsOf(op.getInput()));
  FailureOr<int64_t> part = rowsOfAPart(p, op, spec);
  return succeeded(part) && *part == spec.n &&
         spec.canAppend(append, p.profile());
}

LogicalResult lowerAppendingLinear(ProgramLowering &p, LinearOp op,
                                   const RopeAppendSpec &append,
                                   ArrayRef<Operand> others) {
  FailureOr<WeightOperand> weight = p.tiledWeight(op.getWeight(), op);
  if (failed(weight))
    return failure();
  LinearSpec spec;
  SmallVector<Operand> operands = weight->named("weight");
  Value bias;
  if (failed(prepare(p, op, *weight, spec, operands)) ||
      failed(addBias(p, op, spec, bias)))
    return failure();
  if (bias)
    operands.push_back({"bias", bias});
  llvm::append_range(operands, others);
  spec.append = append;
  const int64_t rows = p.rowsOf(op.getInput());
  return p.dispatch(op, LinearSpec::kFamily, spec.toAttr(p.context()), operands,
                    rows, "linear, rope, append", spec.n * spec.k * rows);
}

bool findsFactor(ProgramLowering &p, Operation *user, Value factor) {
  auto check = [&](auto product) {
    return product && product.getRowScale() == factor &&
           findsFactor(p, product);
  };
  return check(dyn_cast<LinearOp>(user)) || check(dyn_cast<GatedLinearOp>(user));
}

ArrayRef<OpLoweringRow> linearLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<GatedLinearOp, lowerGatedLinear>(),
      loweringOf<LinearOp, lowerLinear>(),
  };
  return rows;
}

} // namespace mlir::llm
