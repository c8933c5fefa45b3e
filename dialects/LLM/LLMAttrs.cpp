#include "dialects/LLM/LLM.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;

#include "dialects/LLM/LLMEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/LLM/LLMAttrs.cpp.inc"

void LLMDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/LLM/LLMAttrs.cpp.inc"
      >();
}

static constexpr int64_t kDefaultWord = 32;

/// `<gguf>`, or `<tiled<rows = 8, word = 32>>` with the word left out where it
/// is 32 bits.
Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  std::optional<LayoutKind> kind = symbolizeLayoutKind(name);
  if (!kind) {
    parser.emitError(location,
                     "expects gguf, gptq, awq, packed or tiled, but got ")
        << name;
    return {};
  }
  int64_t rows = 0, word = 0;
  if (*kind == LayoutKind::Tiled) {
    word = kDefaultWord;
    if (parser.parseLess() || parser.parseKeyword("rows") ||
        parser.parseEqual() || parser.parseInteger(rows))
      return {};
    if (succeeded(parser.parseOptionalComma()) &&
        (parser.parseKeyword("word") || parser.parseEqual() ||
         parser.parseInteger(word)))
      return {};
    if (parser.parseGreater())
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(location, parser.getContext(), *kind,
                                       rows, word);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyLayoutKind(getKind());
  if (getKind() == LayoutKind::Tiled) {
    printer << "<rows = " << getRows();
    if (getWord() != kDefaultWord)
      printer << ", word = " << getWord();
    printer << '>';
  }
  printer << '>';
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 LayoutKind kind, int64_t rows, int64_t word) {
  if (kind != LayoutKind::Tiled)
    return success();
  if (rows < 1 || rows > 64) // C2
    return emitError() << "expects a tile of 1 to 64 rows, but got " << rows;
  if (word != 32 && word != 64 && word != 128) // C2
    return emitError() << "expects words of 32, 64 or 128 bits, but got "
                       << word;
  return success();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (isa<QuantizedType>(elementType)) // C1
    return success();
  if (getKind() == LayoutKind::Tiled && isa<FloatType>(elementType))
    return success();
  return emitError() << "expects an !llm.q element type for the layout "
                     << stringifyLayoutKind(getKind()) << ", but got "
                     << elementType;
}

LogicalResult
BlockMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t size, int64_t local, int64_t first,
                      int64_t stride) {
  if (size < 1 || local < 1) // C1
    return emitError() << "expects a positive size and local, but got " << size
                       << " and " << local;
  if (first < 0 || stride < 0) // C1
    return emitError()
           << "expects first and stride not to be negative, but got " << first
           << " and " << stride;
  return success();
}
