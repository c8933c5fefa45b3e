// The element types of GGUF formats against what their blocks measure.
#include "dialects/LLM/LLM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;

namespace {

class GGUFFormatsTest : public testing::Test {
protected:
  GGUFFormatsTest() { context.loadDialect<LLMDialect>(); }
  MLIRContext context;
};

TEST_F(GGUFFormatsTest, TypesAreDistinctAndFoundAgain) {
  ASSERT_EQ(getGGUFFormats().size(), 26u);
  for (const GGUFFormat &format : getGGUFFormats()) {
    SCOPED_TRACE(format.name.str());
    Type type = getGGUFType(&context, format);
    ASSERT_TRUE(type);
    EXPECT_EQ(getGGUFType(&context, format.name), type);
    for (const GGUFFormat *found : {lookupGGUF(type), lookupGGUF(format.name), lookupGGUF(format.typeId)}) {
      ASSERT_TRUE(found);
      EXPECT_EQ(found->name, format.name);
    }
  }
}

TEST_F(GGUFFormatsTest, UnknownNamesAndTypes) {
  EXPECT_FALSE(lookupGGUF("Q4_2"));
  EXPECT_FALSE(lookupGGUF(uint32_t(4)));
  EXPECT_FALSE(getGGUFType(&context, "Q4_2"));
  EXPECT_FALSE(lookupGGUF(Type(IntegerType::get(&context, 8))));
  // As Q8_0, but with other groups, or 2:4.
  QuantLevel level = QuantLevel::scaled(64, ScaleType::f16());
  EXPECT_FALSE(lookupGGUF(QuantizedType::get(&context, QuantCode::signedInt(8), level)));
  level.group = 32;
  EXPECT_TRUE(lookupGGUF(QuantizedType::get(&context, QuantCode::signedInt(8), level)));
  EXPECT_FALSE(lookupGGUF(QuantizedType::get(&context, QuantCode::signedInt(8), "", Sparsity{2, 4}, level)));
}

/// What a type needs by its own account is what a block takes, but for TQ1_0, which pads 256 trits to 52 bytes: that
/// is part of its account.
TEST_F(GGUFFormatsTest, BitsPerElementAreThoseOfTheBlock) {
  for (const GGUFFormat &format : getGGUFFormats()) {
    SCOPED_TRACE(format.name.str());
    auto type = dyn_cast<QuantizedType>(getGGUFType(&context, format));
    if (!type)
      continue;
    EXPECT_EQ(type.bitsPerElement() * format.blockElements, 8.0 * format.blockBytes);
    EXPECT_EQ(format.blockElements % type.blockElements(), 0);
  }
}

TEST_F(GGUFFormatsTest, AgreesWithTheReferenceBlocks) {
  auto file = llvm::MemoryBuffer::getFile(SPRIG_SHARED_DIR "/reference/blocks.json");
  if (!file)
    GTEST_SKIP() << "no reference data beside the project";
  llvm::Expected<llvm::json::Value> blocks = llvm::json::parse((*file)->getBuffer());
  ASSERT_TRUE(static_cast<bool>(blocks));
  ASSERT_EQ(blocks->getAsObject()->size(), getGGUFFormats().size());
  for (const auto &[name, value] : *blocks->getAsObject()) {
    SCOPED_TRACE(name.str());
    const GGUFFormat *format = lookupGGUF(name.str());
    ASSERT_TRUE(format);
    const llvm::json::Object &block = *value.getAsObject();
    EXPECT_EQ(block.getInteger("type_id"), format->typeId);
    EXPECT_EQ(block.getInteger("block_elements"), format->blockElements);
    EXPECT_EQ(block.getInteger("block_bytes"), format->blockBytes);
  }
}

TEST_F(GGUFFormatsTest, SizesOfOtherTypes) {
  auto sized = [&](QuantCode code, Sparsity sparsity, ArrayRef<QuantLevel> levels) {
    return QuantizedType::get(&context, code, "", sparsity, levels);
  };
  // Two of four 4-bit codes and a 3-bit pattern, an f16 for 64.
  QuantizedType sparse = sized(QuantCode::signedInt(4), {2, 4}, QuantLevel::scaled(64, ScaleType::f16()));
  EXPECT_EQ(sparse.bitsPerElement(), 11 / 4.0 + 16 / 64.0);
  EXPECT_EQ(sparse.blockElements(), 64);
  EXPECT_EQ(Sparsity({4, 8}).patternBits(), 7u);
  // A scale a row is not counted.
  QuantizedType row = sized(QuantCode::signedInt(8), {}, QuantLevel::scaled(kWholeRow, ScaleType::f32()));
  EXPECT_EQ(row.bitsPerElement(), 8);
  EXPECT_EQ(row.blockElements(), kWholeRow);
  EXPECT_EQ(sized(QuantCode::signedInt(8), {}, {}).blockElements(), 1);
  QuantLevel zero = QuantLevel::withOffset(128, ScaleType::f16(), OffsetKind::Zero, ScaleType::unsignedInt(4));
  EXPECT_EQ(sized(QuantCode::unsignedInt(4), {}, zero).bitsPerElement(), 4 + 20 / 128.0);
}

TEST(QuantCodeTest, Ranges) {
  auto range = [](QuantCode code) { return std::pair(code.minimum(), code.maximum()); };
  EXPECT_EQ(range(QuantCode::signedInt(6)), std::pair(int64_t(-32), int64_t(31)));
  EXPECT_EQ(range(QuantCode::unsignedInt(4)), std::pair(int64_t(0), int64_t(15)));
  EXPECT_EQ(range(QuantCode::offsetInt(4, 8)), std::pair(int64_t(-8), int64_t(7)));
  EXPECT_EQ(range(QuantCode::trit()), std::pair(int64_t(-1), int64_t(1)));
}

} // namespace
