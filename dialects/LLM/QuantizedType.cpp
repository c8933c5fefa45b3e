// Text, rules and sizes of the `!llm.q` type.
#include "dialects/LLM/LLM.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::llm;

int64_t QuantCode::minimum() const {
  switch (kind) {
  case CodeKind::Signed:
    return -(int64_t(1) << (bits - 1));
  case CodeKind::Offset:
    return -int64_t(offset);
  case CodeKind::Trit:
    return -1;
  default:
    return 0;
  }
}

int64_t QuantCode::maximum() const {
  switch (kind) {
  case CodeKind::Signed:
    return (int64_t(1) << (bits - 1)) - 1;
  case CodeKind::Trit:
    return 1;
  default:
    return (int64_t(1) << bits) - 1 - offset;
  }
}

unsigned Sparsity::patternBits() const {
  uint64_t patterns = 1; // `of` over `kept`
  for (unsigned i = 1; i <= kept; ++i)
    patterns = patterns * (of - kept + i) / i;
  return llvm::Log2_64_Ceil(patterns);
}

/// A grid, the elements one index looks up, and the bits an index takes with
/// its signs (and for the one-bit grids with the sign of their shift), a code
/// of `dim` elements: IQ1_S shares that bit among 32 elements.
namespace {
struct Grid {
  StringLiteral name;
  unsigned dim;
  double bits;
};
} // namespace
static constexpr Grid kGrids[] = {
    {"iq2_xxs", 8, 8 + 7},   {"iq2_xs", 8, 9 + 7}, {"iq2_s", 8, 10 + 8},
    {"iq3_xxs", 4, 8 + 3.5}, {"iq3_s", 4, 9 + 4},  {"iq1_s", 8, 11 + 8.0 / 32},
    {"iq1_m", 8, 11 + 1},
};

static const Grid *findGrid(StringRef name) {
  const Grid *grid = llvm::find_if(
      kGrids, [&](const Grid &grid) { return grid.name == name; });
  return grid == std::end(kGrids) ? nullptr : grid;
}

//===- Text -------------------------------------------------------------===//

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

//===- Rules ------------------------------------------------------------===//

static LogicalResult verifyCode(function_ref<InFlightDiagnostic()> emitError,
                                QuantCode code, StringRef table) {
  if (code.isInteger() && (code.bits < 2 || code.bits > 8)) // C1
    return emitError() << "expects a code of 2 to 8 bits, but got "
                       << unsigned(code.bits);
  if (code.kind == CodeKind::Offset && code.offset >= (1u << code.bits)) // C1
    return emitError() << "expects an offset below " << (1u << code.bits)
                       << ", but got " << unsigned(code.offset);
  if (code.kind == CodeKind::Codebook &&
      (code.bits < 1 || code.bits > 8 || table.empty())) // C2
    return emitError() << "expects a named codebook of 1 to 8 bits, but got '"
                       << table << "' of " << unsigned(code.bits);
  if (code.kind == CodeKind::Grid) { // C2
    const Grid *grid = findGrid(table);
    if (!grid)
      return emitError() << "expects a known grid (iq2_xxs, iq2_xs, iq2_s, "
                            "iq3_xxs, iq3_s, iq1_s, iq1_m), but got '"
                         << table << "'";
    if (grid->dim != code.dim)
      return emitError() << "expects " << grid->dim << " elements an index of "
                         << table << ", but got " << unsigned(code.dim);
  }
  return success();
}

static LogicalResult
verifyIntegerBits(function_ref<InFlightDiagnostic()> emitError,
                  ScaleType scale) {
  if (scale.isInteger() && (scale.bits < 2 || scale.bits > 16)) // C5
    return emitError()
           << "expects a scale, minimum or zero point of 2 to 16 bits, but got "
           << unsigned(scale.bits);
  return success();
}

LogicalResult
QuantizedType::verify(function_ref<InFlightDiagnostic()> emitError,
                      QuantCode code, StringRef table, Sparsity sparsity,
                      ArrayRef<QuantLevel> levels) {
  if (failed(verifyCode(emitError, code, table)))
    return failure();
  bool lookedUp =
      code.kind == CodeKind::Codebook || code.kind == CodeKind::Grid;
  if (sparsity.of && (sparsity.kept < 1 || sparsity.kept >= sparsity.of ||
                      sparsity.of > 32)) // C3
    return emitError() << "expects 0 < N < M <= 32, but got "
                       << unsigned(sparsity.kept) << ':'
                       << unsigned(sparsity.of);
  if (sparsity.of && lookedUp) // C3
    return emitError() << "expects a code without a table for N:M, but got '"
                       << table << "'";
  int64_t inner = std::lcm<int64_t>(std::max<int64_t>(code.dim, 1),
                                    std::max<int64_t>(sparsity.of, 1));
  for (const QuantLevel &level : levels) {
    if (inner == kWholeRow) // C4
      return emitError()
             << "expects * outermost, but got another level after it";
    if (level.group != kWholeRow &&
        (level.group < 1 || level.group % inner)) // C4
      return emitError() << "expects a group that is a multiple of " << inner
                         << ", but got " << level.group;
    inner = level.group;
    if (failed(verifyIntegerBits(emitError, level.scale)))
      return failure();
    if (level.offsetKind != OffsetKind::None &&
        failed(verifyIntegerBits(emitError, level.offset)))
      return failure();
  }
  return success();
}

//===- Sizes ------------------------------------------------------------===//

double QuantizedType::bitsPerElement() const {
  QuantCode code = getCode();
  double bits = code.bits;
  if (code.kind == CodeKind::Trit)
    bits = 52 * 8 / 256.0; // five to a byte, 256 in 52 bytes
  else if (const Grid *grid = findGrid(getCodebook()); grid && hasGrid())
    bits = grid->bits / grid->dim;
  if (Sparsity sparsity = getSparsity(); isSparse())
    bits = (bits * sparsity.kept + sparsity.patternBits()) / sparsity.of;
  for (const QuantLevel &level : getLevels()) {
    if (level.group == kWholeRow)
      continue;
    unsigned each =
        level.scale.bits +
        (level.offsetKind == OffsetKind::None ? 0 : level.offset.bits);
    bits += double(each) / level.group;
  }
  return bits;
}

int64_t QuantizedType::blockElements() const {
  ArrayRef<QuantLevel> levels = getLevels();
  return levels.empty() ? std::max<int64_t>(getCode().dim,
                                            isSparse() ? getSparsity().of : 1)
                        : levels.back().group;
}
