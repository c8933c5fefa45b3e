#include "lib/Weights/GGUFFile.h"
#include "lib/Weights/GGUFWriter.h"
#include "test/lib/Weights/WeightsTesting.h"

using namespace mlir::llm;
using namespace mlir::llm::testing;
using sprig::quant::Format;

namespace {

class GGUFFileTest : public Scratch {
protected:
  std::unique_ptr<GGUFFile> open(const std::vector<std::byte> &bytes) {
    auto file = GGUFFile::open(write("model.gguf", bytes));
    EXPECT_TRUE(bool(file)) << messageOf(std::move(file));
    return file ? std::move(*file) : nullptr;
  }
  std::string refusal(const std::vector<std::byte> &bytes) {
    return messageOf(GGUFFile::open(write("model.gguf", bytes)));
  }
};

std::vector<std::byte> counted(size_t count, int first = 0) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = std::byte(first + int(i));
  return bytes;
}

/// Header of a version-3 file.
Bytes header(uint64_t tensors, uint64_t values) {
  return Bytes().text("GGUF").number<uint32_t>(3).number(tensors).number(
      values);
}

/// One tensor entry; sizes as the file has them, contiguous first.
Bytes &tensor(Bytes &bytes, llvm::StringRef name, std::vector<uint64_t> sizes,
              uint32_t type, uint64_t offset) {
  bytes.string(name).number(uint32_t(sizes.size()));
  for (uint64_t size : sizes)
    bytes.number(size);
  return bytes.number(type).number(offset);
}

/// A file of one tensor with `dataBytes` zero bytes of data.
std::vector<std::byte> oneTensor(std::vector<uint64_t> sizes, uint32_t type,
                                 uint64_t offset, size_t dataBytes) {
  Bytes bytes = header(1, 0);
  tensor(bytes, "w", std::move(sizes), type, offset);
  bytes.zeros((32 - bytes.bytes.size() % 32) % 32 + dataBytes);
  return bytes;
}

TEST_F(GGUFFileTest, ReadsWhatTheWriterWrote) {
  for (uint32_t version : {2u, 3u})
    for (uint64_t alignment : {1u, 16u, 32u, 64u, 4096u}) {
      SCOPED_TRACE(alignment);
      GGUFWriter writer(version, alignment);
      writer.add("general.architecture", "llama");
      writer.add("llama.block_count", uint32_t(2));
      writer.addTensor("a", Format::F32, {2, 3}, counted(24));
      writer.addTensor("b", Format::Q4_1, {3, 64}, counted(120, 24));
      writer.addTensor("c", Format::I8, {5}, counted(5, 144));
      auto file = open(writer.bytes());
      ASSERT_TRUE(file);
      EXPECT_EQ(file->version(), version);
      EXPECT_EQ(file->alignment(), alignment);
      EXPECT_EQ(file->formatName(), "gguf");
      ASSERT_EQ(file->tensors().size(), 3u);
      const WeightTensor *b = file->find("b");
      ASSERT_TRUE(b);
      EXPECT_EQ(b->format, Format::Q4_1);
      EXPECT_EQ(b->shape, (llvm::SmallVector<int64_t, 4>{3, 64}));
      EXPECT_EQ(b->rows(), 3);
      EXPECT_EQ(b->rowBytes(), 40u);
      EXPECT_TRUE(std::ranges::equal(b->data, counted(120, 24)));
      EXPECT_TRUE(std::ranges::equal(file->find("c")->data, counted(5, 144)));
    }
}

TEST_F(GGUFFileTest, OpensTheRealModel) {
  auto file = GGUFFile::open(SPRIG_BINARY_DIR
                             "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!file) {
    llvm::consumeError(file.takeError());
    GTEST_SKIP() << "the default model is not at hand";
  }
  EXPECT_EQ(
      llvm::cantFail((*file)->metadata().getString("general.architecture")),
      "llama");
  EXPECT_EQ((*file)->tensors().size(), 272u);
  const auto tokens =
      llvm::cantFail((*file)->metadata().getStrings("tokenizer.ggml.tokens"));
  EXPECT_EQ(tokens.size(), 49152u);
  EXPECT_EQ(*tokens.begin(), "<|endoftext|>");
  EXPECT_EQ(std::distance(tokens.begin(), tokens.end()), 49152);
}

