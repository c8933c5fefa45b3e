#include "codegen/Lowering/ProgramLowering.h"

#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Lowering/LastRow.h"
#include "codegen/Lowering/OpLowerings.h"
#include "lib/Weights/WeightExpr.h"
#include "runtime/Format/Control.h"

namespace mlir::llm {

static plan::ProgramOp makeProgram(plan::TargetOp target,
                                   plan::ProgramKind kind, int64_t width,
                                   std::optional<int64_t> guess) {
  auto builder = OpBuilder::atBlockEnd(&target.getBody().front());
  std::string name =
      (plan::stringifyProgramKind(kind) + "_" + Twine(guess.value_or(width)))
          .str();
  if (guess && width > 1)
    name += "_" + std::to_string(width);
  auto program = plan::ProgramOp::create(
      builder, target.getLoc(), name, kind, width,
      guess ? builder.getI64IntegerAttr(*guess) : IntegerAttr());
  builder.createBlock(&program.getBody());
  return program;
}

ProgramLowering::ProgramLowering(TargetLowering &target,
                                 const FlatFunction &function,
                                 plan::ProgramKind kind, int64_t width,
                                 std::optional<int64_t> guess)
    : targetLowering(target), flat(function),
      needed(function.needed(kind != plan::ProgramKind::append)),
      stepWidth(width), program(makeProgram(target.op(), kind, width, guess)),
      builder(OpBuilder::atBlockEnd(&program.getBody().front())) {}

LogicalResult ProgramLowering::run() {
  const bool draft = kind() == plan::ProgramKind::draft;
  if (draft && failed(takeHidden(*this)))
    return failure();
  // Early, so that its memory is free for what follows.
  Value left = hiddenToLeave(*this);
  Operation *last = left ? resolve(left).getDefiningOp() : nullptr;
  const LastRow lastRow = LastRow::of(*this);
  for (const FlatOp &entry : flat.ops()) {
    if (entry.op == lastRow.first && failed(pickLastRow(*this, lastRow)))
      return failure();
    if (needed.contains(entry.op) && failed(lower(entry)))
      return failure();
    if (entry.op == last && failed(leaveHidden(*this)))
      return failure();
  }
  if ((draft && failed(passHidden(*this))) || failed(keepAccepted(*this)))
    return failure();
  if (kind() != plan::ProgramKind::sample && !draft)
    return success();
  Value logits = flat.resolve(flat.result());
  where = "";
  // The nodes of a draft's tree are the host's to choose.
  if (!(draft && width() > 1) &&
      failed(lowerSampling(*this, logits.getDefiningOp(), logits)))
    return failure();
  return draft ? lowerGuesses(*this, logits.getDefiningOp(), logits)
               : success();
}

LogicalResult ProgramLowering::lower(const FlatOp &entry) {
  // Weights are reached through the operations that use them.
  if (entry.op->getNumResults() == 1 && isWeightExpr(entry.op->getResult(0)))
    return success();
  where = entry.where;
  if (OpLowering lowering = findOpLowering(entry.op))
    return lowering(*this, entry.op);
  return entry.op->emitOpError()
         << "expects an operation that a kernel covers on target '"
         << profile().name
         << "', but there is none for it; run llm-default-pipeline first, or "
            "rewrite it with "
            "operations that have one: "
         << llvm::join(loweredOps(), ", ");
}

//===--------------------------------------------------------------------------------------------------------------===//
// Activations
//===--------------------------------------------------------------------------------------------------------------===//

int64_t ProgramLowering::rowsOf(Value value) const {
  auto it = rows.find(resolve(value));
  return it == rows.end() ? stepWidth : it->second;
}

int64_t ProgramLowering::rowElements(Value value) {
  int64_t elements = 1;
  for (int64_t size :
       cast<RankedTensorType>(value.getType()).getShape().drop_front())
    elements *= size;
  return elements;
}

int64_t ProgramLowering::paddedRows(int64_t rows) {
  return plan::alignTo(rows, tokenTile(rows));
}

int64_t ProgramLowering::tokenTile(int64_t rows) {
  return profile().tokenTile(rows);
}

void ProgramLowering::setView(Value result, Value view, int64_t rowCount) {
  views[result] = view;
  rows[result] = rowCount;
}

Value ProgramLowering::scratch(StringRef label, uint64_t bytes) {
  std::string name = where.empty() ? label.str() : (where + " " + label).str();
  return plan::ScratchOp::create(builder, program.getLoc(),
                                 builder.getStringAttr(name),
                                 builder.getI64IntegerAttr(int64_t(bytes)));
}

Value ProgramLowering::allocate(Value result, int64_t rowCount) {
  uint64_t bytes = uint64_t(paddedRows(rowCount) * rowElements(result)) * 4;
  Value view;
  if (isResult(result)) {
    plan::BufferOp logits =
        targetLowering.buffer(plan::BufferKind::logits, "logits", bytes);
    view = plan::ViewOp::create(builder, program.getLoc(), logits.getSymName(),
                                0, bytes);
  } else {
    view = scratch(result.getDefiningOp()->getName().stripDialect(), bytes);
  }
  setView(result, view, rowCount);
  return view;
}

//===--------------------------------------------------------------------------------------------------------------===//
// State and weights
//===--------------------------------------------------------------------------------------------------------------===//

Value ProgramLowering::bufferView(plan::BufferOp buffer, uint64_t offset,
                                  uint64_t bytes) {
  Value &known = placed[builder.getArrayAttr(
      {buffer.getSymNameAttr(), builder.getI64IntegerAttr(int64_t(offset)),
       builder.getI64IntegerAttr(int64_t(bytes))})];
  if (!known)
    known = plan::ViewOp::create(builder, program.getLoc(), buffer.getSymName(),
                                 offset, bytes);
  return known;
}

Value ProgramLowering::controlView() {
  constexpr uint64_t bytes = 4 * sprig::format::ControlWords;
  return bufferView(
      targetLowering.buffer(plan::BufferKind::control, "control", bytes), 0,
      bytes);
}

Value ProgramLowering::historyView() {
  uint64_t bytes = targetLowering.historyBytes();
  return bufferView(
      targetLowering.buffer(plan::BufferKind::history, "history", bytes), 0,
      bytes);
}

Value ProgramLowering::weightView(plan::TensorOp tensor, uint64_t offset,
                                  uint64_t bytes) {
  Value &known = placed[builder.getArrayAttr(
      {builder.getUnitAttr(), tensor.getSymNameAttr(),
       builder.getI64IntegerAttr(int64_t(offset)),
       builder.getI64IntegerAttr(int64_t(bytes))})];
  if (!known)
    known = plan::WeightOp::create(builder, program.getLoc(),
                                   tensor.getSymName(), offset, bytes);
  return known;
}

SmallVector<Operand> WeightOperand::named(StringRef prefix) const {
  SmallVector<Operand> list(planes);
  for (Operand &operand : list)
    operand.role = (prefix + "." + operand.role).str();
  return list;
}

FailureOr<WeightOperand> ProgramLowering::tiledWeight(Value weight,
                                                      Operation *user) {
  weight = resolve(weight);
  FailureOr<sprig::quant::TensorLayout> layout =
      tiledLayout(cast<RankedTensorType>(weight.getType()), kTileRows,
                  [&] { return user->emitOpError(); });
  if (failed(layout))
    return failure();
  WeightOperand operand{*layout, {}};
  const BlockCodec *codec = BlockCodec::find(layout->format);
  const bool inOne = codec && codec->inOneBinding();
  if (inOne && layout->bytes > profile().limits.storageRange)
    return operand;
  FailureOr<plan::TensorOp> tensor =
      targetLowering.weights().get(weight, tiledLayoutName(kTileRows), user);
  if (failed(tensor))
    return failure();
  if (inOne) {
    operand.planes.push_back(
        {kAllPlanes.str(), weightView(*tensor, 0, layout->bytes)});
    return operand;
  }
  for (const sprig::quant::PlaneLayout &plane : layout->planes)
    operand.planes.push_back({std::string(plane.name),
                              weightView(*tensor, plane.offset, plane.bytes)});
  return operand;
}

FailureOr<WeightOperand> ProgramLowering::rowsOfWeight(Value weight,
                                                       int64_t first,
                                                       int64_t count,
                                                       Operation *user) {
  weight = resolve(weight);
  FailureOr<WeightOperand> whole = tiledWeight(weight, user);
  if (failed(whole) || (first == 0 && size_t(count) == whole->layout.N))
    return whole;
  const sprig::quant::TensorLayout &all = whole->layout;
  if (whole->planes.size() != all.planes.size())
    return rowsApart(weight, first, count, all, user);
  FailureOr<plan::TensorOp> tensor =
      targetLowering.weights().get(weight, tiledLayoutName(kTileRows), user);
  WeightOperand part{
      sprig::quant::describe(all.format, size_t(count), all.K, {kTileRows}),
      {}};
  for (auto [plane, own] : llvm::zip_equal(all.planes, part.layout.planes))
    part.planes.push_back(
        {std::string(plane.name),
         weightView(*tensor,
                    plane.offset +
                        size_t(first) / kTileRows * all.tileBytes(plane),
                    own.bytes)});
  return part;
}

FailureOr<WeightOperand>
ProgramLowering::rowsApart(Value weight, int64_t first, int64_t count,
                           const sprig::quant::TensorLayout &all,
                           Operation *user) {
  // Rows of the first dimension; a part of experts is whole ones.
  const int64_t size =
      cast<RankedTensorType>(weight.getType()).getDimSize(0);
  const int64_t inner = int64_t(all.N) / size;
  OpBuilder at(weight.getContext());
  at.setInsertionPointAfterValue(weight);
  // The table keeps a copy of the expression.
  auto rows = SliceOp::create(at, user->getLoc(), weight, first / inner,
                              (first + count) / inner, 0);
  FailureOr<WeightOperand> part = tiledWeight(rows, user);
  rows.erase();
  return part;
}

int64_t ProgramLowering::rowsWithin(const KernelInterface &interface,
                                    int64_t rows) const {
  int64_t fit = rows;
  for (const KernelBinding &binding : interface.bindings) {
    const uint64_t most =
        binding.mostBytes(targetLowering.profile().limits);
    if (binding.perToken || binding.bytes <= most ||
        binding.role.find('.') == std::string::npos)
      continue;
    const uint64_t tiles = uint64_t(rows + kTileRows - 1) / kTileRows;
    fit = std::min(fit, int64_t(most / (binding.bytes / tiles)) * kTileRows);
  }
  return fit == rows ? rows : fit / kRowsOfAPart * kRowsOfAPart;
}

Value ProgramLowering::slice(Value view, uint64_t offset, uint64_t bytes) {
  return plan::SliceOp::create(builder, program.getLoc(), view,
                               int64_t(offset), int64_t(bytes));
}

Value ProgramLowering::constant(StringRef name, DenseElementsAttr value) {
  plan::TensorOp tensor = targetLowering.weights().constant(name, value);
  return weightView(tensor, 0, tensor.getBytes());
}

void ProgramLowering::addFormatTable(sprig::quant::Format format,
                                     SmallVectorImpl<Operand> &operands) {
  const BlockCodec *codec = BlockCodec::find(format);
  if (!codec || codec->table().empty())
    return; // a format without kernels is refused by the family
  ArrayRef<float> numbers = codec->table();
  auto type =
      RankedTensorType::get({int64_t(numbers.size())}, builder.getF32Type());
  std::string name =
      (kTableRole + "." + StringRef(sprig::quant::info(format).name).lower())
          .str();
  operands.push_back({kTableRole.str(),
                      constant(name, DenseElementsAttr::get(type, numbers))});
}

FailureOr<Value> ProgramLowering::vectorWeight(Value weight, Operation *user) {
  FailureOr<plan::TensorOp> tensor =
      targetLowering.weights().get(resolve(weight), kLayoutF32, user);
  if (failed(tensor))
    return failure();
  return weightView(*tensor, 0, tensor->getBytes());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Dispatches
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult ProgramLowering::dispatch(Operation *op, StringRef family,
                                        DictionaryAttr spec,
                                        ArrayRef<Operand> operands,
                                        int64_t rowCount, StringRef what,
                                        int64_t macs, Value groupCounts,
                                        ContextWork context, GridPart along) {
  FailureOr<const KernelInterface *> kernel =
      targetLowering.kernel(family, spec, op);
  if (failed(kernel))
    return failure();
  const KernelInterface &interface = **kernel;
  SmallVector<Value> bindings;
  SmallVector<plan::Access> access;
  uint64_t touched = 0;
  for (const KernelBinding &binding : interface.bindings) {
    const Operand *found = llvm::find_if(
        operands, [&](const Operand &o) { return o.role == binding.role; });
    if (found == operands.end())
      return op->emitOpError()
             << "expects a buffer for '" << binding.role << "' of kernel '"
             << interface.name << "', but lowering offers none";
    uint64_t least = binding.bytes * uint64_t(binding.perToken ? rowCount : 1) -
                     binding.shorter;
    uint64_t has = uint64_t(plan::getViewBytes(found->view));
    if (has < least)
      return op->emitOpError()
             << "expects " << least << " bytes for '" << binding.role
             << "' of kernel '" << interface.name << "', but got " << has;
    uint64_t most = binding.mostBytes(profile().limits);
    if (has > most)
      return op->emitOpError()
             << "expects bindings of at most " << most << " bytes on target '"
             << profile().name << "', but '" << binding.role << "' has " << has;
    bindings.push_back(found->view);
    access.push_back(plan::Access(unsigned(binding.access)));
    touched += found->touched < 0 ? least : uint64_t(found->touched);
  }
  std::array<uint32_t, 3> counts = interface.groupsFor(uint32_t(rowCount));
  if (along.count)
    counts[2] = uint32_t(along.count);
  for (uint32_t count : counts)
    if (count == 0 || count > profile().limits.groups)
      return op->emitOpError()
             << "expects 1 to " << profile().limits.groups
             << " workgroups in a direction on target '" << profile().name
             << "', but kernel '" << interface.name << "' needs " << count;
  SmallVector<int32_t> groups(counts.begin(), counts.end());
  std::string label = where.empty() ? what.str() : (where + " " + what).str();
  auto dispatch = plan::DispatchOp::create(
      builder, op->getLoc(), interface.name, bindings, access, groups, label,
      macs, int64_t(touched));
  dispatch.setNanoseconds(
      int64_t(1e9 * profile().estimateSeconds(
                        touched + uint64_t(context.bytes),
                        uint64_t(macs + context.macs))));
  if (groupCounts)
    dispatch.getIndirectMutable().assign(groupCounts);
  if (along.first)
    dispatch.setBase(ArrayRef<int32_t>{0, 0, along.first});
  return success();
}

} // namespace mlir::llm
