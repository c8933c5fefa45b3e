// Caches and attention: shapes, verifiers, text of `llm.kv_cache`.
#include "dialects/LLM/IntegerAttention.h"
#include "dialects/LLM/Verify.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::llm;

/// `@kv : 30 x type`, the count left out where it is 1.
ParseResult KVCacheOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  int64_t count = 1;
  Type type;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon())
    return failure();
  OptionalParseResult number = parser.parseOptionalInteger(count);
  if (number.has_value() && (failed(*number) || parser.parseKeyword("x")))
    return failure();
  if (parser.parseType(type))
    return failure();
  result.addAttribute(getCountAttrName(result.name),
                      parser.getBuilder().getI64IntegerAttr(count));
  result.addAttribute(getTypeAttrName(result.name), TypeAttr::get(type));
  return success();
}

void KVCacheOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getCountAttrName(), getTypeAttrName()});
  printer << " : ";
  if (getCount() != 1)
    printer << getCount() << " x ";
  printer << getType();
}

LogicalResult KVCacheOp::verify() {
  if (getCount() < 1) // C1
    return emitOpError("expects a positive count, but got ") << getCount();
  return success();
}

LogicalResult KVOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto cache =
      symbols.lookupNearestSymbolFrom<KVCacheOp>(*this, getCacheAttr());
  if (!cache) // C1
    return emitOpError("expects an llm.kv_cache, but got @") << getCache();
  if (getIndex() < 0 || getIndex() >= cache.getCount()) // C2
    return emitOpError("expects an index from 0 to ")
           << cache.getCount() - 1 << ", but got " << getIndex();
  if (getHandle().getType() != cache.getCacheType()) // C3
    return emitOpError("expects a handle of type ")
           << cache.getCacheType() << ", but got " << getHandle().getType();
  return success();
}

LogicalResult KVAppendOp::verify() {
  KVType cache = getCache().getType();
  auto fits = [&](RankedTensorType type, int64_t width) {
    return type.getRank() == 3 &&
           !differ(type.getShape().drop_front(), {cache.getHeads(), width});
  };
  auto key = getKey().getType();
  if (!fits(key, cache.getKeyWidth())) // C1
    return emitOpError("expects keys Tx")
           << cache.getHeads() << 'x' << cache.getKeyWidth() << ", but got "
           << shapeText(key.getShape());
  if (static_cast<bool>(getValue()) == cache.isValuePrefix()) // C2
    return emitOpError("expects ")
           << (cache.isValuePrefix() ? "no values" : "values") << " for "
           << cache << ", but got "
           << (cache.isValuePrefix() ? "some" : "none");
  if (getSlots() && getBase()) // C3
    return emitOpError("expects slots or a base, but got both");
  if (!getValue())
    return success();
  auto value = getValue().getType();
  if (!fits(value, cache.getValueWidth()) ||
      differ(value.getDimSize(0), key.getDimSize(0))) // C2
    return emitOpError("expects values ")
           << shapeText(
                  {key.getDimSize(0), cache.getHeads(), cache.getValueWidth()})
           << ", but got " << shapeText(value.getShape());
  return success();
}

//===- attention --------------------------------------------------------===//

/// The result has the shape of the queries, with the width of the values.
static LogicalResult inferAttention(Value query, Value cache,
                                    SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(query.getType());
  auto kv = dyn_cast<KVType>(cache.getType());
  if (!type || !kv || type.getRank() < 1)
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = kv.getValueWidth();
  types.push_back(withShape(type, shape));
  return success();
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferAttention(adaptor.getQuery(), adaptor.getCache(), types);
}

LogicalResult TreeAttentionOp::inferReturnTypes(MLIRContext *,
                                                std::optional<Location>,
                                                Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  return inferAttention(adaptor.getQuery(), adaptor.getCache(), types);
}