TEST_F(GGUFFileTest, RefusesWrongMagicAndVersion) {
  EXPECT_MESSAGE(refusal(Bytes().text("GGML").zeros(60)),
                 "expects the magic 'GGUF', but got 'GGML'");
  EXPECT_MESSAGE(refusal(Bytes().text("GGUF").number<uint32_t>(1).zeros(60)),
                 "expects GGUF version 2 or 3, but got 1");
  EXPECT_MESSAGE(refusal(Bytes().text("GGUF").number<uint32_t>(4).zeros(60)),
                 "but got 4");
  EXPECT_MESSAGE(refusal(Bytes().text("GGUF").number<uint32_t>(0).zeros(60)),
                 "but got 0");
}

TEST_F(GGUFFileTest, NamesBigEndianFiles) {
  for (const char *magic : {"GGUF", "FUGG"})
    EXPECT_MESSAGE(
        refusal(Bytes().text(magic).number<uint32_t>(3u << 24).zeros(60)),
        "expects a little-endian GGUF file, but got a big-endian one");
}

TEST_F(GGUFFileTest, RefusesEveryTruncation) {
  GGUFWriter writer;
  writer.add("general.architecture", "llama");
  writer.addStrings("tokens", {"a", "bc", ""});
  writer.addArray<float>("scores", {1, 2, 3});
  writer.addTensor("w", Format::F32, {4}, counted(16));
  const std::vector<std::byte> bytes = writer.bytes();
  const size_t needed = bytes.size() - 16; // the padding after the last tensor
  for (size_t size = 0; size < needed; ++size) {
    const std::string message = refusal({bytes.begin(), bytes.begin() + size});
    ASSERT_NE(message, "") << "cut to " << size;
    if (size >= 4) {
      EXPECT_TRUE(message.find("cut short") != std::string::npos ||
                  message.find("in a file of this size") != std::string::npos)
          << message;
    }
  }
  EXPECT_EQ(refusal({bytes.begin(), bytes.begin() + needed}), "");
}

TEST_F(GGUFFileTest, RefusesAbsurdLengths) {
  EXPECT_MESSAGE(refusal(header(uint64_t(1) << 60, 0).zeros(64)),
                 "tensors in a file of this size, but got 1152921504606846976");
  EXPECT_MESSAGE(refusal(header(0, ~uint64_t(0)).zeros(64)),
                 "metadata values in a file of this size");
  // Lengths of a key, a string, an array of numbers, an array of strings.
  EXPECT_MESSAGE(refusal(header(0, 1).number(~uint64_t(0)).zeros(64)),
                 "runs past the end");
  EXPECT_MESSAGE(refusal(header(0, 1)
                             .string("k")
                             .number<uint32_t>(8)
                             .number(uint64_t(1) << 40)
                             .zeros(64)),
                 "metadata 'k' of 1099511627776 bytes");
  for (uint32_t element : {0u, 12u, 8u, 9u})
    EXPECT_MESSAGE(refusal(header(0, 1)
                               .string("k")
                               .number<uint32_t>(9)
                               .number(element)
                               .number((uint64_t(1) << 61) + 1)
                               .zeros(64)),
                   "metadata 'k', an array of 2305843009213693953");
}

TEST_F(GGUFFileTest, RefusesUnknownTypes) {
  EXPECT_MESSAGE(
      refusal(header(0, 1).string("k").number<uint32_t>(13).zeros(64)),
      "metadata 'k' expects a type from 0 to 12, but got 13");
  EXPECT_MESSAGE(refusal(header(0, 1)
                             .string("k")
                             .number<uint32_t>(9)
                             .number<uint32_t>(77)
                             .zeros(64)),
                 "expects elements of a type from 0 to 12, but got 77");
  EXPECT_MESSAGE(refusal(oneTensor({32}, 9, 0, 64)), "tensor 'w' has type 9");
  EXPECT_MESSAGE(refusal(oneTensor({32}, 260, 0, 64)), "has type 260");
}

TEST_F(GGUFFileTest, BoundsTheNestingOfArrays) {
  const auto nested = [](int depth) {
    Bytes bytes = header(0, 1).string("k").number<uint32_t>(9);
    for (int i = 1; i < depth; ++i)
      bytes.number<uint32_t>(9).number<uint64_t>(1);
    return bytes.number<uint32_t>(0).number<uint64_t>(3).zeros(3);
  };
  auto file = open(nested(4));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->metadata().find("k")->describe(), "array of 1 array");
  EXPECT_MESSAGE(refusal(nested(5)), "nested at most 4 deep");
  EXPECT_MESSAGE(refusal(nested(100000)), "nested at most 4 deep");
}

