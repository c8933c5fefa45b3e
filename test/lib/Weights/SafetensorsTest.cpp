#include "lib/Weights/SafetensorsFile.h"
#include "lib/Weights/SafetensorsShards.h"
#include "lib/Weights/SafetensorsWriter.h"
#include "test/lib/Weights/WeightsTesting.h"

using namespace mlir::llm;
using namespace mlir::llm::testing;
using sprig::quant::Format;

namespace {

class SafetensorsTest : public Scratch {
protected:
  /// A file with that header and `dataBytes` of data.
  std::vector<std::byte> raw(const std::string &header, size_t dataBytes) {
    return Bytes()
        .number<uint64_t>(header.size())
        .text(header)
        .zeros(dataBytes);
  }
  std::string refusal(const std::vector<std::byte> &bytes) {
    return messageOf(SafetensorsFile::open(write("m.safetensors", bytes)));
  }
  /// The refusal of a header with one tensor entry.
  std::string refusalOf(const std::string &entry, size_t dataBytes = 8) {
    return refusal(raw("{\"w\":" + entry + "}", dataBytes));
  }
  /// Writes a file of one tensor, by our own writer.
  void writeOne(const std::string &name, llvm::StringRef key) {
    auto writer = llvm::cantFail(SafetensorsWriter::create(path(name)));
    const float number = 1;
    llvm::cantFail(writer->add(key, Format::F32, {1},
                               std::as_bytes(std::span(&number, 1))));
    llvm::cantFail(writer->finish());
  }
};

TEST_F(SafetensorsTest, EveryTypeSurvivesAWriteAndARead) {
  auto writer = llvm::cantFail(SafetensorsWriter::create(path("m")));
  std::vector<std::vector<std::byte>> data;
  for (const auto &row : sprig::quant::formats()) {
    if (!row.isPlain())
      continue;
    std::vector<std::byte> bytes(6 * row.blockBytes);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = std::byte(i + data.size());
    data.push_back(bytes);
    llvm::cantFail(writer->begin(row.name, row.format, {2, 3}));
    // In two pieces.
    llvm::cantFail(writer->write(std::span(bytes).first(5)));
    llvm::cantFail(writer->write(std::span(bytes).subspan(5)));
  }
  EXPECT_EQ(data.size(), 16u);
  llvm::cantFail(
      writer->add("scalar \"x\"\n", Format::U8, {}, {data[0].data(), 1}));
  llvm::cantFail(writer->add("nothing", Format::F32, {0, 4}, {}));
  EXPECT_EQ(files().size(), 1u) << "only the temporary file";
  EXPECT_FALSE(std::filesystem::exists(path("m")));
  llvm::cantFail(writer->finish({{"made by", "a test"}}));
  EXPECT_EQ(files(), std::vector<std::string>{"m"});

  auto file = llvm::cantFail(SafetensorsFile::open(path("m")));
  EXPECT_EQ(file->metadata().at("made by"), "a test");
  EXPECT_EQ(file->tensors().size(), 18u);
  size_t next = 0;
  for (const auto &row : sprig::quant::formats()) {
    if (!row.isPlain())
      continue;
    const WeightTensor *tensor = file->find(row.name);
    ASSERT_TRUE(tensor) << row.name;
    EXPECT_EQ(tensor->format, row.format);
    EXPECT_EQ(tensor->shape, (llvm::SmallVector<int64_t, 4>{2, 3}));
    EXPECT_TRUE(std::ranges::equal(tensor->data, data[next++])) << row.name;
  }
  EXPECT_EQ(file->find("scalar \"x\"\n")->elements(), 1);
  EXPECT_EQ(file->find("nothing")->elements(), 0);
}

TEST_F(SafetensorsTest, ReadsOtherPeoplesFiles) {
  auto file = openWeightSource(
      SPRIG_SHARED_DIR "/reference/tiny/llama-tied-bf16/model.safetensors");
  if (!file) {
    llvm::consumeError(file.takeError());
    GTEST_SKIP() << "the reference models are not at hand";
  }
  EXPECT_EQ((*file)->formatName(), "safetensors");
  const WeightTensor *table = (*file)->find("model.embed_tokens.weight");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->format, Format::BF16);
  EXPECT_EQ(table->shape.size(), 2u);
}

