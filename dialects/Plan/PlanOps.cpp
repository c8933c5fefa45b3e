// Assembly pieces, and verifiers of what a module and its targets hold; those
// of programs are in PlanProgramOps.cpp. Each check carries the number of its
// constraint in PlanOps.td.
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::plan;

//===--------------------------------------------------------------------------------------------------------------===//
// Assembly
//===--------------------------------------------------------------------------------------------------------------===//

/// An integer without its type: `bytes 256` and not `bytes 256 : i64`.
static ParseResult parsePlain(OpAsmParser &parser, IntegerAttr &attribute) {
  int64_t value = 0;
  if (parser.parseInteger(value))
    return failure();
  attribute = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printPlain(OpAsmPrinter &printer, Operation *,
                       IntegerAttr attribute) {
  printer << attribute.getInt();
}

/// An enumeration as a bare word.
template <typename EnumAttrT>
static ParseResult parseKeyword(OpAsmParser &parser, EnumAttrT &attribute) {
  using Enum = decltype(attribute.getValue());
  StringRef word;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Enum> value = symbolizeEnum<Enum>(word);
  if (!value)
    return parser.emitError(location)
           << "expects a kind, but got '" << word << "'";
  attribute = EnumAttrT::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttrT>
static void printKeyword(OpAsmPrinter &printer, Operation *,
                         EnumAttrT attribute) {
  printer << stringifyEnum(attribute.getValue());
}

/// A region of one block that is not printed while the block is empty.
static ParseResult parseOptionalRegion(OpAsmParser &parser, Region &region) {
  OptionalParseResult result = parser.parseOptionalRegion(region);
  if (result.has_value() && failed(*result))
    return failure();
  if (region.empty())
    region.emplaceBlock();
  return success();
}

static void printOptionalRegion(OpAsmPrinter &printer, Operation *,
                                Region &region) {
  if (region.front().empty())
    return;
  printer << " ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

/// `(in %a, out %b)`
static ParseResult
parseBindings(OpAsmParser &parser,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &bindings,
              DenseI32ArrayAttr &access) {
  SmallVector<int32_t> values;
  auto parseOne = [&]() -> ParseResult {
    StringRef word;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<Access> value = symbolizeAccess(word);
    if (!value)
      return parser.emitError(location)
             << "expects in, out or inout before a binding, but got '" << word
             << "'";
    values.push_back(static_cast<int32_t>(*value));
    return parser.parseOperand(bindings.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  access = parser.getBuilder().getDenseI32ArrayAttr(values);
  return success();
}

static void printBindings(OpAsmPrinter &printer, Operation *,
                          OperandRange bindings, DenseI32ArrayAttr access) {
  printer << "(";
  llvm::interleaveComma(
      llvm::zip(bindings, access.asArrayRef()), printer, [&](auto pair) {
        printer << stringifyAccess(static_cast<Access>(std::get<1>(pair)))
                << " " << std::get<0>(pair);
      });
  printer << ")";
}

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

//===--------------------------------------------------------------------------------------------------------------===//
// Module and target level
//===--------------------------------------------------------------------------------------------------------------===//

LogicalResult TensorOp::verify() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getNumOperands() != 1) // C1
    return emitOpError("expects its region to yield one value, but got ")
           << yield.getNumOperands();
  if (static_cast<int64_t>(getBytes()) <= 0) // C2
    return emitOpError("expects at least 1 byte, but got ")
           << static_cast<int64_t>(getBytes());
  if (auto offset = getOffset(); offset && *offset % kAlignment != 0) // C3
    return emitOpError("expects an offset that is a multiple of ")
           << kAlignment << ", but got " << *offset;
  return success();
}

BufferOp TargetOp::findBuffer(BufferKind kind) {
  for (BufferOp buffer : getOps<BufferOp>())
    if (buffer.getKind() == kind)
      return buffer;
  return {};
}

LogicalResult TargetOp::verify() {
  llvm::SmallDenseMap<std::pair<unsigned, std::pair<int64_t, int64_t>>,
                      ProgramOp>
      programs;
  llvm::SmallDenseMap<unsigned, BufferOp> buffers;
  for (Operation &op : getBody().front()) {
    if (!isa<KernelOp, BufferOp, KvCacheOp, ProgramOp>(op)) // C1
      return op.emitError("expects kernels, buffers, caches and programs in a "
                          "target, but got '")
             << op.getName() << "'";
    if (auto program = dyn_cast<ProgramOp>(op)) {
      auto [it, isNew] = programs.try_emplace(
          {unsigned(program.getKind()),
           {program.getWidth(), program.getGuess().value_or(0)}},
          program);
      if (!isNew) // C2
        return program.emitOpError("expects one program for each kind and "
                                   "width, but got a second one for '")
               << stringifyProgramKind(program.getKind()) << "' of width "
               << program.getWidth() << " after @" << it->second.getSymName();
    }
    if (auto buffer = dyn_cast<BufferOp>(op);
        buffer && buffer.getKind() != BufferKind::kv) {
      auto [it, isNew] =
          buffers.try_emplace(unsigned(buffer.getKind()), buffer);
      if (!isNew) // C3
        return buffer.emitOpError("expects at most one buffer of kind '")
               << stringifyBufferKind(buffer.getKind())
               << "', but got one after @" << it->second.getSymName();
    }
  }
  return success();
}

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     StringRef family, DictionaryAttr spec) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.family = builder.getStringAttr(family);
  properties.spec = spec;
  state.addRegion()->emplaceBlock();
}

LogicalResult KernelOp::verify() {
  Operation *module = getModule();
  size_t operations = getCode().front().getOperations().size();
  if (module && (operations != 1 ||
                 !isa<gpu::GPUModuleOp, spirv::ModuleOp>(module))) // C1
    return emitOpError(
               "expects one gpu.module or spirv.module in its region, but got ")
           << (operations == 1
                   ? "'" + module->getName().getStringRef().str() + "'"
                   : std::to_string(operations) + " operations");
  if (module && getSpirv()) // C2
    return emitOpError(
        "expects device code in one form, but got a region and SPIR-V words");
  if (getSpirv() && (!getEntry() || !getWorkgroup() || !getAccess())) // C3
    return emitOpError("expects entry, access and workgroup beside SPIR-V "
                       "words, but got no ")
           << (!getEntry()    ? "entry"
               : !getAccess() ? "access"
                              : "workgroup");
  if (auto workgroup = getWorkgroup();
      workgroup &&
      (workgroup->size() != 3 ||
       llvm::any_of(*workgroup, [](int32_t n) { return n < 1; }))) // C4
    return emitOpError("expects three workgroup sizes of at least 1, but got ")
           << getWorkgroupAttr();
  if (auto texels = getTexelFormats();
      texels && (!getAccess() || texels->size() != getAccess()->size())) // C5
    return emitOpError("expects a texel format for each binding in access, "
                       "but got ")
           << texels->size() << " for "
           << (getAccess() ? getAccess()->size() : 0);
  return success();
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getBytes()) <= 0) // C1
    return emitOpError("expects at least 1 byte, but got ")
           << static_cast<int64_t>(getBytes());
  if (auto offset = getOffset()) { // C2
    if (getKind() != BufferKind::weights)
      return emitOpError("expects no offset on a buffer of kind '")
             << stringifyBufferKind(getKind()) << "', but got " << *offset;
    if (*offset % kPageBytes != 0)
      return emitOpError("expects an offset that is a multiple of ")
             << kPageBytes << ", but got " << *offset;
  }
  return success();
}

