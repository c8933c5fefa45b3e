#include "dialects/LLM/GGUFFormats.h"
#include "dialects/LLM/LLM.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// A format and its element type. `levels` beyond `levelCount` are ignored; no
/// levels and no name is a float.
struct Row {
  GGUFFormat format;
  QuantCode code;
  llvm::StringLiteral codebook;
  unsigned levelCount;
  QuantLevel levels[2];
};
} // namespace

static constexpr ScaleType kF16 = ScaleType::f16();
static constexpr ScaleType kU4 = ScaleType::unsignedInt(4);
static constexpr ScaleType kU6 = ScaleType::unsignedInt(6);

static constexpr QuantLevel scaled(int64_t group, ScaleType scale) {
  return QuantLevel::scaled(group, scale);
}
static constexpr QuantLevel plusMin(int64_t group, ScaleType scale) {
  return QuantLevel::withOffset(group, scale, OffsetKind::AddMin, scale);
}
static constexpr QuantLevel lessMin(int64_t group, ScaleType scale) {
  return QuantLevel::withOffset(group, scale, OffsetKind::SubtractMin, scale);
}
static constexpr QuantCode u(unsigned bits) {
  return QuantCode::unsignedInt(bits);
}
static constexpr QuantCode i(unsigned bits) {
  return QuantCode::signedInt(bits);
}
static constexpr QuantCode grid(unsigned dim) { return QuantCode::grid(dim); }

// Type ids and block sizes are those of ggml.h (MIT licence, the ggml authors);
// the types on the right are this project's reading of what each block means.
static constexpr Row kRows[] = {
    {{"F32", 0, 1, 4}, {}, "", 0, {}},
    {{"F16", 1, 1, 2}, {}, "", 0, {}},
    {{"Q4_0", 2, 32, 18},
     QuantCode::offsetInt(4, 8),
     "",
     1,
     {scaled(32, kF16)}},
    {{"Q4_1", 3, 32, 20}, u(4), "", 1, {plusMin(32, kF16)}},
    {{"Q5_0", 6, 32, 22},
     QuantCode::offsetInt(5, 16),
     "",
     1,
     {scaled(32, kF16)}},
    {{"Q5_1", 7, 32, 24}, u(5), "", 1, {plusMin(32, kF16)}},
    {{"Q8_0", 8, 32, 34}, i(8), "", 1, {scaled(32, kF16)}},
    {{"Q2_K", 10, 256, 84},
     u(2),
     "",
     2,
     {lessMin(16, kU4), lessMin(256, kF16)}},
    {{"Q3_K", 11, 256, 110},
     i(3),
     "",
     2,
     {scaled(16, ScaleType::signedInt(6)), scaled(256, kF16)}},
    {{"Q4_K", 12, 256, 144},
     u(4),
     "",
     2,
     {lessMin(32, kU6), lessMin(256, kF16)}},
    {{"Q5_K", 13, 256, 176},
     u(5),
     "",
     2,
     {lessMin(32, kU6), lessMin(256, kF16)}},
    {{"Q6_K", 14, 256, 210},
     i(6),
     "",
     2,
     {scaled(16, ScaleType::signedInt(8)), scaled(256, kF16)}},
    {{"IQ2_XXS", 16, 256, 66},
     grid(8),
     "iq2_xxs",
     2,
     {scaled(32, kU4), scaled(256, kF16)}},
    {{"IQ2_XS", 17, 256, 74},
     grid(8),
     "iq2_xs",
     2,
     {scaled(16, kU4), scaled(256, kF16)}},
    {{"IQ3_XXS", 18, 256, 98},
     grid(4),
     "iq3_xxs",
     2,
     {scaled(32, kU4), scaled(256, kF16)}},
    {{"IQ1_S", 19, 256, 50},
     grid(8),
     "iq1_s",
     2,
     {scaled(32, ScaleType::unsignedInt(3)), scaled(256, kF16)}},
    {{"IQ4_NL", 20, 32, 18},
     QuantCode::codebook(4),
     "iq4nl",
     1,
     {scaled(32, kF16)}},
    {{"IQ3_S", 21, 256, 110},
     grid(4),
     "iq3_s",
     2,
     {scaled(32, kU4), scaled(256, kF16)}},
    {{"IQ2_S", 22, 256, 82},
     grid(8),
     "iq2_s",
     2,
     {scaled(16, kU4), scaled(256, kF16)}},
    {{"IQ4_XS", 23, 256, 136},
     QuantCode::codebook(4),
     "iq4nl",
     2,
     {scaled(32, ScaleType::signedInt(6)), scaled(256, kF16)}},
    {{"IQ1_M", 29, 256, 56},
     grid(8),
     "iq1_m",
     2,
     {scaled(16, ScaleType::unsignedInt(3)), scaled(256, kF16)}},
    {{"BF16", 30, 1, 2}, {}, "", 0, {}},
    {{"TQ1_0", 34, 256, 54}, QuantCode::trit(), "", 1, {scaled(256, kF16)}},
    // Two bits hold a fourth value, so these are not trits: the code 3 decodes
    // to 2.
    {{"TQ2_0", 35, 256, 66},
     QuantCode::offsetInt(2, 1),
     "",
     1,
     {scaled(256, kF16)}},
    {{"MXFP4", 39, 32, 17},
     QuantCode::f4E2M1(),
     "",
     1,
     {scaled(32, ScaleType::e8m0())}},
    {{"NVFP4", 40, 64, 36},
     QuantCode::f4E2M1(),
     "",
     1,
     {scaled(16, ScaleType::ue4m3())}},
};