/// More tensors than the header has room for at first.
TEST_F(SafetensorsTest, GrowsTheHeaderWhenItMust) {
  auto writer = llvm::cantFail(SafetensorsWriter::create(path("m")));
  for (uint32_t i = 0; i < 3000; ++i)
    llvm::cantFail(writer->add("tensor." + std::to_string(i), Format::U32, {1},
                               std::as_bytes(std::span(&i, 1))));
  llvm::cantFail(writer->finish());
  auto file = llvm::cantFail(SafetensorsFile::open(path("m")));
  for (uint32_t i = 0; i < 3000; ++i) {
    uint32_t number;
    std::memcpy(&number, file->find("tensor." + std::to_string(i))->data.data(),
                4);
    ASSERT_EQ(number, i);
  }
}

TEST_F(SafetensorsTest, AnUnfinishedWriterLeavesNothing) {
  writeOne("m", "old");
  {
    auto writer = llvm::cantFail(SafetensorsWriter::create(path("m")));
    llvm::cantFail(writer->begin("new", Format::F32, {2}));
    const std::string short_ = llvm::toString(writer->finish());
    EXPECT_MESSAGE(short_, "tensor 'new' expects 8 bytes, but got 0");
  }
  EXPECT_EQ(files(), std::vector<std::string>{"m"});
  EXPECT_TRUE(llvm::cantFail(SafetensorsFile::open(path("m")))->find("old"));
}

TEST_F(SafetensorsTest, WriterRefuses) {
  auto writer = llvm::cantFail(SafetensorsWriter::create(path("m")));
  EXPECT_MESSAGE(llvm::toString(writer->begin("q", Format::Q4_1, {1, 32})),
                 "expects a plain type, but got blocks of Q4_1");
  llvm::cantFail(writer->add("w", Format::F32, {0}, {}));
  EXPECT_MESSAGE(llvm::toString(writer->begin("w", Format::F32, {0})),
                 "'w' is written twice");
  EXPECT_MESSAGE(messageOf(SafetensorsWriter::create(path("absent/folder/m"))),
                 "cannot create");
}

TEST_F(SafetensorsTest, RefusesBadHeaders) {
  EXPECT_MESSAGE(refusal(Bytes().text("abc")), "header length of 8 bytes");
  EXPECT_MESSAGE(refusal(Bytes().number<uint64_t>(100'000'001).zeros(99)),
                 "at most 100000000 bytes, but got 100000001");
  EXPECT_MESSAGE(refusal(Bytes().number<uint64_t>(1000).text("{").zeros(9)),
                 "expects a header of 1000 bytes, but the file ends after 10");
  EXPECT_MESSAGE(refusal(raw(" {}", 0)), "begin with '{'");
  EXPECT_MESSAGE(refusal(raw("", 4)), "begin with '{'");
  EXPECT_MESSAGE(refusal(raw("{\"w\":", 0)), "not valid JSON");
  EXPECT_MESSAGE(refusal(raw("{} x", 0)), "not valid JSON");
  EXPECT_MESSAGE(refusal(raw("{\"\xff\":{}}", 0)), "not valid JSON");
  EXPECT_MESSAGE(refusal(raw("{\"w\":3}", 0)),
                 "'w' expects an object, but got a number");
  EXPECT_MESSAGE(refusal(raw("{\"__metadata__\":{\"k\":1}}", 0)),
                 "metadata 'k' expects a string, but got a number");
  // Deep nesting must not use the stack.
  EXPECT_MESSAGE(refusal(raw("{\"w\":{\"x\":" + std::string(1000000, '['), 0)),
                 "not valid JSON");
}

