#include "lib/Quant/Format.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Decoders.h"

#include <array>
#include <cassert>
#include <cctype>

namespace sprig::quant {
namespace {

constexpr Plane kOne[] = {{"elements", 0, 1}};
constexpr Plane kTwo[] = {{"elements", 0, 2}};
constexpr Plane kFour[] = {{"elements", 0, 4}};
constexpr Plane kEight[] = {{"elements", 0, 8}};

constexpr Plane kQ4_0[] = {{"scales", 0, 2}, {"codes", 2, 16}};
constexpr Plane kQ4_1[] = {{"scales", 0, 4}, {"codes", 4, 16}};
constexpr Plane kQ5_0[] = {{"scales", 0, 2}, {"high", 2, 4}, {"codes", 6, 16}};
constexpr Plane kQ5_1[] = {{"scales", 0, 4}, {"high", 4, 4}, {"codes", 8, 16}};
constexpr Plane kQ8_0[] = {{"scales", 0, 2}, {"codes", 2, 32}};
constexpr Plane kMXFP4[] = {{"scales", 0, 1}, {"codes", 1, 16}};
constexpr Plane kNVFP4[] = {{"scales", 0, 4}, {"codes", 4, 32}};

constexpr Plane kQ2_K[] = {
    {"subscales", 0, 16}, {"codes", 16, 64}, {"scales", 80, 4}};
constexpr Plane kQ3_K[] = {{"high", 0, 32},
                           {"codes", 32, 64},
                           {"subscales", 96, 12},
                           {"scales", 108, 2}};
constexpr Plane kQ4_K[] = {
    {"scales", 0, 4}, {"subscales", 4, 12}, {"codes", 16, 128}};
constexpr Plane kQ5_K[] = {{"scales", 0, 4},
                           {"subscales", 4, 12},
                           {"high", 16, 32},
                           {"codes", 48, 128}};
constexpr Plane kQ6_K[] = {{"codes", 0, 128},
                           {"high", 128, 64},
                           {"subscales", 192, 16},
                           {"scales", 208, 2}};
constexpr Plane kTQ1_0[] = {
    {"codes", 0, 48}, {"high", 48, 4}, {"scales", 52, 2}};
constexpr Plane kTQ2_0[] = {{"codes", 0, 64}, {"scales", 64, 2}};

constexpr Plane kIQ2_XXS[] = {{"scales", 0, 2}, {"codes", 2, 64}};
constexpr Plane kIQ2_XS[] = {
    {"scales", 0, 2}, {"codes", 2, 64}, {"subscales", 66, 8}};
constexpr Plane kIQ2_S[] = {{"scales", 0, 2},
                            {"codes", 2, 32},
                            {"signs", 34, 32},
                            {"high", 66, 8},
                            {"subscales", 74, 8}};
constexpr Plane kIQ3_XXS[] = {
    {"scales", 0, 2}, {"codes", 2, 64}, {"signs", 66, 32}};
constexpr Plane kIQ3_S[] = {{"scales", 0, 2},
                            {"codes", 2, 64},
                            {"high", 66, 8},
                            {"signs", 74, 32},
                            {"subscales", 106, 4}};
constexpr Plane kIQ1_S[] = {
    {"scales", 0, 2}, {"codes", 2, 32}, {"high", 34, 16}};
constexpr Plane kIQ1_M[] = {
    {"codes", 0, 32}, {"high", 32, 16}, {"subscales", 48, 8}};
constexpr Plane kIQ4_XS[] = {{"scales", 0, 2},
                             {"subscales-high", 2, 2},
                             {"subscales", 4, 4},
                             {"codes", 8, 128}};

// One line a format: name, numbers and bytes of a block, planes, type in the
// `llm` dialect, decoder, encoder.
// clang-format off
constexpr FormatInfo kFormats[] = {
    {Format::F32, "F32", 1, 4, kFour, "", decodeF32, encodeF32},
    {Format::F16, "F16", 1, 2, kTwo, "", decodeF16, encodeF16},
    {Format::Q4_0, "Q4_0", 32, 18, kQ4_0, "<u4-8, 32:f16>", decodeQ4_0, encodeQ4_0},
    {Format::Q4_1, "Q4_1", 32, 20, kQ4_1, "<u4, 32:f16+f16>", decodeQ4_1, encodeQ4_1},
    {Format::Q5_0, "Q5_0", 32, 22, kQ5_0, "<u5-16, 32:f16>", decodeQ5_0, encodeQ5_0},
    {Format::Q5_1, "Q5_1", 32, 24, kQ5_1, "<u5, 32:f16+f16>", decodeQ5_1, encodeQ5_1},
    {Format::Q8_0, "Q8_0", 32, 34, kQ8_0, "<i8, 32:f16>", decodeQ8_0, encodeQ8_0},
    {Format::Q2_K, "Q2_K", 256, 84, kQ2_K, "<u2, 16:u4-u4, 256:f16-f16>", decodeQ2_K, nullptr},
    {Format::Q3_K, "Q3_K", 256, 110, kQ3_K, "<i3, 16:i6, 256:f16>", decodeQ3_K, nullptr},
    {Format::Q4_K, "Q4_K", 256, 144, kQ4_K, "<u4, 32:u6-u6, 256:f16-f16>", decodeQ4_K, encodeQ4_K},
    {Format::Q5_K, "Q5_K", 256, 176, kQ5_K, "<u5, 32:u6-u6, 256:f16-f16>", decodeQ5_K, encodeQ5_K},
    {Format::Q6_K, "Q6_K", 256, 210, kQ6_K, "<i6, 16:i8, 256:f16>", decodeQ6_K, encodeQ6_K},
    {Format::IQ2_XXS, "IQ2_XXS", 256, 66, kIQ2_XXS, "<grid<iq2_xxs,8>, 32:u4, 256:f16>", decodeIQ2_XXS, nullptr},
    {Format::IQ2_XS, "IQ2_XS", 256, 74, kIQ2_XS, "<grid<iq2_xs,8>, 16:u4, 256:f16>", decodeIQ2_XS, nullptr},
    {Format::IQ3_XXS, "IQ3_XXS", 256, 98, kIQ3_XXS, "<grid<iq3_xxs,4>, 32:u4, 256:f16>", decodeIQ3_XXS, nullptr},
    {Format::IQ1_S, "IQ1_S", 256, 50, kIQ1_S, "<grid<iq1_s,8>, 32:u3, 256:f16>", decodeIQ1_S, nullptr},
    {Format::IQ4_NL, "IQ4_NL", 32, 18, kQ4_0, "<cb<iq4nl,4>, 32:f16>", decodeIQ4_NL, nullptr},
    {Format::IQ3_S, "IQ3_S", 256, 110, kIQ3_S, "<grid<iq3_s,4>, 32:u4, 256:f16>", decodeIQ3_S, nullptr},
    {Format::IQ2_S, "IQ2_S", 256, 82, kIQ2_S, "<grid<iq2_s,8>, 16:u4, 256:f16>", decodeIQ2_S, nullptr},
    {Format::IQ4_XS, "IQ4_XS", 256, 136, kIQ4_XS, "<cb<iq4nl,4>, 32:i6, 256:f16>", decodeIQ4_XS, nullptr},
    {Format::I8, "I8", 1, 1, kOne, "", decodeI8, nullptr},
    {Format::I16, "I16", 1, 2, kTwo, "", decodeI16, nullptr},
    {Format::I32, "I32", 1, 4, kFour, "", decodeI32, nullptr},
    {Format::I64, "I64", 1, 8, kEight, "", decodeI64, nullptr},
    {Format::F64, "F64", 1, 8, kEight, "", decodeF64, encodeF64},
    {Format::IQ1_M, "IQ1_M", 256, 56, kIQ1_M, "<grid<iq1_m,8>, 16:u3, 256:f16>", decodeIQ1_M, nullptr},
    {Format::BF16, "BF16", 1, 2, kTwo, "", decodeBF16, encodeBF16},
    {Format::TQ1_0, "TQ1_0", 256, 54, kTQ1_0, "<trit, 256:f16>", decodeTQ1_0, nullptr},
    {Format::TQ2_0, "TQ2_0", 256, 66, kTQ2_0, "<u2-1, 256:f16>", decodeTQ2_0, nullptr},
    {Format::MXFP4, "MXFP4", 32, 17, kMXFP4, "<f4E2M1, 32:e8m0>", decodeMXFP4, nullptr},
    {Format::NVFP4, "NVFP4", 64, 36, kNVFP4, "<f4E2M1, 16:ue4m3>", decodeNVFP4, nullptr},
    {Format::U8, "U8", 1, 1, kOne, "", decodeU8, nullptr},
    {Format::U16, "U16", 1, 2, kTwo, "", decodeU16, nullptr},
    {Format::U32, "U32", 1, 4, kFour, "", decodeU32, nullptr},
    {Format::U64, "U64", 1, 8, kEight, "", decodeU64, nullptr},
    {Format::Bool, "BOOL", 1, 1, kOne, "", decodeU8, nullptr},
    {Format::F8E4M3, "F8_E4M3", 1, 1, kOne, "", decodeF8E4M3, nullptr},
    {Format::F8E5M2, "F8_E5M2", 1, 1, kOne, "", decodeF8E5M2, nullptr},
    {Format::F8E8M0, "F8_E8M0", 1, 1, kOne, "", decodeF8E8M0, nullptr},
};
// clang-format on

constexpr bool planesCoverTheirBlocks() {
  for (const FormatInfo &row : kFormats) {
    uint32_t next = 0;
    for (const Plane &plane : row.planes) {
      if (plane.offset != next)
        return false;
      next += plane.bytes;
    }
    if (next != row.blockBytes)
      return false;
  }
  return true;
}
static_assert(planesCoverTheirBlocks());

/// Format number -> row; rows of numbers that no format has are never read.
constexpr auto kRowOfFormat = [] {
  std::array<uint8_t, 512> rows{};
  for (size_t row = 0; row < std::size(kFormats); ++row)
    rows[size_t(kFormats[row].format)] = uint8_t(row);
  return rows;
}();

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::toupper(static_cast<unsigned char>(a[i])) !=
        std::toupper(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

} // namespace

const FormatInfo &info(Format format) {
  if (const FormatInfo *row = affineInfo(format))
    return *row;
  return kFormats[kRowOfFormat[size_t(format)]];
}

std::span<const FormatInfo> formats() { return kFormats; }

std::optional<Format> formatOfGGUF(uint32_t type) {
  if (type >= uint32_t(Format::U8) || info(Format(type)).format != Format(type))
    return std::nullopt;
  return Format(type);
}

std::optional<Format> formatOfName(std::string_view name) {
  for (const FormatInfo &row : kFormats)
    if (equalIgnoringCase(row.name, name))
      return row.format;
  return affineOfName(name);
}

void decode(Format format, const std::byte *src, float *dst, size_t elements) {
  const FormatInfo &row = info(format);
  assert(elements % row.blockElements == 0 && "expects whole blocks");
  if (row.isPlanar)
    return decodeAffineRow(format, src, dst, elements);
  row.decode(src, dst, elements / row.blockElements);
}

bool encode(Format format, const float *src, std::byte *dst, size_t elements) {
  const FormatInfo &row = info(format);
  if (!row.encode || elements % row.blockElements != 0)
    return false;
  row.encode(src, dst, elements / row.blockElements);
  return true;
}

} // namespace sprig::quant
