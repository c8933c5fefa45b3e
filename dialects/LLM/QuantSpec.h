// The parts of a `!llm.q` type: code, N:M sparsity and levels of scales. Plain
// values, compared and hashed.
#ifndef SPRIG_DIALECTS_LLM_QUANTSPEC_H
#define SPRIG_DIALECTS_LLM_QUANTSPEC_H

#include "llvm/ADT/Hashing.h"
#include <cstdint>

namespace mlir::llm {

/// Group of a level that spans the whole row, written `*`.
inline constexpr int64_t kWholeRow = -1;

enum class CodeKind : uint8_t {
  Signed,
  Unsigned,
  Offset,
  Trit,
  F4E2M1,
  F8E4M3,
  F8E5M2,
  Codebook,
  Grid
};

/// What a stored code stands for before it is scaled.
struct QuantCode {
  CodeKind kind = CodeKind::Signed;
  uint8_t bits =
      8; ///< of a code; 2 for a trit, 0 for a grid (a property of its name)
  uint8_t offset = 0; ///< Offset only: what is taken off an unsigned code
  uint8_t dim = 1;    ///< Grid only: elements looked up at once

  static constexpr QuantCode signedInt(unsigned bits) {
    return {CodeKind::Signed, uint8_t(bits), 0, 1};
  }
  static constexpr QuantCode unsignedInt(unsigned bits) {
    return {CodeKind::Unsigned, uint8_t(bits), 0, 1};
  }
  static constexpr QuantCode offsetInt(unsigned bits, unsigned offset) {
    return {CodeKind::Offset, uint8_t(bits), uint8_t(offset), 1};
  }
  static constexpr QuantCode trit() { return {CodeKind::Trit, 2, 0, 1}; }
  static constexpr QuantCode f4E2M1() { return {CodeKind::F4E2M1, 4, 0, 1}; }
  static constexpr QuantCode f8E4M3() { return {CodeKind::F8E4M3, 8, 0, 1}; }
  static constexpr QuantCode f8E5M2() { return {CodeKind::F8E5M2, 8, 0, 1}; }
  static constexpr QuantCode codebook(unsigned bits) {
    return {CodeKind::Codebook, uint8_t(bits), 0, 1};
  }
  static constexpr QuantCode grid(unsigned dim) {
    return {CodeKind::Grid, 0, 0, uint8_t(dim)};
  }

  bool isInteger() const { return kind <= CodeKind::Trit; }
  /// Smallest and largest integer of an integer code, the fixed offset taken
  /// off.
  int64_t minimum() const;
  int64_t maximum() const;
  bool operator==(const QuantCode &) const = default;
};

enum class ScaleKind : uint8_t {
  F16,
  BF16,
  F32,
  E8M0,
  UE4M3,
  Unsigned,
  Signed
};

/// Number format of a scale, a minimum or a zero point.
struct ScaleType {
  ScaleKind kind = ScaleKind::F16;
  uint8_t bits = 16;

  static constexpr ScaleType f16() { return {ScaleKind::F16, 16}; }
  static constexpr ScaleType bf16() { return {ScaleKind::BF16, 16}; }
  static constexpr ScaleType f32() { return {ScaleKind::F32, 32}; }
  static constexpr ScaleType e8m0() { return {ScaleKind::E8M0, 8}; }
  static constexpr ScaleType ue4m3() { return {ScaleKind::UE4M3, 8}; }
  static constexpr ScaleType unsignedInt(unsigned bits) {
    return {ScaleKind::Unsigned, uint8_t(bits)};
  }
  static constexpr ScaleType signedInt(unsigned bits) {
    return {ScaleKind::Signed, uint8_t(bits)};
  }

  bool isInteger() const { return kind >= ScaleKind::Unsigned; }
  bool operator==(const ScaleType &) const = default;
};

enum class OffsetKind : uint8_t { None, AddMin, SubtractMin, Zero };

/// One level of scales: `group` elements share a scale, and perhaps a minimum
/// or a zero point.
struct QuantLevel {
  int64_t group = kWholeRow;
  ScaleType scale;
  OffsetKind offsetKind = OffsetKind::None;
  ScaleType offset; ///< meaningful unless offsetKind is None

  static constexpr QuantLevel scaled(int64_t group, ScaleType scale) {
    return {group, scale, OffsetKind::None, ScaleType{}};
  }
  static constexpr QuantLevel withOffset(int64_t group, ScaleType scale,
                                         OffsetKind kind, ScaleType offset) {
    return {group, scale, kind, offset};
  }
  bool hasMin() const {
    return offsetKind == OffsetKind::AddMin ||
           offsetKind == OffsetKind::SubtractMin;
  }
  bool hasZero() const { return offsetKind == OffsetKind::Zero; }
  bool operator==(const QuantLevel &) const = default;
};

/// `N:M`: of each `of` elements `kept` are stored. 0:0 is dense.
struct Sparsity {
  uint8_t kept = 0;
  uint8_t of = 0;
  /// Bits that number the ways to keep `kept` of `of` places.
  unsigned patternBits() const;
  bool operator==(const Sparsity &) const = default;
};

inline llvm::hash_code hash_value(const QuantCode &code) {
  return llvm::hash_combine(code.kind, code.bits, code.offset, code.dim);
}
inline llvm::hash_code hash_value(const ScaleType &scale) {
  return llvm::hash_combine(scale.kind, scale.bits);
}
inline llvm::hash_code hash_value(const QuantLevel &level) {
  return llvm::hash_combine(level.group, level.scale, level.offsetKind,
                            level.offset);
}
inline llvm::hash_code hash_value(const Sparsity &sparsity) {
  return llvm::hash_combine(sparsity.kept, sparsity.of);
}

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_QUANTSPEC_H