static ArrayRef<QuantLevel> levelsOf(const Row &row) {
  return {row.levels, row.levelCount};
}

ArrayRef<GGUFFormat> mlir::llm::getGGUFFormats() {
  static const SmallVector<GGUFFormat> formats =
      llvm::map_to_vector(kRows, [](const Row &row) { return row.format; });
  return formats;
}

template <typename Predicate>
static const GGUFFormat *findFormat(Predicate predicate) {
  const Row *row = llvm::find_if(kRows, predicate);
  return row == std::end(kRows) ? nullptr : &row->format;
}

const GGUFFormat *mlir::llm::lookupGGUF(StringRef name) {
  return findFormat([&](const Row &row) { return row.format.name == name; });
}

const GGUFFormat *mlir::llm::lookupGGUF(uint32_t typeId) {
  return findFormat(
      [&](const Row &row) { return row.format.typeId == typeId; });
}

const GGUFFormat *mlir::llm::lookupGGUF(Type elementType) {
  if (elementType.isF32())
    return lookupGGUF("F32");
  if (elementType.isF16())
    return lookupGGUF("F16");
  if (elementType.isBF16())
    return lookupGGUF("BF16");
  auto type = dyn_cast<QuantizedType>(elementType);
  if (!type || type.isSparse())
    return nullptr;
  return findFormat([&](const Row &row) {
    return row.levelCount != 0 && row.code == type.getCode() &&
           row.codebook == type.getCodebook() &&
           levelsOf(row) == type.getLevels();
  });
}

Type mlir::llm::getGGUFType(MLIRContext *context, const GGUFFormat &format) {
  const Row *row = llvm::find_if(kRows, [&](const Row &row) {
    return row.format.typeId == format.typeId;
  });
  if (row == std::end(kRows))
    return {};
  if (row->levelCount != 0)
    return QuantizedType::get(context, row->code, row->codebook, Sparsity(),
                              levelsOf(*row));
  if (row->format.name == "F32")
    return Float32Type::get(context);
  return row->format.name == "F16" ? Type(Float16Type::get(context))
                                   : Type(BFloat16Type::get(context));
}

Type mlir::llm::getGGUFType(MLIRContext *context, StringRef name) {
  const GGUFFormat *format = lookupGGUF(name);
  return format ? getGGUFType(context, *format) : Type();
}