TEST_F(GGUFFileTest, RefusesBadShapes) {
  EXPECT_MESSAGE(refusal(oneTensor({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 64)),
                 "tensor 'w' expects 1 to 4 dimensions, but got 9");
  EXPECT_MESSAGE(refusal(oneTensor({}, 0, 0, 64)), "but got 0");
  EXPECT_MESSAGE(refusal(oneTensor({4, 0}, 0, 0, 64)), "dimension 1 is 0");
  // 2^32 * 2^32 wraps to 0, 2^63 * 2 too; 3 * 2^62 to a small number.
  EXPECT_MESSAGE(refusal(oneTensor({1ull << 32, 1ull << 32}, 0, 0, 64)),
                 "fewer than 2^63 elements");
  EXPECT_MESSAGE(refusal(oneTensor({1ull << 63, 2}, 0, 0, 64)),
                 "fewer than 2^63 elements");
  EXPECT_MESSAGE(refusal(oneTensor({1ull << 62, 3, 4}, 0, 0, 64)),
                 "fewer than 2^63 elements");
  // Elements fit, bytes do not.
  EXPECT_MESSAGE(refusal(oneTensor({1ull << 62}, 0, 0, 64)),
                 "fewer than 2^63 bytes");
  EXPECT_MESSAGE(refusal(oneTensor({33, 2}, 2, 0, 64)),
                 "rows of a multiple of 32 numbers for type Q4_0, but got 33");
  EXPECT_MESSAGE(refusal(oneTensor({576, 2}, 12, 0, 4096)),
                 "multiple of 256 numbers for type Q4_K, but got 576");
}

TEST_F(GGUFFileTest, RefusesBadPlaces) {
  EXPECT_EQ(refusal(oneTensor({8}, 0, 0, 32)), "");
  EXPECT_MESSAGE(refusal(oneTensor({8}, 0, 0, 31)),
                 "tensor 'w' expects 32 bytes at offset 0 of the data, but the "
                 "file ends after 31");
  EXPECT_MESSAGE(refusal(oneTensor({8}, 0, 64, 64)), "cut short");
  EXPECT_MESSAGE(refusal(oneTensor({8}, 0, ~uint64_t(31), 64)), "cut short");
  EXPECT_MESSAGE(refusal(oneTensor({8}, 0, 8, 64)),
                 "an offset that is a multiple of 32, but got 8");
  Bytes bytes = header(2, 0);
  tensor(bytes, "a", {16}, 0, 0);
  tensor(bytes, "b", {8}, 0, 32);
  bytes.zeros(256);
  EXPECT_MESSAGE(refusal(bytes), "tensors 'a' and 'b' overlap");
}

TEST_F(GGUFFileTest, RefusesDuplicates) {
  GGUFWriter values;
  values.add("k", uint32_t(1));
  values.add("k", uint32_t(2));
  EXPECT_MESSAGE(refusal(values.bytes()), "'k' is there twice");
  GGUFWriter tensors;
  tensors.addTensor("w", Format::F32, {1}, counted(4));
  tensors.addTensor("w", Format::F32, {1}, counted(4));
  EXPECT_MESSAGE(refusal(tensors.bytes()), "'w' is there twice");
}

TEST_F(GGUFFileTest, RefusesAlignmentsThatAreNoPowerOfTwo) {
  for (uint64_t alignment : {0u, 13u, 48u})
    EXPECT_MESSAGE(refusal(GGUFWriter(3, alignment).bytes()),
                   "'general.alignment' expects a power of two, but got " +
                       std::to_string(alignment));
  GGUFWriter writer;
  writer.add("general.alignment", "32");
  EXPECT_MESSAGE(refusal(writer.bytes()),
                 "'general.alignment' expects an unsigned integer, but got "
                 "string");
}

/// Any damaged byte gives a refusal or a file whose tensors can all be read.
TEST_F(GGUFFileTest, SurvivesDamage) {
  GGUFWriter writer;
  writer.add("general.architecture", "llama");
  writer.addStrings("tokens", {"a", "bc", ""});
  writer.addTensor("w", Format::Q4_1, {2, 32}, counted(40));
  const std::vector<std::byte> bytes = writer.bytes();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (unsigned flip : {0x01u, 0x80u, 0xffu}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte(flip);
      auto file = GGUFFile::open(write("model.gguf", damaged));
      if (!file) {
        llvm::consumeError(file.takeError());
        continue;
      }
      (void)(*file)->fingerprint();
      for (const WeightTensor &tensor : (*file)->tensors()) {
        ASSERT_EQ(tensor.data.size(), tensor.rowBytes() * tensor.rows());
        EXPECT_NE(tensor.data.empty() ? 1 : int(tensor.data.back()), -1);
      }
    }
}

TEST_F(GGUFFileTest, NamesTheFileThatCannotBeOpened) {
  EXPECT_MESSAGE(messageOf(GGUFFile::open(path("absent.gguf"))),
                 "absent.gguf': No such file or directory");
  EXPECT_MESSAGE(messageOf(GGUFFile::open(write("empty.gguf", ""))),
                 "is an empty file");
  EXPECT_MESSAGE(messageOf(GGUFFile::open(folder.string())),
                 "is not a regular file");
}

TEST_F(GGUFFileTest, LookupSuggestsTheNearestKey) {
  GGUFWriter writer;
  writer.addTensor("blk.0.attn_q.weight", Format::F32, {1}, counted(4));
  auto file = open(writer.bytes());
  ASSERT_TRUE(file);
  EXPECT_MESSAGE(messageOf(file->get("blk.0.attn_k.weight")),
                 "did you mean 'blk.0.attn_q.weight'?");
  EXPECT_EQ(messageOf(file->get("output.weight")).find("did you mean"),
            std::string::npos);
}

TEST_F(GGUFFileTest, FingerprintFollowsTheContent) {
  const auto fingerprint = [&](int first) {
    GGUFWriter writer;
    writer.addTensor("w", Format::F32, {4}, counted(16, first));
    return open(writer.bytes())->fingerprint();
  };
  EXPECT_EQ(fingerprint(0), fingerprint(0));
  EXPECT_NE(fingerprint(0), fingerprint(1));
}

/// MODEL-00001-of-00003.gguf and so on, each with a tensor of one number.
struct SplitModel {
  std::vector<std::string> tensors{"a", "b", "c"};
  std::vector<uint16_t> numbers{0, 1, 2};
  uint16_t count = 3;
  int32_t total = 3;

  std::string write(const std::filesystem::path &folder) const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      GGUFWriter writer;
      writer.add("split.no", numbers[i]);
      writer.add("split.count", count);
      writer.add("split.tensors.count", total);
      EXPECT_FALSE(
          bool(writer.addTensor(tensors[i], Format::F32, {1}, {float(i)})));
      EXPECT_FALSE(bool(writer.write((folder / name(i)).string())));
    }
    return (folder / name(0)).string();
  }
  static std::string name(size_t i) {
    return "m-0000" + std::to_string(i + 1) + "-of-00003.gguf";
  }
};

