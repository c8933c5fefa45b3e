// What says nothing can go: channels of zeros, and layers that add nothing, leave the logits as they are.
#include "lib/Import/Import.h"
#include "lib/Reference/Activations.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/lib/Weights/WeightsTesting.h"
#include "transforms/Pipelines.h"
#include "transforms/Prune/Attentions.h"
#include "transforms/Quantize/PackedWeight.h"
#include "transforms/Quantize/Products.h"

#include <cmath>
#include <filesystem>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;

namespace {

class PruneExactly : public Scratch {
protected:
  static void SetUpTestSuite() { registerTransforms(); }

  void import(const char *variant) {
    ASSERT_FALSE(::llvm::errorToBool(writeTinyLlama(path("tiny.gguf"), *tinyLlamaVariant(variant))));
    importFrom(path("tiny.gguf"));
  }
  void importFrom(const std::string &model) {
    store = std::make_shared<WeightStore>(folder.string());
    store->setSpillPath("new.safetensors");
    WeightStore::attach(&context, store);
    ImportOptions options;
    options.folder = folder.string();
    auto imported = importModel(&context, model, options);
    ASSERT_TRUE(bool(imported)) << ::llvm::toString(imported.takeError());
    module = std::move(*imported);
    function = module->lookupSymbol<func::FuncOp>("forward");
  }

  /// Of a few tokens at three of their positions, or of the first of a text at all of them.
  std::vector<double> logits(size_t count = 6, std::vector<int32_t> tokens = {1, 70, 80, 90, 250, 17}) {
    reference::Options options;
    options.precision = reference::Precision::F64, options.threads = 1;
    auto evaluator = reference::Evaluator::create(*module, store, options);
    tokens.resize(count);
    std::vector<int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), 0);
    auto results = evaluator->run("forward", {Tensor::ids(tokens), Tensor::ids(positions),
                                              count == 6 ? Tensor::ids({0, 3, 5}) : Tensor::ids(positions)});
    return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
  }

  /// Multiplies a weight along an axis: by zero where `zero` says so.
  template <typename Zero> void mask(OpOperand &operand, int64_t axis, Zero zero) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    std::vector<double> factors(size_t(type.getDimSize(unsigned(axis))), 1);
    for (size_t i = 0; i < factors.size(); ++i)
      factors[i] = zero(i) ? 0 : 1;
    OpBuilder builder(operand.getOwner());
    auto value = writeVector(builder, module->getLoc(), *store->spill(*module), "mask", factors);
    ASSERT_TRUE(succeeded(value));
    operand.set(ScaleAxisOp::create(builder, module->getLoc(), type, operand.get(), *value, uint64_t(axis)));
  }

  /// Multiplies all weights of some channels of a group by zero.
  template <typename Zero> void mask(const ChannelGroup &group, Zero zero) {
    SmallVector<int64_t> channels;
    for (int64_t c = 0; c < group.size; ++c)
      if (zero(c))
        channels.push_back(c);
    for (const ChannelUse &use : group.uses) {
      const SmallVector<int64_t> gone = use.indices(channels, group.size);
      mask(*use.operand, use.axis, [&](size_t i) { return ::llvm::is_contained(gone, int64_t(i)); });
    }
  }

  void expectSame(const std::string &pipeline) {
    const std::vector<double> before = logits();
    PassManager manager(&context);
    ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, manager, ::llvm::errs())));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    const std::vector<double> after = logits();
    ASSERT_FALSE(before.empty());
    ASSERT_EQ(before.size(), after.size());
    double worst = 0;
    for (size_t i = 0; i < before.size(); ++i)
      worst = std::max(worst, std::abs(after[i] - before[i]));
    EXPECT_LT(worst, 1e-9);
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::shared_ptr<WeightStore> store;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

TEST_F(PruneExactly, ChannelsOfZeros) {
  import("f32");
  const auto third = [](size_t i) { return i % 3 == 1; }; // 32 of 96
  module->walk([&](LinearOp linear) {
    const std::string name = weightName(linear.getWeight());
    if (name.find("ffn_gate") != std::string::npos || name.find("ffn_up") != std::string::npos)
      mask(linear.getWeightMutable(), 0, third);
    if (name.find("ffn_down") != std::string::npos)
      mask(linear.getWeightMutable(), 1, third);
  });
  expectSame("llm-prune-ffn{ratio=0.3334 score=magnitude recover=false}");
  module->walk([&](GatedActivationOp mixed) {
    EXPECT_EQ(cast<ShapedType>(mixed.getType()).getDimSize(1), 64);
  });
}

