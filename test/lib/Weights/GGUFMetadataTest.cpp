#include "lib/Weights/GGUFFile.h"
#include "lib/Weights/GGUFWriter.h"
#include "test/lib/Weights/WeightsTesting.h"

using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

class GGUFMetadataTest : public Scratch {
protected:
  void SetUp() override {
    Scratch::SetUp();
    GGUFWriter writer;
    writer.add("u8", uint8_t(200));
    writer.add("i8", int8_t(-3));
    writer.add("u16", uint16_t(60000));
    writer.add("i16", int16_t(-300));
    writer.add("u32", uint32_t(4000000000));
    writer.add("i32", int32_t(-4));
    writer.add("u64", ~uint64_t(0));
    writer.add("i64", int64_t(-5));
    writer.add("f32", 0.1f);
    writer.add("f64", 0.1);
    writer.add("bool", true);
    writer.add("text", "héllo");
    writer.add("empty", "");
    writer.addStrings("strings", {"a", "", "bcd"});
    writer.addArray<uint8_t>("bytes", {1, 2, 255});
    writer.addArray<int32_t>("ints", {-1, 2, 3});
    writer.addArray<uint64_t>("longs", {~uint64_t(0)});
    writer.addArray<float>("floats", {0.5f, -1.0f});
    writer.addArray<double>("doubles", {0.25});
    writer.addArray<bool>("bools", {true, false, true});
    writer.addStrings("none", {});
    auto opened = GGUFFile::open(write("m.gguf", writer.bytes()));
    ASSERT_TRUE(bool(opened)) << messageOf(std::move(opened));
    file = std::move(*opened);
  }
  const GGUFMetadata &metadata() { return file->metadata(); }

  std::unique_ptr<GGUFFile> file;
};

TEST_F(GGUFMetadataTest, ReadsEveryType) {
  using llvm::cantFail;
  EXPECT_EQ(cantFail(metadata().getUnsigned("u8")), 200u);
  EXPECT_EQ(cantFail(metadata().getInteger("i8")), -3);
  EXPECT_EQ(cantFail(metadata().getUnsigned("u16")), 60000u);
  EXPECT_EQ(cantFail(metadata().getInteger("i16")), -300);
  EXPECT_EQ(cantFail(metadata().getUnsigned("u32")), 4000000000u);
  EXPECT_EQ(cantFail(metadata().getInteger("i32")), -4);
  EXPECT_EQ(cantFail(metadata().getUnsigned("u64")), ~uint64_t(0));
  EXPECT_EQ(cantFail(metadata().getInteger("i64")), -5);
  EXPECT_EQ(cantFail(metadata().getReal("f32")), double(0.1f));
  EXPECT_EQ(cantFail(metadata().getReal("f64")), 0.1);
  EXPECT_EQ(cantFail(metadata().getReal("u16")), 60000.0);
  EXPECT_TRUE(cantFail(metadata().getBool("bool")));
  EXPECT_EQ(cantFail(metadata().getString("text")), "héllo");
  EXPECT_EQ(cantFail(metadata().getString("empty")), "");
  EXPECT_EQ(cantFail(metadata().getIntegers("bytes")),
            (std::vector<int64_t>{1, 2, 255}));
  EXPECT_EQ(cantFail(metadata().getIntegers("ints")),
            (std::vector<int64_t>{-1, 2, 3}));
  EXPECT_EQ(cantFail(metadata().getIntegers("bools")),
            (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(cantFail(metadata().getReals("floats")),
            (std::vector<float>{0.5f, -1.0f}));
  EXPECT_EQ(cantFail(metadata().getReals("doubles")),
            (std::vector<float>{0.25f}));
  const GGUFStrings strings = cantFail(metadata().getStrings("strings"));
  EXPECT_EQ((std::vector<llvm::StringRef>(strings.begin(), strings.end())),
            (std::vector<llvm::StringRef>{"a", "", "bcd"}));
  EXPECT_EQ(cantFail(metadata().getStrings("none")).size(), 0u);
  EXPECT_EQ(metadata().values().size(), 21u);
}

TEST_F(GGUFMetadataTest, AbsentKeys) {
  EXPECT_FALSE(metadata().has("x"));
  EXPECT_EQ(llvm::cantFail(metadata().getUnsigned("x", 7)), 7u);
  EXPECT_EQ(llvm::cantFail(metadata().getReal("x", 0.5)), 0.5);
  EXPECT_MESSAGE(messageOf(metadata().getString("x")),
                 "m.gguf: expects metadata 'x', but the file has no such key");
  EXPECT_MESSAGE(messageOf(metadata().getStrings("x")), "no such key");
}

/// A default never hides a value of the wrong type.
TEST_F(GGUFMetadataTest, WrongTypesNameKeyAndBothTypes) {
  EXPECT_MESSAGE(
      messageOf(metadata().getUnsigned("ints", 1)),
      "metadata 'ints' expects an unsigned integer, but got array of "
      "3 i32");
  EXPECT_MESSAGE(messageOf(metadata().getUnsigned("i32")), "but got i32 -4");
  EXPECT_MESSAGE(messageOf(metadata().getInteger("u64")),
                 "expects an integer, but got u64 18446744073709551615");
  EXPECT_MESSAGE(messageOf(metadata().getUnsigned("f32")), "but got f32");
  EXPECT_MESSAGE(messageOf(metadata().getUnsigned("bool")), "but got bool");
  EXPECT_MESSAGE(messageOf(metadata().getReal("text")),
                 "expects a real number, but got string");
  EXPECT_MESSAGE(messageOf(metadata().getBool("u8")),
                 "expects a boolean, but got u8 200");
  EXPECT_MESSAGE(messageOf(metadata().getString("strings")),
                 "expects a string, but got array of 3 string");
  EXPECT_MESSAGE(messageOf(metadata().getStrings("text")),
                 "expects an array of strings, but got string");
  EXPECT_MESSAGE(messageOf(metadata().getStrings("ints")),
                 "expects an array of strings, but got array of 3 i32");
  EXPECT_MESSAGE(messageOf(metadata().getReals("bytes")),
                 "expects an array of f32, but got array of 3 u8");
  EXPECT_MESSAGE(messageOf(metadata().getIntegers("floats")),
                 "expects an array of integers, but got array of 2 f32");
  EXPECT_MESSAGE(messageOf(metadata().getIntegers("longs")), "below 2^63");
}

TEST_F(GGUFMetadataTest, PerLayerNumbers) {
  EXPECT_EQ(llvm::cantFail(metadata().getUnsignedPerLayer("u8", 2)),
            (std::vector<uint64_t>{200, 200}));
  EXPECT_EQ(llvm::cantFail(metadata().getUnsignedPerLayer("bytes", 3)),
            (std::vector<uint64_t>{1, 2, 255}));
  EXPECT_EQ(llvm::cantFail(metadata().getUnsignedPerLayer("x", 2, 9)),
            (std::vector<uint64_t>{9, 9}));
  EXPECT_MESSAGE(messageOf(metadata().getUnsignedPerLayer("bytes", 4)),
                 "one for each of 4 layers, but got array of 3 u8");
  EXPECT_MESSAGE(messageOf(metadata().getUnsignedPerLayer("ints", 3)),
                 "but got array of 3 i32");
}

} // namespace
