// Models with real weights against other people's software: shared/reference was made with Hugging Face transformers in
// f32.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

struct RealModel {
  StringLiteral name, path, expected, fetch;
  float tolerance; ///< on logits
};
static constexpr RealModel kSmolLM2{"SmolLM2", SPRIG_BINARY_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
                                    SPRIG_SHARED_DIR "/reference/smollm2.json", "tools/fetch-model.sh", 2e-3f};
static constexpr RealModel kGemma3{"Gemma3", SPRIG_BINARY_DIR "/models/gemma-3-270m-q4_k_m.gguf",
                                   SPRIG_SHARED_DIR "/reference/gemma3.json", "tools/fetch-model.sh gemma3-270m", 1e-2f};

static llvm::json::Value readJson(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return nullptr;
  auto value = llvm::json::parse((*buffer)->getBuffer());
  if (!value)
    return llvm::consumeError(value.takeError()), nullptr;
  return std::move(*value);
}

template <typename T> static std::vector<T> list(const llvm::json::Object &object, StringRef key) {
  std::vector<T> values;
  if (const llvm::json::Array *array = object.getArray(key))
    for (const llvm::json::Value &value : *array)
      values.push_back(T(*value.getAsNumber()));
  return values;
}

static std::vector<int32_t> range(int32_t begin, size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

/// The largest element of a row, and how far it stands above the second.
static std::pair<int32_t, float> topOf(ArrayRef<float> row) {
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best])
      best = i;
  float second = -INFINITY;
  for (size_t i = 0; i < row.size(); ++i)
    if (i != best)
      second = std::max(second, row[i]);
  return {int32_t(best), row[best] - second};
}

namespace {
class RealModels : public testing::TestWithParam<RealModel> {
protected:
  void SetUp() override {
    if (!llvm::sys::fs::exists(GetParam().path))
      GTEST_SKIP() << "needs " << GetParam().path.str() << ": run " << GetParam().fetch.str();
    if (!llvm::sys::fs::exists(GetParam().expected))
      GTEST_SKIP() << "needs " << GetParam().expected.str();
    if (!model || model->name != GetParam().name)
      model = std::make_unique<Model>(GetParam());
    ASSERT_TRUE(model->module) << model->messages;
    model->evaluator->resetState();
  }

  /// Logits of `rows` of a step of tokens that starts at position `base`.
  static ArrayRef<float> logits(ArrayRef<int32_t> tokens, int32_t base, ArrayRef<int32_t> rows) {
    auto results = model->evaluator->run(
        "forward", {Tensor::ids(tokens), Tensor::ids(range(base, tokens.size())), Tensor::ids(rows)});
    EXPECT_TRUE(succeeded(results)) << model->messages;
    if (failed(results))
      return {};
    model->last = (*results)[0];
    return model->last.as<float>();
  }

  struct Model {
    explicit Model(const RealModel &real) : name(real.name), handler(&context, [this](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; }) {
      auto imported = importModel(&context, real.path);
      if (!imported) {
        messages += llvm::toString(imported.takeError());
        return;
      }
      module = std::move(*imported);
      evaluator = Evaluator::create(*module, "");
      expected = readJson(real.expected);
    }
    StringRef name;
    MLIRContext context{MLIRContext::Threading::DISABLED};
    std::string messages;
    ScopedDiagnosticHandler handler;
    OwningOpRef<ModuleOp> module;
    std::unique_ptr<Evaluator> evaluator;
    llvm::json::Value expected = nullptr;
    Tensor last;
  };
  /// One evaluator for all tests of a model: the weights are decoded once.
  static std::unique_ptr<Model> model;
};
std::unique_ptr<RealModels::Model> RealModels::model;
} // namespace

INSTANTIATE_TEST_SUITE_P(All, RealModels, testing::Values(kSmolLM2, kGemma3),
                         [](const auto &info) { return info.param.name.str(); });

// The prompt and the 32 greedy tokens in one step: each logit row must choose the next of them.
TEST_P(RealModels, PromptsAndGreedyTokens) {
  ASSERT_TRUE(model->expected.getAsArray());
  size_t compared = 0;
  for (const llvm::json::Value &entry : *model->expected.getAsArray()) {
    const llvm::json::Object &prompt = *entry.getAsObject();
    SCOPED_TRACE(prompt.getString("prompt")->str());
    const auto ids = list<int32_t>(prompt, "ids"), greedy = list<int32_t>(prompt, "greedy32");
    const auto margins = list<float>(prompt, "greedy32_margin");
    std::vector<int32_t> tokens = ids;
    tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
    model->evaluator->resetState();
    const ArrayRef<float> rows = logits(tokens, 0, range(0, tokens.size()));
    ASSERT_FALSE(rows.empty());
    const size_t V = rows.size() / tokens.size();

    const ArrayRef<float> last = rows.slice((ids.size() - 1) * V, V);
    const auto topIds = list<int32_t>(prompt, "top10_ids");
    const auto topLogits = list<float>(prompt, "top10_logits");
    for (size_t i = 0; i < topIds.size(); ++i)
      EXPECT_NEAR(last[size_t(topIds[i])], topLogits[i], GetParam().tolerance) << "logit of token " << topIds[i];

    const auto argmax = list<int32_t>(prompt, "per_position_argmax");
    for (size_t i = 0; i < argmax.size(); ++i)
      if (auto [token, margin] = topOf(rows.slice(i * V, V)); margin > 0.1)
        EXPECT_EQ(token, argmax[i]) << "after prompt token " << i;
    for (size_t i = 0; i < greedy.size(); ++i, ++compared) {
      const auto [token, margin] = topOf(rows.slice((ids.size() - 1 + i) * V, V));
      if (margins[i] > 0.1)
        EXPECT_EQ(token, greedy[i]) << "greedy token " << i;
      EXPECT_NEAR(margin, margins[i], 2.5f * GetParam().tolerance) << "greedy token " << i;
    }
  }
  EXPECT_EQ(compared, 8u * 32);
}

// A prefill, then token by token through the caches: the same tokens.
TEST_P(RealModels, DecodesThroughTheCache) {
  ASSERT_TRUE(model->expected.getAsArray());
  const llvm::json::Object &prompt = *model->expected.getAsArray()->front().getAsObject();
  const auto ids = list<int32_t>(prompt, "ids"), greedy = list<int32_t>(prompt, "greedy32");
  ArrayRef<float> row = logits(ids, 0, {int32_t(ids.size()) - 1});
  for (size_t i = 0; i < 12; ++i) {
    ASSERT_FALSE(row.empty());
    const int32_t token = topOf(row).first;
    ASSERT_EQ(token, greedy[i]) << "greedy token " << i;
    row = logits({token}, int32_t(ids.size() + i), {0});
  }
}
