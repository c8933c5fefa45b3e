#include "dialects/LLM/Assembly.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include <charconv>
#include <cmath>

using namespace mlir;

ParseResult llm::parseFloat(OpAsmParser &parser, FloatAttr &value) {
  SMLoc location = parser.getCurrentLocation();
  Attribute attribute;
  Type f32 = parser.getBuilder().getF32Type();
  if (parser.parseAttribute(attribute, f32))
    return failure();
  value = dyn_cast<FloatAttr>(attribute);
  if (!value)
    return parser.emitError(location,
                            "expects a number such as 0.125, but got ")
           << attribute;
  return success();
}

void llm::printFloat(OpAsmPrinter &printer, Operation *, FloatAttr value) {
  float number = value.getValue().convertToFloat();
  if (!std::isfinite(number)) {
    printer << "0x"
            << llvm::utohexstr(llvm::bit_cast<uint32_t>(number),
                               /*LowerCase=*/false, /*Width=*/8);
    return;
  }
  char digits[64];
  std::to_chars_result end =
      std::to_chars(digits, digits + sizeof(digits), number);
  StringRef text(digits, end.ptr - digits);
  // A float of MLIR's syntax has a point: 1e-05 is written 1.0e-05.
  auto [mantissa, exponent] = text.split('e');
  printer << mantissa;
  if (!mantissa.contains('.'))
    printer << ".0";
  if (!exponent.empty())
    printer << 'e' << exponent;
}

ParseResult llm::parseResultType(OpAsmParser &parser, Type input,
                                 Type &result) {
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(result);
  result = input;
  return success();
}

void llm::printResultType(OpAsmPrinter &printer, Operation *, Type input,
                          Type result) {
  if (input != result)
    printer << " -> " << result;
}
