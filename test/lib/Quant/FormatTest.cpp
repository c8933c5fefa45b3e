#include "lib/Quant/Format.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <fstream>
#include <set>

using namespace sprig::quant;

namespace {

std::vector<std::byte> fromBase64(const std::string &text) {
  std::vector<std::byte> bytes;
  uint32_t window = 0;
  int bits = 0;
  for (char c : text) {
    const char *digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? std::strchr(digits, c) : nullptr;
    if (!at)
      break;
    window = window << 6 | uint32_t(at - digits);
    if ((bits += 6) >= 8)
      bytes.push_back(std::byte(window >> (bits -= 8)));
  }
  return bytes;
}

/// Every type of the reference decodes to the same bits, and no type of the
/// table is missing there.
TEST(FormatTest, DecodesTheReferenceBlocksToTheLastBit) {
  std::ifstream file(SPRIG_SHARED_DIR "/reference/blocks.json");
  if (!file)
    GTEST_SKIP() << "reference/blocks.json is not at hand";
  const auto reference = nlohmann::json::parse(file);
  EXPECT_EQ(reference.size(), 26u);
  for (const auto &[name, entry] : reference.items()) {
    SCOPED_TRACE(name);
    const auto format = formatOfName(name);
    ASSERT_TRUE(format);
    EXPECT_EQ(formatOfGGUF(entry["type_id"].get<uint32_t>()), format);
    const FormatInfo &row = info(*format);
    EXPECT_EQ(row.name, name);
    EXPECT_EQ(row.blockElements, entry["block_elements"].get<uint32_t>());
    EXPECT_EQ(row.blockBytes, entry["block_bytes"].get<uint32_t>());

    const auto raw = fromBase64(entry["raw_base64"].get<std::string>());
    const auto values = entry["values"].get<std::vector<double>>();
    ASSERT_EQ(raw.size(), row.rowBytes(values.size()));
    std::vector<float> decoded(values.size());
    decode(*format, raw.data(), decoded.data(), decoded.size());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]),
                std::bit_cast<uint32_t>(float(values[i])))
          << "number " << i << ": " << decoded[i] << " and not " << values[i];
  }
}

TEST(FormatTest, RowsAreFoundByNumberAndName) {
  std::set<std::string_view> names;
  for (const FormatInfo &row : formats()) {
    EXPECT_EQ(&info(row.format), &row);
    EXPECT_EQ(formatOfName(row.name), row.format);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (uint32_t(row.format) < 256)
      EXPECT_EQ(formatOfGGUF(uint32_t(row.format)), row.format);
  }
  EXPECT_EQ(formatOfName("q4_k"), Format::Q4_K);
  EXPECT_EQ(formatOfName("Q4_"), std::nullopt);
}

TEST(FormatTest, UnknownNumbersHaveNoFormat) {
  // 4 and 5 were dropped from the file format; 9 and 15 never occur in files;
  // 31-33 and 36-38 are packed variants.
  for (uint32_t type : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 41u,
                        255u, 256u, 263u, 511u, 512u, ~0u})
    EXPECT_EQ(formatOfGGUF(type), std::nullopt) << type;
}

TEST(FormatTest, PlainTypesDecode) {
  const auto one = [](Format format, auto value) {
    float decoded = -1;
    decode(format, reinterpret_cast<const std::byte *>(&value), &decoded, 1);
    return decoded;
  };
  EXPECT_EQ(one(Format::I8, int8_t(-128)), -128.0f);
  EXPECT_EQ(one(Format::U8, uint8_t(255)), 255.0f);
  EXPECT_EQ(one(Format::I16, int16_t(-2)), -2.0f);
  EXPECT_EQ(one(Format::U16, uint16_t(65535)), 65535.0f);
  EXPECT_EQ(one(Format::I32, int32_t(-3)), -3.0f);
  EXPECT_EQ(one(Format::U32, uint32_t(1) << 31), 0x1p31f);
  EXPECT_EQ(one(Format::I64, int64_t(-4)), -4.0f);
  EXPECT_EQ(one(Format::U64, uint64_t(1) << 63), 0x1p63f);
  EXPECT_EQ(one(Format::F64, 0.1), 0.1f);
  EXPECT_EQ(one(Format::Bool, uint8_t(1)), 1.0f);
}

} // namespace