TEST_F(PruneExactly, LayersThatAddNothing) {
  import("f32");
  // The seed of the score decides which goes; both add nothing.
  module->walk([&](LinearOp linear) {
    if (linear.getResidual())
      mask(linear.getWeightMutable(), 0, [](size_t) { return true; });
  });
  expectSame("llm-prune-layers{count=1 score=random recover=false}");
  EXPECT_EQ(::llvm::range_size(module->lookupSymbol<func::FuncOp>("forward").getOps<LayerOp>()), 1);
}

/// Where what a layer adds is normed first, a product more makes up for the layers behind it.
TEST_F(PruneExactly, LayersBehindANormAreMadeUpFor) {
  const std::string source = SPRIG_SHARED_DIR "/reference/tiny/gemma3";
  if (!std::filesystem::exists(source))
    GTEST_SKIP() << source << " is not there";
  double errors[2];
  reference::ActivationSettings text;
  for (int i = 0; i < 384; ++i)
    text.tokens.push_back((i * i * 31 + 7 * i) % 320);
  text.threads = 1;
  for (bool recover : {false, true}) {
    importFrom(source);
    const std::vector<double> before = logits(32, text.tokens);
    ActivationSource::attach(&context, reference::makeActivationSource(store, text));
    PassManager manager(&context);
    ASSERT_TRUE(succeeded(parsePassPipeline("llm-prune-layers{count=2 tokens=384 window=32 recover=" +
                                                std::string(recover ? "true}" : "false}"),
                                            manager, ::llvm::errs())));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    const std::vector<double> after = logits(32, text.tokens);
    ASSERT_EQ(before.size(), after.size());
    errors[recover] = 0;
    for (size_t i = 0; i < before.size(); ++i)
      errors[recover] += (after[i] - before[i]) * (after[i] - before[i]);
    int products = 0;
    module->walk([&](LinearOp linear) {
      products += weightName(linear.getWeight()).find(".recovery") != std::string::npos;
    });
    EXPECT_EQ(products > 0, recover);
  }
  EXPECT_LT(errors[1], 0.9 * errors[0]);
}

/// Heads that are turned copies of one another are one head; queries and outputs are refitted to it.
class MergeFamilies : public PruneExactly, public ::testing::WithParamInterface<const char *> {
protected:
  /// Rows of head g become those of head 0, pairs of channels turned by an angle of g.
  void copyHeads(LinearOp linear, int64_t heads, ArrayRef<std::pair<int64_t, int64_t>> pairs) {
    const auto rewrite = [&](OpOperand &operand) {
      auto matrix = readMatrix(operand.get(), *store, linear);
      ASSERT_TRUE(succeeded(matrix));
      if (matrix->N == 1) // a bias: a number for each row
        std::swap(matrix->N, matrix->K);
      const int64_t width = matrix->N / heads;
      for (int64_t g = 1; g < heads; ++g) {
        for (int64_t i = 0; i < width; ++i)
          ::llvm::copy(matrix->row(i), matrix->row(g * width + i).begin());
        for (auto [a, b] : pairs)
          for (int64_t k = 0; k < matrix->K; ++k) {
            float &x = matrix->row(g * width + a)[size_t(k)], &y = matrix->row(g * width + b)[size_t(k)];
            const float turned = x * std::cos(float(g)) - y * std::sin(float(g));
            y = x * std::sin(float(g)) + y * std::cos(float(g)), x = turned;
          }
      }
      OpBuilder builder(linear);
      auto type = RankedTensorType::get(cast<ShapedType>(operand.get().getType()).getShape(), builder.getF32Type());
      auto value = store->spill(*module)->add(builder, module->getLoc(), "copied", type,
                                              std::as_bytes(std::span(matrix->numbers)));
      ASSERT_TRUE(succeeded(value));
      operand.set(*value);
    };
    rewrite(linear.getWeightMutable());
    if (linear.getBias())
      rewrite(linear.getBiasMutable()[0]);
  }
};

TEST_P(MergeFamilies, CopiesAreOneHead) {
  const std::string source = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + GetParam();
  if (!std::filesystem::exists(source))
    GTEST_SKIP() << source << " is not there";
  importFrom(source);
  const ChannelGroups groups(function);
  for (const AttentionSite &site : attentionsOf(function, groups, "test")) {
    KVAppendOp append = appendOf(site.op);
    SmallVector<std::pair<int64_t, int64_t>> pairs;
    Value key = append.getKey();
    if (auto rope = key.getDefiningOp<RopeOp>()) {
      const int64_t turned = int64_t(rope.getRotatedDims()) / 2;
      for (int64_t i = 0; i < turned; ++i)
        pairs.push_back({i, i + turned});
      key = rope.getInput();
    }
    copyHeads(key.getDefiningOp<LinearOp>(), site.kvHeads->size, pairs);
    copyHeads(append.getValue().getDefiningOp<LinearOp>(), site.kvHeads->size, {});
  }
  const std::vector<double> before = logits();
  reference::ActivationSettings text;
  for (int i = 0; i < 256; ++i)
    text.tokens.push_back((i * i * 31 + 7 * i) % 320);
  text.threads = 1;
  ActivationSource::attach(&context, reference::makeActivationSource(store, text));
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline("llm-merge-kv-heads{heads=1 tokens=256 window=64}", manager, ::llvm::errs())));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  const std::vector<double> after = logits();
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(before.size(), after.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < before.size(); ++i)
    worst = std::max(worst, std::abs(after[i] - before[i])), largest = std::max(largest, std::abs(before[i]));
  EXPECT_LT(worst, 1e-4 * largest); // the new weights are of f32
  module->walk([&](KVOp cache) { EXPECT_EQ(cast<KVType>(cache.getType()).getHeads(), 1); });
}