TEST_F(GGUFFileTest, FilesOfASplitModel) {
  const std::string first = SplitModel().write(folder);
  auto file = openWeightSource(first);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  ASSERT_EQ((*file)->tensors().size(), 3u);
  float number;
  std::memcpy(&number, (*file)->find("c")->data.data(), sizeof(number));
  EXPECT_EQ(number, 2.0f);
  EXPECT_EQ((*file)->fileBytes(), 3 * std::filesystem::file_size(first));

  EXPECT_MESSAGE(messageOf(openWeightSource(path(SplitModel::name(1)))),
                 "expects the first of the 3 files of the model, but got "
                 "number 2; give the one that ends in "
                 "'-00001-of-00003.gguf'");
  std::filesystem::copy(first, path("other.gguf"));
  EXPECT_MESSAGE(messageOf(openWeightSource(path("other.gguf"))),
                 "is the first of 3 files of a model; expects a name that ends "
                 "in '-00001-of-00003.gguf'");
  std::filesystem::remove(path(SplitModel::name(2)));
  EXPECT_MESSAGE(messageOf(openWeightSource(first)),
                 "a file of the model cannot be used");
}

TEST_F(GGUFFileTest, FilesOfASplitModelThatDoNotBelongTogether) {
  SplitModel model;
  model.tensors[2] = "a";
  EXPECT_MESSAGE(messageOf(openWeightSource(model.write(folder))),
                 "expects every tensor once, but 'a' is in");
  model = {};
  model.numbers[1] = 2;
  EXPECT_MESSAGE(messageOf(openWeightSource(model.write(folder))),
                 "expects file 2 of 3 in");
  model = {};
  model.total = 7;
  EXPECT_MESSAGE(messageOf(openWeightSource(model.write(folder))),
                 "expects 7 tensors in its 3 files, but got 3");
}

} // namespace
