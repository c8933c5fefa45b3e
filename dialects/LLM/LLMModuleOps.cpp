// Sources, tokenizers and layers.
#include "dialects/LLM/LLM.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::llm;

LogicalResult SourceOp::verify() {
  if (getPath() && !getFormat()) // C1
    return emitOpError("expects a format beside the path, but got only '")
           << *getPath() << "'";
  if (getBytes() && *getBytes() < 0) // C2
    return emitOpError("expects a size that is not negative, but got ")
           << *getBytes();
  return success();
}

LogicalResult TokenizerOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<SourceOp>(*this, getSourceAttr())) // C1
    return emitOpError("expects an llm.source, but got @") << getSource();
  return success();
}

LogicalResult TokenizerOp::verify() {
  if (!getKeep())
    return success();
  llvm::SmallDenseSet<int32_t> seen;
  ArrayRef<int32_t> keep = *getKeep();
  for (int32_t id : keep) {
    if (id < 0) // C2
      return emitOpError("expects ids that are not negative, but got ") << id;
    if (!seen.insert(id).second) // C2
      return emitOpError("expects each id to be kept once, but got ")
             << id << " twice";
  }
  return success();
}

//===- layer ------------------------------------------------------------===//

void LayerOp::build(OpBuilder &builder, OperationState &state, int64_t index,
                    StringRef kind, ValueRange inputs) {
  state.addOperands(inputs);
  state.addTypes(inputs.getTypes());
  state.addAttribute(getIndexAttrName(state.name),
                     builder.getI64IntegerAttr(index));
  state.addAttribute(getKindAttrName(state.name), builder.getStringAttr(kind));
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations =
      llvm::map_to_vector(inputs, [](Value value) { return value.getLoc(); });
  builder.createBlock(body, {}, inputs.getTypes(), locations);
}

/// `3 "decoder" (%h = %x : type, …) { … }`, with `attributes {…}` before the
/// body where there are any.
ParseResult LayerOp::parse(OpAsmParser &parser, OperationState &result) {
  IntegerAttr index;
  StringAttr kind;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  auto parseInput = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(inputs.emplace_back()) ||
                   parser.parseColonType(arguments.back().type));
  };
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseAttribute(index, parser.getBuilder().getI64Type(),
                            getIndexAttrName(result.name), result.attributes) ||
      parser.parseAttribute(kind, getKindAttrName(result.name),
                            result.attributes) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseInput) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    result.addTypes(argument.type);
  return parser.resolveOperands(inputs, result.types, location,
                                result.operands);
}

void LayerOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getIndex() << ' ' << getKindAttr() << " (";
  llvm::interleaveComma(
      llvm::zip_equal(getBodyBlock()->getArguments(), getInputs()), printer,
      [&](auto pair) {
        auto [argument, input] = pair;
        printer << argument << " = " << input << " : " << input.getType();
      });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getIndexAttrName(), getKindAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void LayerOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() == 1)
    setName(region.getArgument(0), "h");
}

YieldOp LayerOp::getYield() {
  return cast<YieldOp>(getBodyBlock()->getTerminator());
}

void LayerOp::getSuccessorRegions(RegionBranchPoint point,
                                  SmallVectorImpl<RegionSuccessor> &regions) {
  if (point.isParent())
    regions.push_back(
        RegionSuccessor(&getBody(), getBodyBlock()->getArguments()));
  else
    regions.push_back(RegionSuccessor(getOperation(), getOutputs()));
}

OperandRange LayerOp::getEntrySuccessorOperands(RegionSuccessor) {
  return getInputs();
}

void LayerOp::getRegionInvocationBounds(
    ArrayRef<Attribute>, SmallVectorImpl<InvocationBounds> &bounds) {
  bounds.emplace_back(1, 1);
}

LogicalResult LayerOp::verify() {
  if (getIndex() < 0) // C1
    return emitOpError("expects an index that is not negative, but got ")
           << getIndex();
  TypeRange inputs = getInputs().getTypes();
  TypeRange arguments = getBodyBlock()->getArgumentTypes();
  if (inputs != arguments) // C2
    return emitOpError("expects block arguments of types (")
           << inputs << "), but got (" << arguments << ')';
  if (inputs != getOutputs().getTypes()) // C3
    return emitOpError("expects results of types (")
           << inputs << "), but got (" << getOutputs().getTypes() << ')';
  auto yield = dyn_cast<YieldOp>(getBodyBlock()->getTerminator());
  TypeRange yielded =
      yield ? TypeRange(yield.getValues().getTypes()) : TypeRange();
  if (!yield || yielded != getOutputs().getTypes()) // C4
    return emitOpError("expects to yield (")
           << getOutputs().getTypes() << "), but got (" << yielded << ')';
  return success();
}
