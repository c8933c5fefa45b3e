// How the `!llm.q` type is read and printed.
#include "dialects/LLM/LLM.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::llm;

/// The number behind `prefix` in a keyword such as u4.
static std::optional<unsigned> numberAfter(StringRef keyword,
                                           StringRef prefix) {
  unsigned number = 0;
  if (!keyword.consume_front(prefix) || keyword.getAsInteger(10, number) ||
      number > 255)
    return std::nullopt;
  return number;
}

static FailureOr<ScaleType> parseScale(AsmParser &parser) {
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  static const std::pair<StringLiteral, ScaleType> named[] = {
      {"f16", ScaleType::f16()},
      {"bf16", ScaleType::bf16()},
      {"f32", ScaleType::f32()},
      {"e8m0", ScaleType::e8m0()},
      {"ue4m3", ScaleType::ue4m3()}};
  for (const auto &[name, scale] : named)
    if (keyword == name)
      return scale;
  if (std::optional<unsigned> bits = numberAfter(keyword, "u"))
    return ScaleType::unsignedInt(*bits);
  if (std::optional<unsigned> bits = numberAfter(keyword, "i"))
    return ScaleType::signedInt(*bits);
  return parser.emitError(
             location,
             "expects f16, bf16, f32, e8m0, ue4m3, uN or iN, but got ")
         << keyword;
}

static void printScale(AsmPrinter &printer, ScaleType scale) {
  switch (scale.kind) {
  case ScaleKind::F16:
    printer << "f16";
    break;
  case ScaleKind::BF16:
    printer << "bf16";
    break;
  case ScaleKind::F32:
    printer << "f32";
    break;
  case ScaleKind::E8M0:
    printer << "e8m0";
    break;
  case ScaleKind::UE4M3:
    printer << "ue4m3";
    break;
  case ScaleKind::Unsigned:
    printer << 'u' << unsigned(scale.bits);
    break;
  case ScaleKind::Signed:
    printer << 'i' << unsigned(scale.bits);
    break;
  }
}

/// `<name, number>` of a codebook or grid.
static ParseResult parseTable(AsmParser &parser, std::string &name,
                              unsigned &number) {
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword) ||
      parser.parseComma())
    return failure();
  name = keyword.str();
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseInteger(number) || parser.parseGreater())
    return failure();
  if (number > 255)
    return parser.emitError(location, "expects a number below 256, but got ")
           << number;
  return success();
}

static FailureOr<QuantCode> parseCode(AsmParser &parser, std::string &table) {
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "trit")
    return QuantCode::trit();
  if (keyword == "f4E2M1")
    return QuantCode::f4E2M1();
  if (keyword == "f8E4M3")
    return QuantCode::f8E4M3();
  if (keyword == "f8E5M2")
    return QuantCode::f8E5M2();
  if (keyword == "cb" || keyword == "grid") {
    bool isGrid =
        keyword == "grid"; // the keyword does not outlive the next token
    unsigned number = 0;
    if (parseTable(parser, table, number))
      return failure();
    return isGrid ? QuantCode::grid(number) : QuantCode::codebook(number);
  }
  if (std::optional<unsigned> bits = numberAfter(keyword, "i"))
    return QuantCode::signedInt(*bits);
  std::optional<unsigned> bits = numberAfter(keyword, "u");
  if (!bits)
    return parser.emitError(location, "expects iN, uN, trit, f4E2M1, f8E4M3, "
                                      "f8E5M2, cb<…> or grid<…>, but got ")
           << keyword;
  int64_t offset = 0;
  OptionalParseResult minus = parser.parseOptionalInteger(offset); // reads "-8"
  if (!minus.has_value())
    return QuantCode::unsignedInt(*bits);
  if (failed(*minus) || offset >= 0 || offset < -255)
    return parser.emitError(location,
                            "expects an offset such as u4-8, but got ")
           << offset;
  return QuantCode::offsetInt(*bits, unsigned(-offset));
}

