// Generated code of the types, and the cache type.
#include "dialects/LLM/LLM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;

#define GET_TYPEDEF_CLASSES
#include "dialects/LLM/LLMTypes.cpp.inc"

void LLMDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/LLM/LLMTypes.cpp.inc"
      >();
}

/// `, name = value` into one of the optional numbers of a cache.
static ParseResult parseOption(AsmParser &parser, int64_t &window,
                               int64_t &sinks) {
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  if (name != "window" && name != "sinks")
    return parser.emitError(location, "expects window or sinks, but got ")
           << name;
  return failure(parser.parseEqual() ||
                 parser.parseInteger(name == "window" ? window : sinks));
}

Type KVType::parse(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> dims;
  Type keyType, valueType;
  int64_t capacity = 0, window = 0, sinks = 0;
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false,
                                /*withTrailingX=*/false) ||
      parser.parseComma() || parser.parseType(keyType) || parser.parseComma())
    return {};
  if (dims.size() != 2 && dims.size() != 3) {
    parser.emitError(location, "expects heads x width, but got ")
        << dims.size() << " dimensions";
    return {};
  }
  int64_t valueWidth = dims.back();
  if (succeeded(parser.parseOptionalKeyword("prefix"))) {
    if (parser.parseLess() || parser.parseInteger(valueWidth) ||
        parser.parseGreater())
      return {};
  } else if (parser.parseType(valueType)) {
    return {};
  }
  if (parser.parseComma() || parser.parseInteger(capacity))
    return {};
  while (succeeded(parser.parseOptionalComma()))
    if (parseOption(parser, window, sinks))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<KVType>(location, parser.getContext(), dims[0],
                                   dims[1], valueWidth, keyType, valueType,
                                   capacity, window, sinks);
}

void KVType::print(AsmPrinter &printer) const {
  printer << '<' << getHeads() << 'x' << getKeyWidth();
  if (!isValuePrefix() && getValueWidth() != getKeyWidth())
    printer << 'x' << getValueWidth();
  printer << ", " << getKeyType() << ", ";
  if (isValuePrefix())
    printer << "prefix<" << getValueWidth() << '>';
  else
    printer << getValueType();
  printer << ", " << getCapacity();
  if (getWindow())
    printer << ", window = " << getWindow();
  if (getSinks())
    printer << ", sinks = " << getSinks();
  printer << '>';
}

LogicalResult KVType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t heads, int64_t keyWidth,
                             int64_t valueWidth, Type keyType, Type valueType,
                             int64_t capacity, int64_t window, int64_t sinks) {
  if (heads < 1 || keyWidth < 1 || valueWidth < 1 || capacity < 1) // C1
    return emitError()
           << "expects positive heads, widths and capacity, but got " << heads
           << ", " << keyWidth << ", " << valueWidth << " and " << capacity;
  for (Type type : {keyType, valueType}) // C2
    if (type && !type.isF32() && !type.isF16() && !type.isBF16() &&
        !isa<QuantizedType>(type))
      return emitError()
             << "expects keys and values of f32, f16, bf16 or !llm.q, but got "
             << type;
  if (!valueType && valueWidth > keyWidth) // C3
    return emitError() << "expects a prefix of at most the key's " << keyWidth
                       << " elements, but got " << valueWidth;
  if (window < 0 || sinks < 0) // C4
    return emitError()
           << "expects window and sinks not to be negative, but got " << window
           << " and " << sinks;
  if (sinks && !window) // C4
    return emitError() << "expects a window beside sinks, but got " << sinks
                       << " sinks alone";
  return success();
}
