// The table of weight formats: how many numbers a block holds, in how many
// bytes, and which byte ranges ("planes") of a block mean what. Decoding,
// import, package layout and kernels all read this one table.
//
// A tensor of shape [N, K] is N rows of K / blockElements blocks, rows back to
// back, as in a GGUF file. Everything is little endian.
#ifndef SPRIG_LIB_QUANT_FORMAT_H
#define SPRIG_LIB_QUANT_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sprig::quant {

/// GGUF tensor types keep their GGUF number. Plain types that only safetensors
/// files have start at 256. From 0x8000 on numbers are those of Affine.h, which
/// have no names here.
enum class Format : uint16_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  U8 = 256,
  U16 = 257,
  U32 = 258,
  U64 = 259,
  Bool = 260,
  F8E4M3 = 261, ///< 1-4-3, bias 7, no infinity, NaN = 0x7f and 0xff ("F8_E4M3"
                ///< of safetensors)
  F8E5M2 = 262, ///< 1-5-2, bias 15, with infinities and NaN
  F8E8M0 = 263, ///< a power of two, 2^(x - 127); NaN = 0xff
};

/// A byte range of a block with one meaning. The planes of a format cover its
/// block without gap or overlap.
struct Plane {
  std::string_view name; ///< "scales" (f16 d, or d and m), "codes", "high"
                         ///< (upper code bits), "subscales", ...
  uint32_t offset;       ///< first byte within the block
  uint32_t bytes;        ///< per block, or where `share` says so for several
  /// Blocks of a row that these bytes stand for; 0: all of it. More than one
  /// only in planar formats.
  uint32_t share = 1;

  /// Pieces of `bytes` bytes in a row of `blocks` blocks.
  size_t pieces(size_t blocks) const {
    return share == 0 ? 1 : (blocks + share - 1) / share;
  }
};

/// Decodes `blocks` consecutive blocks to f32.
using BlockDecoder = void (*)(const std::byte *src, float *dst, size_t blocks);
/// Rounds `blocks * blockElements` numbers to the nearest blocks.
using BlockEncoder = void (*)(const float *src, std::byte *dst, size_t blocks);

struct FormatInfo {
  Format format;
  std::string_view name; ///< as GGUF spells it: "Q4_1"; for plain types as
                         ///< safetensors does: "F8_E4M3"
  uint32_t blockElements;
  uint32_t blockBytes;
  std::span<const Plane> planes; ///< in the order of their offsets
  /// The quantised type of the `llm` dialect, without the `!llm.q` before it:
  /// "<u4, 32:f16+f16>". Empty for plain types.
  std::string_view type;
  BlockDecoder decode;
  BlockEncoder encode; ///< null: this format is only read

  /// A row is its planes one after another, each for all blocks, and not blocks
  /// one after another: see Affine.h. Such a format has no bytes of a block.
  bool isPlanar = false;

  bool isPlain() const { return blockElements == 1; }
  /// Bytes of one row of `K` numbers; `K` is a multiple of `blockElements`.
  size_t rowBytes(size_t K) const {
    if (!isPlanar)
      return K / blockElements * blockBytes;
    size_t bytes = 0;
    for (const Plane &plane : planes)
      bytes += plane.pieces(K / blockElements) * plane.bytes;
    return bytes;
  }
};

/// The row of the table for a format. Every enumerator has one.
const FormatInfo &info(Format format);

/// The rows of formats that files have, in the order of the enumerators.
std::span<const FormatInfo> formats();

/// The format with this GGUF type number, if there is one.
std::optional<Format> formatOfGGUF(uint32_t type);

/// The format with this name ("Q4_1", "BF16", any case; "U4Z_G128").
std::optional<Format> formatOfName(std::string_view name);

/// Decodes `elements` numbers (a multiple of the block; of a planar format one
/// row, no less and no more) to f32. The values are
/// those of the reference implementation to the last bit: products and sums are
/// rounded one by one, in its order.
void decode(Format format, const std::byte *src, float *dst, size_t elements);

/// Rounds `elements` numbers (a multiple of the block) to the nearest codes;
/// false where the format cannot be written. Not an error minimiser: scales
/// come from the extremes of a block, as the plain encoders of ggml take them.
[[nodiscard]] bool encode(Format format, const float *src, std::byte *dst,
                          size_t elements);

/// The same, with the scales of each block that lose least of several that leave out its extremes. Never worse in squared
/// error than encode(), and slower by twenty times.
[[nodiscard]] bool encodeBest(Format format, const float *src, std::byte *dst,
                              size_t elements);

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_FORMAT_H
