// Rules and sizes of the `!llm.q` type; its text is in QuantizedTypeText.cpp.
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