INSTANTIATE_TEST_SUITE_P(Tiny, MergeFamilies, ::testing::Values("gpt2", "llama", "phi3", "qwen2"),
                         [](const auto &info) { return std::string(info.param); });

/// Every structured pass on every dense model of the reference: what weighs nothing goes, and nothing changes.
class PruneFamilies : public PruneExactly, public ::testing::WithParamInterface<std::tuple<const char *, const char *>> {
};

TEST_P(PruneFamilies, GroupsOfZeros) {
  const auto [model, pass] = GetParam();
  const std::string source = std::string(SPRIG_SHARED_DIR "/reference/tiny/") + model;
  if (!std::filesystem::exists(source))
    GTEST_SKIP() << source << " is not there";
  importFrom(source);
  const ChannelGroups groups(function);
  const auto attentions = attentionsOf(function, groups, "test");
  const std::string kind = pass;
  const auto first = [](int64_t c) { return c == 0; };
  double ratio = 0.5;
  if (kind == "ffn") {
    function.walk([&](Operation *op) {
      if (isa<ActivationOp, GatedActivationOp>(op)) {
        ChannelGroup *group = groups.of(op->getResult(0), unsigned(cast<ShapedType>(op->getResult(0).getType()).getRank()) - 1);
        mask(*group, [](int64_t c) { return c % 2 == 1; });
      }
    });
  } else if (kind == "width") {
    function.walk([&](EmbeddingOp op) {
      if (op.getIds() == function.getArgument(0))
        mask(*groups.of(op.getResult(), 1), [](int64_t c) { return c % 4 == 2; });
    });
    ratio = 0.25;
  }
  for (const AttentionSite &attention : attentions) {
    const int64_t shared = attention.shared(), heads = attention.kvHeads->size;
    if (kind == "heads") { // the last head of each
      if (shared == 1)
        GTEST_SKIP() << "every query head has keys and values of its own";
      mask(*attention.queryHeads, [&](int64_t h) { return h % shared == shared - 1; });
      ratio = 1.0 / double(shared) + 1e-6;
    } else if (kind == "kv-heads") {
      if (heads == 1)
        GTEST_SKIP() << "there is one key-value head";
      mask(*attention.kvHeads, first);
      if (attention.queryHeads != attention.kvHeads)
        mask(*attention.queryHeads, [&](int64_t h) { return h < shared; });
      ratio = 1.0 / double(heads) + 1e-6;
    } else if (kind == "head-dim") { // a pair in eight, whether its two lie side by side or half a head apart
      const int64_t size = attention.keyWidth->size;
      RopeOp rope = attention.keyWidth->rotations.empty() ? RopeOp() : cast<RopeOp>(attention.keyWidth->rotations[0]);
      const int64_t pairs = rope ? rope.getRotatedDims() / 2 : 0, units = size - pairs;
      mask(*attention.keyWidth, [&](int64_t c) {
        const int64_t pair = !rope || c >= 2 * pairs ? c - pairs : rope.getInterleaved() ? c / 2 : c % pairs;
        return pair % 8 == 3;
      });
      mask(*attention.valueWidth, [&](int64_t c) { return c % 8 == 5; });
      ratio = double(units / 8) / double(units) + 1e-6;
    }
  }
  expectSame("llm-prune-" + kind + "{ratio=" + std::to_string(ratio) + " score=magnitude recover=false}");
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, PruneFamilies,
    ::testing::Combine(::testing::Values("gemma2", "gemma3", "gpt2", "llama", "llama-head-dim-24", "llama-tied-bf16",
                                         "llama3-rope", "mistral-swa", "mixtral", "olmo2", "phi3", "qwen2", "qwen3"),
                       ::testing::Values("ffn", "heads", "kv-heads", "head-dim", "width")),
    [](const auto &info) {
      std::string name = std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

} // namespace
