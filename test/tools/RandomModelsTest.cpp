// Whole models of random shapes, compiled and run on a device, against the
// reference evaluator: what the kernels' own sweeps cannot see is how they are
// put together.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/tools/DeviceModelTest.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using mlir::llm::testing::TinyLlamaOptions;
using sprig::quant::Format;

namespace {

constexpr int64_t kContext = 80;

class Choice {
public:
  explicit Choice(uint64_t seed) : engine(seed) {}
  /// Below `end`.
  uint64_t below(uint64_t end) { return engine() % end; }
  template <typename T> T among(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

private:
  std::mt19937_64 engine;
};

TinyLlamaOptions randomModel(uint64_t seed) {
  Choice choice(seed);
  TinyLlamaOptions model;
  model.seed = seed;
  model.L = 1 + int64_t(choice.below(2));
  model.G = choice.among<int64_t>({1, 2, 3});
  model.H = model.G * choice.among<int64_t>({1, 2, 3, 4});
  model.E = choice.among<int64_t>({16, 32, 48, 64});
  // Rows of quantised matrices are whole blocks of 32; H·E is a row of one.
  while (model.H * model.E % 32)
    ++model.H, model.H += (model.G - model.H % model.G) % model.G;
  model.D = 32 * (1 + int64_t(choice.below(5)));
  model.F = 32 * (1 + int64_t(choice.below(7)));
  model.ropeBase = choice.among<double>({10000, 100000, 500000});
  model.epsilon = choice.among<double>({1e-5, 1e-6});
  model.separateOutput = choice.below(2);
  model.biases = choice.below(2);
  model.ropeFactors = choice.below(3) == 0;
  model.paddingTokens = choice.among<int64_t>({0, 0, 5});
  model.embedding = choice.among({Format::Q8_0, Format::F16, Format::Q4_0});
  model.matrices.clear();
  for (uint64_t i = 0, count = 1 + choice.below(2); i < count; ++i)
    model.matrices.push_back(
        choice.among({Format::Q4_1, Format::Q4_0, Format::Q8_0, Format::Q5_0,
                      Format::Q5_1, Format::F16, Format::BF16, Format::F32}));
  return model;
}

std::string describe(const TinyLlamaOptions &model) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "seed " << model.seed << " D=" << model.D << " H=" << model.H
     << " G=" << model.G << " E=" << model.E << " F=" << model.F
     << " L=" << model.L << " formats";
  for (Format format : model.matrices)
    os << " " << sprig::quant::info(format).name;
  return text;
}

class ModelsTest : public mlir::llm::testing::DeviceModelTest {
protected:
  /// Compiles the model for `target` and compares all logits of `count` tokens,
  /// fed in pieces of each size.
  void check(const TinyLlamaOptions &model, const std::string &target,
             std::vector<int64_t> widths, ArrayRef<size_t> pieces,
             size_t count = 64, const std::string &caches = "",
             double close = 1e-3);
};

class RandomModelsTest : public ModelsTest,
                         public ::testing::WithParamInterface<uint64_t> {};

/// Logits of every token in f32, keys and values rounded as the device rounds.
std::vector<double> evaluate(const std::string &gguf,
                             llvm::ArrayRef<uint32_t> tokens,
                             const std::string &passes) {
  MLIRContext context;
  ImportOptions import;
  import.capacity = kContext;
  auto module = importModel(&context, gguf, import);
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return {};
  }
  PassManager manager(&context);
  EXPECT_TRUE(succeeded(parsePassPipeline(passes, manager)) &&
              succeeded(manager.run(**module)));
  std::vector<int32_t> ids(tokens.begin(), tokens.end()), places(tokens.size());
  std::iota(places.begin(), places.end(), 0);
  using reference::Tensor;
  reference::Options options;
  options.roundCaches = true;
  auto evaluator = reference::Evaluator::create(**module, "", options);
  auto results =
      evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(places),
                                 Tensor::ids(places)});
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? results->front().toDoubles()
                            : std::vector<double>();
}

void ModelsTest::check(const TinyLlamaOptions &options,
                       const std::string &target, std::vector<int64_t> widths,
                       ArrayRef<size_t> pieces, size_t count,
                       const std::string &caches, double close) {
  SCOPED_TRACE(describe(options));
  const std::string gguf = file("tiny.gguf");
  ASSERT_FALSE(
      llvm::errorToBool(mlir::llm::testing::writeTinyLlama(gguf, options)));
  CompileOptions wanted = optionsFor(gguf, target);
  wanted.context = kContext;
  if (!caches.empty())
    wanted.passPipeline =
        "builtin.module(" + caches + ",llm-default-pipeline)";
  wanted.widths = std::move(widths);
  compile(wanted);
  if (!HasFatalFailure())
    open(/*validated=*/false, /*poisoned=*/true);
  if (IsSkipped() || HasFatalFailure())
    return;

  std::vector<uint32_t> tokens(count);
  Choice choice(options.seed + 1000);
  for (uint32_t &token : tokens)
    token = uint32_t(choice.below(mlir::llm::testing::kTinyVocabulary));
  const std::vector<double> expected = evaluate(gguf, tokens, caches);
  ASSERT_EQ(expected.size(), count * vocabulary);
  double largest = 0;
  for (double logit : expected)
    largest = std::max(largest, std::fabs(logit));

  for (size_t piece : pieces) {
    const std::vector<float> got = logitsOf(tokens, piece);
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << "token " << i / vocabulary;
      worst = std::max(worst, std::fabs(double(got[i]) - expected[i]));
    }
    EXPECT_LE(worst, close * (1 + largest)) << "in pieces of " << piece;
  }
}

TEST_P(RandomModelsTest, TheDeviceAgreesWithTheReference) {
  check(randomModel(GetParam()), GetParam() % 4 == 3 ? "generic" : "lavapipe",
        {1, 4, 16, 64}, {1, 7, 64});
}

// A code that the two round to different sides moves a logit a little.
TEST_F(ModelsTest, TheDeviceAgreesOnCachesInIntegers) {
  TinyLlamaOptions model;
  model.E = 32, model.H = 4, model.G = 2;
  for (auto [caches, close] : {std::pair("llm-quantize-kv", 4e-3),
                               {"llm-quantize-kv{bits=4}", 4e-2},
                               {"llm-quantize-kv{attention=8}", 1e-2}}) {
    SCOPED_TRACE(caches);
    check(model, "lavapipe", {1, 4, 16, 64}, {1, 7, 64}, 64, caches, close);
    session.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomModelsTest,
                         ::testing::Range<uint64_t>(1, 9));

// An embedding, which is the head as well, of 141 MB: more than a binding of
// most devices can span, so it is read in parts.
TEST_F(ModelsTest, AnEmbeddingPastTheStorageRange) {
  TinyLlamaOptions model;
  model.D = 640;
  model.paddingTokens = 110000;
  model.embedding = Format::F16;
  model.L = 1;
  check(model, "generic", {1, 4}, {1, 5}, /*count=*/5);
}

} // namespace
