// What says nothing can go: channels of zeros, and layers that add nothing, leave the logits as they are.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/lib/Weights/WeightsTesting.h"
#include "transforms/Pipelines.h"
#include "transforms/Quantize/PackedWeight.h"
#include "transforms/Quantize/Products.h"

#include <cmath>

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
    store = std::make_shared<WeightStore>(folder.string());
    store->setSpillPath("new.safetensors");
    WeightStore::attach(&context, store);
    ImportOptions options;
    options.folder = folder.string();
    auto imported = importModel(&context, path("tiny.gguf"), options);
    ASSERT_TRUE(bool(imported)) << ::llvm::toString(imported.takeError());
    module = std::move(*imported);
  }

  std::vector<double> logits() {
    reference::Options options;
    options.precision = reference::Precision::F64, options.threads = 1;
    auto evaluator = reference::Evaluator::create(*module, store, options);
    auto results = evaluator->run("forward", {Tensor::ids({1, 70, 80, 90, 250, 17}), Tensor::ids({0, 1, 2, 3, 4, 5}),
                                              Tensor::ids({0, 3, 5})});
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

  void expectSame(const char *pipeline) {
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

} // namespace
