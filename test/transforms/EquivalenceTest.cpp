// Every pass leaves the numbers of a model as they are: tiny models of all shapes, evaluated in f64 before and after.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/lib/Weights/WeightsTesting.h"
#include "transforms/Pipelines.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using reference::Evaluator;
using reference::Tensor;

namespace {

/// One pipeline on one model.
struct Case {
  const char *pipeline;
  const char *variant;
};

class Equivalence : public Scratch, public ::testing::WithParamInterface<Case> {
protected:
  static void SetUpTestSuite() { registerTransforms(); }

  OwningOpRef<ModuleOp> import(StringRef file) {
    ImportOptions options;
    options.folder = folder.string();
    options.explicitDequantize = true; // so that llm-fuse-dequantize has something to do
    llvm::Expected<OwningOpRef<ModuleOp>> module = importModel(&context, file, options);
    if (module)
      return std::move(*module);
    ADD_FAILURE() << llvm::toString(module.takeError());
    return {};
  }

  /// Logits of a prompt, and of one more token after it, which reads what the prompt left in the caches.
  std::vector<double> logits(ModuleOp module) {
    reference::Options options;
    options.precision = reference::Precision::F64;
    options.threads = 1;
    std::unique_ptr<Evaluator> evaluator = Evaluator::create(module, folder.string(), options);
    std::vector<double> all;
    const auto step = [&](ArrayRef<int32_t> ids, ArrayRef<int32_t> positions, ArrayRef<int32_t> rows) {
      FailureOr<SmallVector<Tensor>> results =
          evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(positions), Tensor::ids(rows)});
      ASSERT_TRUE(succeeded(results));
      const std::vector<double> numbers = results->front().toDoubles();
      all.insert(all.end(), numbers.begin(), numbers.end());
    };
    step({1, 70, 80, 90, 250, 17}, {0, 1, 2, 3, 4, 5}, {0, 3, 5});
    step({33}, {6}, {0});
    return all;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
};

TEST_P(Equivalence, LogitsStay) {
  const Case &parameters = GetParam();
  llvm::Error written = writeTinyLlama(path("tiny.gguf"), *tinyLlamaVariant(parameters.variant));
  ASSERT_FALSE(bool(written)) << llvm::toString(std::move(written));
  OwningOpRef<ModuleOp> before = import(path("tiny.gguf"));
  OwningOpRef<ModuleOp> after = import(path("tiny.gguf"));
  ASSERT_TRUE(before && after);

  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline(parameters.pipeline, manager, llvm::errs())));
  ASSERT_TRUE(succeeded(manager.run(*after)));

  const std::vector<double> expected = logits(*before), actual = logits(*after);
  ASSERT_EQ(actual.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  EXPECT_LT(worst, 1e-9);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  // Models that every pass applies to, and models that passes refuse in part.
  for (const char *variant : {"biases", "mixed"})
    for (const char *pipeline :
         {"func.func(llm-clean-up)", "func.func(llm-fuse-dequantize)", "func.func(llm-fuse-residual)",
          "func.func(llm-fuse-qkv)", "func.func(llm-fuse-gated-mlp)", "func.func(llm-fuse-norm)",
          "llm-remove-dead-state"})
      list.push_back({pipeline, variant});
  for (llvm::StringLiteral variant : tinyLlamaVariants())
    list.push_back({"llm-default-pipeline", variant.data()});
  return list;
}

std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  std::string name;
  for (char c : std::string(info.param.pipeline) + "_" + info.param.variant)
    name += std::isalnum(c) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, Equivalence, ::testing::ValuesIn(cases()), nameOf);

} // namespace
