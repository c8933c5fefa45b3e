// Imported models are right to the logit: the tiny checkpoints of ../shared/reference as they are, and as GGUF files,
// evaluated by the reference evaluator, against the logits that the transformers library computed.
#include "lib/Reference/Evaluator.h"
#include "lib/Weights/GGUFFile.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/ImportTesting.h"
#include "test/lib/Import/TinyCheckpoint.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Format.h"
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;

namespace {

class LogitsTest : public ImportTest {
protected:
  /// The model at `source` gives the logits that the checkpoint expects.
  void expectLogits(const std::string &source, const std::string &checkpoint, double tolerance);
};

class ImportLogits : public LogitsTest, public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    ImportTest::SetUp();
    checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
    if (!std::filesystem::exists(checkpoint))
      GTEST_SKIP() << "needs " << checkpoint;
  }
  std::string checkpoint;
};

void LogitsTest::expectLogits(const std::string &source, const std::string &checkpoint, double tolerance) {
  llvm::Expected<ExpectedLogits> expected = readExpectedLogits(checkpoint);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  ImportOptions options;
  options.folder = folder.string();
  llvm::Expected<OwningOpRef<ModuleOp>> module = importModel(&context, source, options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  std::unique_ptr<reference::Evaluator> evaluator = reference::Evaluator::create(**module, folder.string());
  ASSERT_TRUE(evaluator);

  const size_t T = expected->tokens.size();
  std::vector<int32_t> positions(T);
  std::iota(positions.begin(), positions.end(), 0);
  FailureOr<SmallVector<Tensor>> results =
      evaluator->run("forward", {Tensor::ids(expected->tokens), Tensor::ids(positions), Tensor::ids(positions)});
  ASSERT_TRUE(succeeded(results));
  const std::vector<double> logits = results->front().toDoubles();
  const size_t V = expected->last.size();
  ASSERT_EQ(logits.size(), T * V);
  // The largest difference says enough.
  double first = 0.0, last = 0.0;
  for (size_t token = 0; token < V; ++token) {
    if (!expected->first.empty())
      first = std::max(first, std::abs(logits[token] - expected->first[token]));
    last = std::max(last, std::abs(logits[(T - 1) * V + token] - expected->last[token]));
  }
  EXPECT_LE(first, tolerance) << "at the first position";
  EXPECT_LE(last, tolerance) << "at the last position";
  for (size_t t = 0; t < T; ++t) {
    const auto row = logits.begin() + int64_t(t * V);
    const auto best = std::max_element(row, row + int64_t(V));
    // Where both stand as near as the tolerance allows, either will do.
    if (*best - row[expected->argmax[t]] > 2 * tolerance)
      EXPECT_EQ(best - row, expected->argmax[t]) << "position " << t;
  }
}

TEST_P(ImportLogits, OfAFolder) { expectLogits(checkpoint, checkpoint, 1e-4); }

class GGUFLogits : public ImportLogits {};

TEST_P(GGUFLogits, OfAFile) {
  llvm::Error converted = convertToGGUF(checkpoint, path("model.gguf"));
  ASSERT_FALSE(bool(converted)) << llvm::toString(std::move(converted));
  expectLogits(path("model.gguf"), checkpoint, 1e-4);
}

/// Checkpoints of compressed-tensors. Where inputs are rounded to eight bits, numbers near the middle of two codes may
/// fall to either.
class QuantisedLogits : public LogitsTest, public ::testing::WithParamInterface<std::pair<const char *, double>> {};

TEST_P(QuantisedLogits, AreThoseOfCompressedTensors) {
  const auto [name, tolerance] = GetParam();
  const std::string checkpoint = std::string(SPRIG_SHARED_DIR "/reference/tiny-quantised/") + name;
  if (!std::filesystem::exists(checkpoint))
    GTEST_SKIP() << "needs " << checkpoint;
  expectLogits(checkpoint, checkpoint, tolerance);
}
INSTANTIATE_TEST_SUITE_P(Tiny, QuantisedLogits,
                         ::testing::Values(std::pair("fp8-channel", 1e-4), std::pair("w4a16-g32-sym", 1e-4),
                                           std::pair("w8a8-channel", 2e-2)));

/// Models whose weights are computed: many families and shapes.
class VariantLogits : public LogitsTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(VariantLogits, AreThoseOfTransformers) {
  llvm::Error written = writeVariant(GetParam(), folder.string());
  ASSERT_FALSE(bool(written)) << llvm::toString(std::move(written));
  expectLogits(folder.string(), folder.string(), 1e-4);
}

/// The same as GGUF files, where there are such: not of GPT-2 (turned matrices), other activations, and patterns of layers
/// that the family's files do not state.
class VariantTwins : public VariantLogits {};

TEST_P(VariantTwins, GiveTheSameAsGGUF) {
  llvm::Error written = writeVariant(GetParam(), folder.string());
  ASSERT_FALSE(bool(written)) << llvm::toString(std::move(written));
  llvm::Error converted = convertToGGUF(folder.string(), path("model.gguf"));
  ASSERT_FALSE(bool(converted)) << llvm::toString(std::move(converted));
  expectLogits(path("model.gguf"), folder.string(), 1e-4);
}

uint32_t crcOf(llvm::StringRef bytes) { return llvm::crc32(llvm::arrayRefFromStringRef(bytes)); }

/// A key's value as generate_gguf_twins.py writes it.
std::string textOf(const GGUFMetadata &metadata, const GGUFValue &value) {
  if (value.type == GGUFType::String) {
    llvm::StringRef text;
    return llvm::errorToBool(metadata.getString(value.key).moveInto(text)) ? "" : text.str();
  }
  std::string text;
  if (value.isArray()) {
    std::vector<int64_t> numbers;
    EXPECT_FALSE(llvm::errorToBool(metadata.getIntegers(value.key).moveInto(numbers)));
    for (int64_t number : numbers)
      text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
  }
  if (value.type == GGUFType::Bool)
    return value.bytes[0] == std::byte(0) ? "0" : "1";
  double real = 0;
  EXPECT_FALSE(llvm::errorToBool(metadata.getReal(value.key).moveInto(real)));
  llvm::raw_string_ostream(text) << llvm::format("%.8g", real);
  return text;
}

/// A line for each key of the family and each tensor, in alphabetical order.
std::string listOf(const GGUFFile &file) {
  std::vector<std::string> lines;
  for (const GGUFValue &value : file.metadata().values())
    if (!value.key.starts_with("general.") || value.key == "general.architecture")
      lines.push_back(value.key.str() + " " + textOf(file.metadata(), value) + "\n");
  for (const WeightTensor &tensor : file.tensors()) {
    std::string shape;
    for (int64_t size : tensor.shape)
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    const llvm::StringRef bytes(reinterpret_cast<const char *>(tensor.data.data()), tensor.data.size());
    lines.push_back((llvm::Twine(tensor.key) + " " + llvm::StringRef(sprig::quant::info(tensor.format).name) + " " +
                     shape + " " + llvm::utohexstr(crcOf(bytes), /*LowerCase=*/true, 8) + "\n")
                        .str());
  }
  std::sort(lines.begin(), lines.end());
  return llvm::join(lines, "");
}

/// The files whose logits are right are those that the gguf package writes.
TEST_P(VariantTwins, AreWhatTheGgufPackageWrites) {
  static const nlohmann::json written =
      nlohmann::json::parse(std::ifstream(SPRIG_SOURCE_DIR "/test/lib/Import/gguf_twins.json"));
  ASSERT_TRUE(written.contains(GetParam()));
  ASSERT_FALSE(bool(writeVariant(GetParam(), folder.string())));
  ASSERT_FALSE(bool(convertToGGUF(folder.string(), path("model.gguf"))));
  auto file = GGUFFile::open(path("model.gguf"));
  ASSERT_TRUE(bool(file));
  const std::string list = listOf(**file);
  EXPECT_EQ(llvm::utohexstr(crcOf(list), /*LowerCase=*/true, 8), written[GetParam()].get<std::string>())
      << "of these; see generate_gguf_twins.py --list " << GetParam() << "\n" << list;
}

std::vector<std::string> twins() {
  std::vector<std::string> names = variantNames();
  std::erase_if(names, [](const std::string &name) {
    for (const char *none : {"gpt2", "llama-gelu", "gemma2-caps", "smollm3-list",
                             "qwen3-moe-dense-layer", "qwen2-moe-sparse-steps", "baichuan", "mimo",
                             "deepseek-v3-halves"})
      if (name.starts_with(none))
        return true;
    return false;
  });
  return names;
}

/// Whole files of that package: the folder `gguf` has two that together lack a head, have rows of Q and K in another
/// order, and lists by layer; SPRIG_GGUF_FILES may name one with all (generate_gguf_twins.py --write).
class GgufPackageFiles : public VariantLogits {};

TEST_P(GgufPackageFiles, GiveTheSame) {
  const char *all = std::getenv("SPRIG_GGUF_FILES");
  const std::string files = all ? all : SPRIG_SOURCE_DIR "/test/lib/Import/gguf";
  llvm::Error written = writeVariant(GetParam(), folder.string());
  ASSERT_FALSE(bool(written)) << llvm::toString(std::move(written));
  expectLogits(files + "/" + GetParam() + ".gguf", folder.string(), 1e-4);
}

std::vector<std::string> packageFiles() {
  if (std::getenv("SPRIG_GGUF_FILES"))
    return twins();
  return {"llama-tied-bf16", "gemma3-small-bf16"};
}

std::string variantName(const ::testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, VariantLogits, ::testing::ValuesIn(variantNames()), variantName);
INSTANTIATE_TEST_SUITE_P(All, VariantTwins, ::testing::ValuesIn(twins()), variantName);
INSTANTIATE_TEST_SUITE_P(Some, GgufPackageFiles, ::testing::ValuesIn(packageFiles()), variantName);

std::string nameOf(const ::testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, ImportLogits,
                         ::testing::Values("gemma2", "gemma3", "gpt2", "llama", "llama-head-dim-24", "llama-tied-bf16",
                                           "llama3-rope", "mistral-swa", "mixtral", "olmo2", "phi3", "qwen2", "qwen3"),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Tiny, GGUFLogits,
                         ::testing::Values("llama", "llama-head-dim-24", "llama-tied-bf16", "llama3-rope",
                                           "mistral-swa"),
                         nameOf);

} // namespace