TEST_F(SafetensorsTest, RefusesBadEntries) {
  EXPECT_MESSAGE(refusalOf(R"({"dtype":"F32","shape":[2]})"),
                 "tensor 'w' expects 'dtype', 'shape' and 'data_offsets'");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F7","shape":[2],"data_offsets":[0,8]})"),
      "tensor 'w' has the unknown dtype 'F7'");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"Q4_0","shape":[2],"data_offsets":[0,8]})"),
      "unknown dtype 'Q4_0'");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
      "tensor 'w' has a negative number as its 'shape'");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"),
      "a fraction");
  EXPECT_MESSAGE(refusalOf(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"),
                 "tensor 'w' has a number as its 'shape'");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})"),
      "an array");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
      "data_offsets in order, but got [8, 0]");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})"),
      "two data_offsets, but got 3");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
      "expects 12 bytes for its shape and dtype, but its data_offsets span 8");
  EXPECT_MESSAGE(
      refusalOf(
          R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
          0),
      "fewer than 2^63 bytes");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"),
      "ends at byte 16 of the data, but the file has 8");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
      "4 bytes follow them");
  EXPECT_MESSAGE(
      refusalOf(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
      "tensor 'w' leaves a hole before it");
  EXPECT_MESSAGE(
      refusalOf(
          R"({"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[4,8]})"),
      "'dtype' is there twice");
  // Members that the format does not define are allowed.
  EXPECT_EQ(
      refusalOf(
          R"({"dtype":"F32","x":{"y":[1,{}]},"shape":[2],"data_offsets":[0,8]})"),
      "");
}

TEST_F(SafetensorsTest, RefusesDuplicatesAndOverlaps) {
  const std::string entry =
      R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_MESSAGE(refusal(raw("{\"w\":" + entry + ",\"w\":" + entry + "}", 4)),
                 "'w' is there twice");
  EXPECT_MESSAGE(refusal(raw("{\"a\":" + entry + ",\"b\":" + entry + "}", 4)),
                 "overlaps the one before it");
}

TEST_F(SafetensorsTest, ShardsOfACheckpoint) {
  writeOne("one.safetensors", "a");
  writeOne("two.safetensors", "b");
  const auto index = [&](llvm::StringRef map) {
    return write("model.safetensors.index.json",
                 ("{\"metadata\":{},\"weight_map\":" + map + "}").str());
  };
  auto good = openWeightSource(
      index(R"({"a":"one.safetensors","b":"two.safetensors"})"));
  ASSERT_TRUE(bool(good)) << messageOf(std::move(good));
  EXPECT_EQ((*good)->tensors().size(), 2u);
  EXPECT_TRUE((*good)->find("b"));

  const auto refusal = [&](llvm::StringRef map) {
    return messageOf(SafetensorsShards::open(index(map)));
  };
  EXPECT_MESSAGE(refusal(R"({"a":"one.safetensors","b":"three.safetensors"})"),
                 "three.safetensors': No such file");
  for (const char *name : {"../one.safetensors", "/one.safetensors", "..", "",
                           "x\\\\one.safetensors"})
    EXPECT_MESSAGE(refusal(("{\"a\":\"" + llvm::Twine(name) + "\"}").str()),
                   "expects a file beside the index");
  EXPECT_MESSAGE(refusal(R"({"a":"one.safetensors","b":"one.safetensors"})"),
                 "expects tensor 'b' in 'one.safetensors'");
  EXPECT_MESSAGE(refusal(R"({"a":3})"), "expects the name of a file");
  EXPECT_MESSAGE(refusal("[]"), "expects an object 'weight_map'");
  EXPECT_MESSAGE(messageOf(SafetensorsShards::open(write("x.index.json", "{"))),
                 "is not valid JSON");
  auto writer = llvm::cantFail(SafetensorsWriter::create(path("both")));
  llvm::cantFail(writer->add("a", Format::F32, {0}, {}));
  llvm::cantFail(writer->add("b", Format::F32, {0}, {}));
  llvm::cantFail(writer->finish());
  EXPECT_MESSAGE(refusal(R"({"a":"both"})"),
                 "does not list tensor 'b' of 'both'");
}

TEST_F(SafetensorsTest, NeitherFormat) {
  EXPECT_MESSAGE(messageOf(openWeightSource(write(
                     "m", "version https://git-lfs.github.com/spec/v1\n"))),
                 "Git LFS pointer");
}

} // namespace
