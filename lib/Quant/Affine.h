// Formats of groups on an even grid, of any width and group: what this project's own quantisers and GPTQ, AWQ and
// compressed-tensors checkpoints store.
//
//   w = scale * (code - half)      Symmetric: half = 2^(bits - 1); codes of 8 bits are stored signed instead
//   w = scale * (code - zero)      Zero: an integer of `bits` bits a group
//   w = scale * code + minimum     Minimum: of the type of the scales
//   w = book[code]                 Book: 2^bits numbers of f16 a row, up to 4 bits; no scales, and no groups
//   w = scale * float(code)        Symmetric, with codes that are floats of 8 bits (E4M3, E5M2)
//
// A row of K numbers is its planes one after another: codes in units of 32 numbers (number k at bit k * bits, low bits
// first), then the scales of all groups (for Minimum: scale and minimum of each), then zero points (two groups to a
// byte up to 4 bits, the first in the low half, else one); a book in place of scales. The last group may be short; K is a
// multiple of 32.
//
// Sparse formats keep half of each 4 or 8 neighbours (2:4, 4:8); the others are 0. A unit has codes for the 16 numbers
// that are kept, and behind the other planes 32 bits of pattern, bit n set where number n is kept. Codes lie where a
// kernel can spread all of a unit at once: those of the same rank among the kept ones of their neighbours side by side
// (survivorBit).
#ifndef SPRIG_LIB_QUANT_AFFINE_H
#define SPRIG_LIB_QUANT_AFFINE_H

#include "lib/Quant/Format.h"

namespace sprig::quant {

struct AffineFormat {
  enum class Kind : uint8_t { Symmetric, Zero, Minimum, Book };
  enum class Scale : uint8_t { F16, BF16, F32 };
  enum class Code : uint8_t { Integer, E4M3, E5M2 };

  uint32_t bits = 4; ///< 2, 3, 4, 5, 6 or 8
  Kind kind = Kind::Symmetric;
  Scale scale = Scale::F16;
  uint32_t group = 0; ///< numbers that share a scale, a multiple of 32; 0: a whole row
  uint32_t among = 0; ///< half of each 4 or 8 numbers are kept (of 4 or 8 bits, not Minimum); 0: all are
  Code code = Code::Integer; ///< floats are symmetric, of 8 bits, and none is left out

  /// What a symmetric code is stored above its number.
  uint32_t half() const { return kind == Kind::Symmetric && bits < 8 ? 1u << (bits - 1) : 0; }
  uint32_t scaleBytes() const { return scale == Scale::F32 ? 4 : 2; }
  bool isFloat() const { return code != Code::Integer; }
  /// Whether codes are stored as two's complement.
  bool isSigned() const { return kind == Kind::Symmetric && bits == 8 && !isFloat(); }
  /// Of the neighbours that share a pattern, how many are kept.
  uint32_t kept() const { return among / 2; }
  /// Bytes of a unit's codes.
  uint32_t codeBytes() const { return among ? 2 * bits : 4 * bits; }
  /// Numbers that stand with the codes of a group: a scale, a scale and a minimum, or a book.
  uint32_t numbersAGroup() const { return kind == Kind::Book ? 1u << bits : kind == Kind::Minimum ? 2 : 1; }
  size_t groups(size_t K) const { return group == 0 ? 1 : (K + group - 1) / group; }
  bool operator==(const AffineFormat &) const = default;
};

/// Numbers of a unit of codes; K is a multiple of it.
inline constexpr uint32_t kAffineUnit = 32;
/// The largest group that is not a whole row.
inline constexpr uint32_t kLargestAffineGroup = 127 * kAffineUnit;

/// Lanes that the codes of a sparse unit lie in: a kernel works on all lanes of a word at once.
struct SparseLanes {
  explicit SparseLanes(const AffineFormat &affine)
      : bits(affine.among == 4 ? affine.bits : 8), sets(affine.among == 4 && affine.bits == 8 ? 2 : 1) {}
  uint32_t bits; ///< of a lane
  uint32_t sets; ///< words that hold one rank: neighbours i are in set i mod sets, lane i / sets
};

/// The bit of a sparse unit's codes where the code of the number of rank `rank` among the kept ones of neighbours
/// `index` (numbers index * among and on) begins.
uint32_t survivorBit(const AffineFormat &affine, uint32_t index, uint32_t rank);

/// The format with these parameters; none where they are outside what is said above.
std::optional<Format> formatOf(const AffineFormat &affine);
/// The parameters of an affine format; none for all others.
std::optional<AffineFormat> affineOf(Format format);

/// Writes a row: stored codes (below 2^bits; of symmetric formats `half` above the number, two's complement or a float), a
/// scale a group (or the book), and zero points or minima a group where the kind has them. Of sparse formats `patterns`
/// has a word for each unit; codes of numbers that are not kept are not looked at.
void packAffineRow(Format format, const uint8_t *codes, const float *scales, const float *offsets, std::byte *row,
                   size_t K, const uint32_t *patterns = nullptr);

/// Decodes one row: each number is computed exactly and rounded to f32 once.
void decodeAffineRow(Format format, const std::byte *row, float *numbers, size_t K);

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_AFFINE_H
