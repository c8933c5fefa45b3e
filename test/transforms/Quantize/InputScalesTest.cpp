// Scales that move between a product and what makes its input leave the model as it is.
#include "transforms/Quantize/InputScales.h"

#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;

namespace {

class InputScalesTest : public Scratch, public ::testing::WithParamInterface<const char *> {
protected:
  std::vector<double> logits(ModuleOp module) {
    reference::Options options;
    options.precision = reference::Precision::F64, options.threads = 1;
    auto evaluator = reference::Evaluator::create(module, store, options);
    auto results = evaluator->run("forward", {Tensor::ids({1, 70, 80, 90, 250, 17}), Tensor::ids({0, 1, 2, 3, 4, 5}),
                                              Tensor::ids({0, 3, 5})});
    return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::shared_ptr<WeightStore> store;
};

TEST_P(InputScalesTest, LeaveTheLogits) {
  ASSERT_FALSE(::llvm::errorToBool(writeTinyLlama(path("tiny.gguf"), *tinyLlamaVariant(GetParam()))));
  store = std::make_shared<WeightStore>(folder.string());
  store->setSpillPath("new.safetensors");
  ImportOptions options;
  options.folder = folder.string();
  auto imported = importModel(&context, path("tiny.gguf"), options);
  ASSERT_TRUE(bool(imported)) << ::llvm::toString(imported.takeError());
  ModuleOp module = **imported;
  const std::vector<double> before = logits(module);
  ASSERT_FALSE(before.empty());

  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-2, 2);
  size_t norms = 0, ups = 0, values = 0;
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  for (auto layer : function.getOps<LayerOp>())
    for (ScalableInput &input : scalableInputs(layer)) {
      norms += input.producer == ScalableInput::Producer::Norm;
      ups += input.producer == ScalableInput::Producer::Up;
      values += input.producer == ScalableInput::Producer::Values;
      std::vector<double> scales(size_t(input.factors()), 0);
      for (double &scale : scales)
        scale = std::exp2(uniform(random));
      ASSERT_TRUE(succeeded(scaleInput(input, scales, *store->spill(module))));
    }
  // Two layers with an attention and a feed-forward norm, an up product and a value product each.
  EXPECT_EQ(norms, 4u);
  EXPECT_EQ(ups, 2u);
  EXPECT_EQ(values, 2u);
  ASSERT_TRUE(succeeded(module.verify()));
  const std::vector<double> after = logits(module);
  ASSERT_EQ(after.size(), before.size());
  double worst = 0;
  for (size_t i = 0; i < before.size(); ++i)
    worst = std::max(worst, std::abs(after[i] - before[i]));
  EXPECT_LT(worst, 1e-9);
}

// Tied and separate heads, biases on the value product, three query heads to a key head.
INSTANTIATE_TEST_SUITE_P(Tiny, InputScalesTest, ::testing::Values("default", "biases", "output", "odd-groups"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