LogicalResult KvCacheOp::verify() {
  for (auto [name, value] : {std::pair("layers", getLayers()),
                             {"heads", getHeads()},
                             {"head_size", getHeadSize()},
                             {"capacity", getCapacity()}})
    if (static_cast<int64_t>(value) < 1) // C2
      return emitOpError("expects ") << name << " of at least 1, but got "
                                     << static_cast<int64_t>(value);
  for (auto [name, value] :
       {std::pair("window", getWindow()), {"sinks", getSinks()}})
    if (static_cast<int64_t>(value) < 0) // C2
      return emitOpError("expects ") << name << " of at least 0, but got "
                                     << static_cast<int64_t>(value);
  if (getPlaneOffsets().size() != getSlotBytes().size()) // C3
    return emitOpError("expects as many plane_offsets as slot_bytes, but got ")
           << getPlaneOffsets().size() << " and " << getSlotBytes().size();
  const int64_t part = int64_t(getBytes() / getLayers());
  for (auto [offset, slot] : llvm::zip_equal(getPlaneOffsets(), getSlotBytes()))
    if (offset < 0 || slot < 1 || offset > part ||
        slot > (part - offset) / int64_t(getCapacity())) // C3
      return emitOpError("expects planes inside the ")
             << part << " bytes of a layer, but got " << getCapacity()
             << " slots of " << slot << " bytes at " << offset;
  return success();
}

LogicalResult KvCacheOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto buffer =
      symbols.lookupNearestSymbolFrom<BufferOp>(*this, getBufferAttr());
  if (!buffer || buffer.getKind() != BufferKind::kv) // C1
    return emitOpError("expects a buffer of kind 'kv', but got ")
           << getBufferAttr();
  if (getOffset() + getBytes() > buffer.getBytes()) // C1
    return emitOpError("expects its bytes inside ")
           << getBufferAttr() << " of " << buffer.getBytes()
           << " bytes, but got " << getOffset() << " + " << getBytes();
  return success();
}

LogicalResult ProgramOp::verify() {
  if (static_cast<int64_t>(getWidth()) < 1) // C1
    return emitOpError("expects a width of at least 1, but got ")
           << static_cast<int64_t>(getWidth());
  for (Operation &op : getBody().front())
    if (!isa<ViewOp, WeightOp, ScratchOp, SliceOp, DispatchOp, BarrierOp>(
            op)) // C2
      return op.emitError("expects views, scratch values, dispatches and "
                          "barriers in a program, but got '")
             << op.getName() << "'";
  const bool drafts = getKind() == ProgramKind::draft; // C3
  if (drafts != getGuess().has_value())
    return emitOpError("expects the number of a guess for a draft, and none "
                       "for others, but got kind '")
           << stringifyProgramKind(getKind()) << "'"
           << (getGuess() ? " with" : " without") << " a number";
  return success();
}