/// What follows the colon of a level: SCALE [(+|-) MIN | zero ZERO].
static ParseResult parseLevel(AsmParser &parser, int64_t group,
                              SmallVectorImpl<QuantLevel> &levels) {
  FailureOr<ScaleType> scale = parseScale(parser);
  if (failed(scale))
    return failure();
  QuantLevel level = QuantLevel::scaled(group, *scale);
  if (succeeded(parser.parseOptionalPlus()))
    level.offsetKind = OffsetKind::AddMin;
  else if (succeeded(parser.parseOptionalMinus()))
    level.offsetKind = OffsetKind::SubtractMin;
  else if (succeeded(parser.parseOptionalKeyword("zero")))
    level.offsetKind = OffsetKind::Zero;
  if (level.offsetKind != OffsetKind::None) {
    FailureOr<ScaleType> offset = parseScale(parser);
    if (failed(offset))
      return failure();
    level.offset = *offset;
  }
  levels.push_back(level);
  return success();
}

Type QuantizedType::parse(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  std::string table;
  if (parser.parseLess())
    return {};
  FailureOr<QuantCode> code = parseCode(parser, table);
  if (failed(code))
    return {};
  Sparsity sparsity;
  SmallVector<QuantLevel> levels;
  while (succeeded(parser.parseOptionalComma())) {
    int64_t group = kWholeRow;
    if (failed(parser.parseOptionalStar()) && parser.parseInteger(group))
      return {};
    if (parser.parseColon())
      return {};
    int64_t of = 0;
    SMLoc pairLocation = parser.getCurrentLocation();
    OptionalParseResult number = parser.parseOptionalInteger(of);
    if (!number.has_value()) {
      if (parseLevel(parser, group, levels))
        return {};
      continue;
    }
    if (failed(*number))
      return {};
    if (!levels.empty() || sparsity.of || group < 1 || group > 255 || of < 1 ||
        of > 255) {
      parser.emitError(
          pairLocation,
          "expects one N:M, before the scales and of small numbers, but got ")
          << group << ':' << of;
      return {};
    }
    sparsity = {uint8_t(group), uint8_t(of)};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<QuantizedType>(location, parser.getContext(), *code,
                                          StringRef(table), sparsity,
                                          ArrayRef<QuantLevel>(levels));
}

static void printCode(AsmPrinter &printer, QuantCode code, StringRef table) {
  switch (code.kind) {
  case CodeKind::Signed:
    printer << 'i' << unsigned(code.bits);
    break;
  case CodeKind::Unsigned:
    printer << 'u' << unsigned(code.bits);
    break;
  case CodeKind::Offset:
    printer << 'u' << unsigned(code.bits) << '-' << unsigned(code.offset);
    break;
  case CodeKind::Trit:
    printer << "trit";
    break;
  case CodeKind::F4E2M1:
    printer << "f4E2M1";
    break;
  case CodeKind::F8E4M3:
    printer << "f8E4M3";
    break;
  case CodeKind::F8E5M2:
    printer << "f8E5M2";
    break;
  case CodeKind::Codebook:
    printer << "cb<" << table << ", " << unsigned(code.bits) << '>';
    break;
  case CodeKind::Grid:
    printer << "grid<" << table << ", " << unsigned(code.dim) << '>';
    break;
  }
}

void QuantizedType::print(AsmPrinter &printer) const {
  printer << '<';
  printCode(printer, getCode(), getCodebook());
  if (isSparse())
    printer << ", " << unsigned(getSparsity().kept) << ':'
            << unsigned(getSparsity().of);
  for (const QuantLevel &level : getLevels()) {
    printer << ", ";
    if (level.group == kWholeRow)
      printer << '*';
    else
      printer << level.group;
    printer << ':';
    printScale(printer, level.scale);
    if (level.offsetKind == OffsetKind::None)
      continue;
    printer << (level.hasZero()                          ? " zero "
                : level.offsetKind == OffsetKind::AddMin ? "+"
                                                         : "-");
    printScale(printer, level.offset);
  }
  printer << '>';
}
