#include "test/lib/Weights/TinyLlama.h"
#include "lib/Weights/GGUFFile.h"
#include "test/lib/Weights/WeightsTesting.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <set>

using namespace mlir::llm;
using namespace mlir::llm::testing;
using sprig::quant::Format;

namespace {

class TinyLlamaTest : public Scratch {
protected:
  std::unique_ptr<GGUFFile> make(const TinyLlamaOptions &options) {
    llvm::cantFail(writeTinyLlama(path("tiny.gguf"), options));
    return llvm::cantFail(GGUFFile::open(path("tiny.gguf")));
  }
};

TEST_F(TinyLlamaTest, EveryVariantOpens) {
  for (llvm::StringRef name : tinyLlamaVariants()) {
    SCOPED_TRACE(name.str());
    const auto options = tinyLlamaVariant(name);
    ASSERT_TRUE(options);
    auto file = make(*options);
    const GGUFMetadata &metadata = file->metadata();
    const int64_t V = kTinyVocabulary + options->paddingTokens;
    const auto tokens =
        llvm::cantFail(metadata.getStrings("tokenizer.ggml.tokens"));
    EXPECT_EQ(int64_t(tokens.size()), V);
    EXPECT_EQ(std::set<llvm::StringRef>(tokens.begin(), tokens.end()).size(),
              tokens.size())
        << "every token once";
    const WeightTensor *table = file->find("token_embd.weight");
    ASSERT_TRUE(table);
    EXPECT_EQ(table->shape, (llvm::SmallVector<int64_t, 4>{V, options->D}));
    EXPECT_EQ(file->find("output.weight") != nullptr, options->separateOutput);
    EXPECT_EQ(file->find("blk.1.attn_output.bias") != nullptr, options->biases);
    EXPECT_EQ(metadata.has("llama.attention.key_length"),
              options->E * options->H != options->D);
    for (const WeightTensor &tensor : file->tensors()) {
      std::vector<float> numbers(size_t(tensor.elements()));
      sprig::quant::decode(tensor.format, tensor.data.data(), numbers.data(),
                           numbers.size());
      double square = 0;
      for (float number : numbers)
        square += double(number) * number;
      const double rms = std::sqrt(square / double(numbers.size()));
      EXPECT_TRUE(rms > 0.05 && rms < 3) << tensor.key.str() << ": " << rms;
    }
  }
  EXPECT_FALSE(tinyLlamaVariant("huge"));
}

/// The same bytes on every machine: other tests hold numbers that depend on it.
TEST_F(TinyLlamaTest, BytesFollowFromTheSeed) {
  const auto hash = [&](uint64_t seed) {
    TinyLlamaOptions options;
    options.seed = seed;
    make(options);
    auto file = llvm::cantFail(MappedFile::open(path("tiny.gguf")));
    return llvm::xxh3_64bits(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(file.bytes().data()),
                       file.bytes().size()));
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
  EXPECT_EQ(hash(1), 5658092360053540028u);
}

TEST_F(TinyLlamaTest, RefusesSizesThatAreNotWholeBlocks) {
  TinyLlamaOptions options;
  options.F = 100;
  EXPECT_MESSAGE(
      llvm::toString(writeTinyLlama(path("tiny.gguf"), options)),
      "'blk.0.ffn_down.weight' expects rows of whole blocks of Q4_1");
  EXPECT_TRUE(files().empty()) << "nothing is written";
}

} // namespace
