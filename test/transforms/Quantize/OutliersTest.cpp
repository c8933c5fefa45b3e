// Outliers planted in a model, its function unchanged: rounding both sides of its products to 8 bits breaks it, and each
// of the ways around that brings it back.
#include "transforms/Quantize/InputScales.h"

#include "lib/Import/Import.h"
#include "lib/Reference/Activations.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/lib/Weights/WeightsTesting.h"
#include "transforms/Passes.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Tensor;

namespace {

/// The same in every test: the calibration text, and what is evaluated.
std::vector<int32_t> someTokens(size_t count, int32_t step) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(int32_t((i * size_t(step) + 41) % 280));
  return tokens;
}

class OutliersTest : public Scratch {
protected:
  /// Logits after the passes, with outliers or without.
  std::vector<double> logits(const std::string &passes, bool planted) {
    static const bool registered = (registerLLMPasses(), true);
    EXPECT_TRUE(registered);
    MLIRContext context(MLIRContext::Threading::DISABLED);
    EXPECT_FALSE(::llvm::errorToBool(writeTinyLlama(path("tiny.gguf"), *tinyLlamaVariant("default"))));
    auto store = std::make_shared<WeightStore>(folder.string());
    store->setSpillPath("new.safetensors");
    ImportOptions options;
    options.folder = folder.string();
    auto imported = importModel(&context, path("tiny.gguf"), options);
    if (!imported) {
      ADD_FAILURE() << ::llvm::toString(imported.takeError());
      return {};
    }
    ModuleOp module = **imported;
    WeightStore::attach(&context, store);
    if (planted)
      plant(module, *store);
    reference::ActivationSettings text;
    text.tokens = someTokens(240, 97);
    text.threads = 1;
    ActivationSource::attach(&context, reference::makeActivationSource(store, text));
    PassManager manager(&context);
    if (failed(parsePassPipeline(passes, manager)) || failed(manager.run(module))) {
      ADD_FAILURE() << passes;
      return {};
    }
    reference::Options how;
    how.precision = reference::Precision::F64, how.threads = 1;
    auto evaluator = reference::Evaluator::create(module, store, how);
    const std::vector<int32_t> tokens = someTokens(24, 59);
    std::vector<int32_t> places(tokens.size());
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = int32_t(i);
    auto results = evaluator->run("forward", {Tensor::ids(tokens), Tensor::ids(places), Tensor::ids(places)});
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
  }

  /// Two columns of every norm a hundred times as large, those of its products a hundredth.
  static void plant(ModuleOp module, WeightStore &store) {
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    for (auto layer : function.getOps<LayerOp>())
      for (ScalableInput &input : scalableInputs(layer)) {
        if (input.producer != ScalableInput::Producer::Norm)
          continue;
        std::vector<double> scales(size_t(input.factors()), 1);
        scales[5] = scales[40] = 0.01;
        EXPECT_TRUE(succeeded(scaleInput(input, scales, *store.spill(module))));
      }
  }

  /// How far `got` is from `right`, as a share of it.
  static double distance(const std::vector<double> &got, const std::vector<double> &right) {
    double off = 0, all = 0;
    for (size_t i = 0; i < right.size(); ++i)
      off += (got[i] - right[i]) * (got[i] - right[i]), all += right[i] * right[i];
    return std::sqrt(off / all);
  }
};

TEST_F(OutliersTest, EachWayAroundThemBringsTheModelBack) {
  const std::string round =
      "llm-quantize-weights{bits=8 group=64 method=rtn},func.func(llm-quantize-activations)";
  const std::string text = "tokens=240 window=60";
  const std::vector<double> right = logits("", /*planted=*/false);
  ASSERT_FALSE(right.empty());
  EXPECT_LT(distance(logits("", true), right), 1e-9);
  const double clean = distance(logits(round, false), right), naive = distance(logits(round, true), right);
  EXPECT_LT(clean, 0.05);
  EXPECT_GT(naive, 0.5) << "where " << clean << " was lost without outliers";
  for (const std::string &way : {"llm-smooth{" + text + "}", std::string("func.func(llm-rotate)"),
                                 "llm-split-outliers{threshold=6 " + text + "}"}) {
    SCOPED_TRACE(way);
    const std::vector<double> exact = logits(way, true);
    if (way.find("split") == std::string::npos) {
      EXPECT_LT(distance(exact, right), 1e-9);
    }
    EXPECT_LT(distance(logits(way + "," + round, true), right), clean + 0.02) << "naive: " << naive;
  }
}

} // namespace