/// C1 to C5, which both attentions share.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  auto query = op.getQuery().getType();
  KVType cache = op.getCache().getType();
  if (query.getRank() != 3 ||
      differ(query.getDimSize(2), cache.getKeyWidth()) ||
      query.getDimSize(1) % cache.getHeads()) // C1
    return op.emitOpError("expects queries TxHx")
           << cache.getKeyWidth() << " with H a multiple of "
           << cache.getHeads() << ", but got " << shapeText(query.getShape());
  if (op.getSoftcap() && !(number(*op.getSoftcap()) > 0)) // C2
    return op.emitOpError("expects a positive softcap, but got ")
           << number(*op.getSoftcap());
  std::optional<int64_t> window = op.getWindow(), sinks = op.getSinks();
  if (window && *window < 1) // C3
    return op.emitOpError("expects a positive window, but got ") << *window;
  if (sinks && (*sinks < 0 || !window)) // C3
    return op.emitOpError(
               "expects sinks that are not negative, beside a window, but got ")
           << *sinks << " sinks and " << (window ? "a" : "no") << " window";
  if (op.getBias() &&
      differ(op.getBias().getType().getDimSize(0), query.getDimSize(1))) // C4
    return op.emitOpError("expects a bias of ")
           << query.getDimSize(1) << " elements, but got "
           << op.getBias().getType().getDimSize(0);
  if (cache.getWindow() &&
      window.value_or(INT64_MAX) > cache.getWindow()) { // C5
    InFlightDiagnostic error =
        op.emitOpError("expects a window of at most the cache's ")
        << cache.getWindow();
    return window ? error << ", but got " << *window
                  : error << ", but got none";
  }
  if (op.getFirst() && *op.getFirst() < 1) // C6, of trees C7
    return op.emitOpError("expects a positive first position, but got ")
           << *op.getFirst();
  const Type integer = integerHead(op.getContext());
  if (op.getIntegers() && (cache.getKeyType() != integer ||
                           cache.getValueType() != integer)) // C7, of trees C8
    return op.emitOpError("expects keys and values of ")
           << integer << " for products of integers, but got " << cache;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (getMask() == MaskKind::Chunked && (!getWindow() || getSinks())) // C3
    return emitOpError(
               "expects a window and no sinks for a chunked mask, but got ")
           << (getWindow() ? "sinks" : "no window");
  return success();
}

LogicalResult TreeAttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (getQuery().getType().getDimSize(0) > 64) // C6
    return emitOpError("expects at most 64 tokens, but got ")
           << getQuery().getType().getDimSize(0);
  return success();
}

LogicalResult KVCompactOp::verify() {
  int64_t accepted = getAccepted().getType().getDimSize(0);
  if (accepted > 64) // C1
    return emitOpError("expects at most 64 accepted tokens, but got ")
           << accepted;
  return success();
}

LogicalResult PreviousRowsOp::verify() {
  if (getInput().getType().getRank() != 2) // C1
    return emitOpError("expects rows TxD, but got ")
           << shapeText(getInput().getType().getShape());
  if (bool(getParents()) != bool(getBase())) // C2
    return emitOpError("expects parents and a base together, but got ")
           << (getBase() ? "a base" : "parents") << " alone";
  return success();
}

int64_t KVEvictOp::getTurnedDims() {
  return static_cast<int64_t>(
      getDims().value_or(getCache().getType().getKeyWidth()));
}

LogicalResult KVEvictOp::verify() {
  KVType cache = getCache().getType();
  int64_t capacity = cache.getCapacity(), width = cache.getKeyWidth();
  if (getKeep() && getKeep().getType().getDimSize(0) > capacity) // C1
    return emitOpError("expects to keep at most ")
           << capacity << " slots, but got "
           << getKeep().getType().getDimSize(0);
  const bool moves = getSinks() && getDrop();
  if (moves == static_cast<bool>(getKeep()) ||
      static_cast<bool>(getSinks()) != static_cast<bool>(getDrop())) // C2
    return emitOpError("expects slots to keep, or sinks and how many slots "
                       "behind them to drop, but got ")
           << (getKeep() ? "both" : "neither");
  if (getKeep() && (turns() || getHadamard())) // C2
    return emitOpError("expects sinks and drop beside a rotation, but got "
                       "slots to keep");
  if (getBase() && getFrequencies()) // C3
    return emitOpError("expects a base or frequencies, but got both");
  if (getBase() && !(number(*getBase()) > 0)) // C3
    return emitOpError("expects a positive base, but got ")
           << number(*getBase());
  const int64_t dims = getTurnedDims();
  if (turns() && (dims < 2 || dims % 2 || dims > width)) // C3
    return emitOpError("expects an even number of dims from 2 to ")
           << width << ", but got " << dims;
  if (getFrequencies()) { // C4
    ArrayRef<int64_t> shape = getFrequencies().getType().getShape();
    if (shape.empty() || differ(shape.back(), dims / 2))
      return emitOpError("expects ")
             << dims / 2 << " frequencies in a row, but got "
             << shapeText(shape);
  }
  if (getHadamard()) { // C5
    const auto block = static_cast<int64_t>(*getHadamard());
    if (!turns() || block < 1 || !llvm::isPowerOf2_64(uint64_t(block)) ||
        width % block)
      return emitOpError("expects a Hadamard block that is a power of two and "
                         "divides ")
             << width << ", behind a rotation, but got " << block
             << (turns() ? "" : " without one");
  }
  return success();
}
