#include "tools/Goldens.h"

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Evaluator.h"
#include "lib/Reference/Scores.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/Text/Tokenizer.h"
#include <cmath>
#include <numeric>
#include <utility>

namespace mlir::llm {
namespace {

/// Plain, so that a model is sure of most of its words: positions where two
/// tokens are nearly as likely prove nothing.
constexpr std::string_view kText =
    "The capital of France is Paris. The capital of Italy is Rome. One, two, "
    "three, four, five, six, seven, eight, nine, ten. The sun rises in the east "
    "and sets in the west.";

/// @forward, if it takes ids, positions and rows and gives logits.
func::FuncOp forwardOf(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  if (!function || function.getNumArguments() != 3 ||
      function.getNumResults() != 1)
    return nullptr;
  auto logits = dyn_cast<RankedTensorType>(function.getResultTypes().front());
  return logits && logits.getRank() == 2 && !logits.isDynamicDim(1) ? function
                                                                    : nullptr;
}

std::vector<int32_t> goldenTokens(const PackageExtras &extras, int64_t count,
                                  int64_t vocabulary) {
  std::vector<int32_t> tokens;
  if (extras.tokenizer)
    if (auto tokenizer = sprig::Tokenizer::create(extras.tokenizer->data());
        tokenizer.ok())
      if (auto ids = tokenizer->encode(kText); ids.ok()) {
        if (extras.tokenizer->addBos && extras.tokenizer->bos >= 0)
          tokens.push_back(extras.tokenizer->bos);
        tokens.insert(tokens.end(), ids->begin(), ids->end());
      }
  for (int64_t i = int64_t(tokens.size()); i < count; ++i)
    tokens.push_back(int32_t((i * 9973 + 41) % vocabulary));
  tokens.resize(size_t(count));
  for (int32_t &token : tokens) // a tokenizer may know more than the model
    token = int32_t(token % vocabulary);
  return tokens;
}

} // namespace

int64_t largestWeight(ModuleOp module) {
  int64_t largest = 0;
  module.walk([&](WeightOp weight) {
    if (auto type = dyn_cast<RankedTensorType>(weight.getType());
        type && type.hasStaticShape())
      largest = std::max(largest, type.getNumElements());
  });
  return largest;
}

LogicalResult addGoldens(ModuleOp module, std::shared_ptr<WeightStore> weights,
                         int64_t count, PackageExtras &extras) {
  func::FuncOp forward = forwardOf(module);
  if (!forward || count <= 0)
    return success();
  for (auto cache : module.getOps<KVCacheOp>()) // a short context
    count = std::min(count, cache.getCacheType().getCapacity());
  const int64_t vocabulary =
      cast<RankedTensorType>(forward.getResultTypes().front()).getDimSize(1);
  const std::vector<int32_t> tokens = goldenTokens(extras, count, vocabulary);
  std::vector<int32_t> places(tokens.size());
  std::iota(places.begin(), places.end(), 0);

  using reference::Tensor;
  reference::Options options;
  options.cacheBytes = 1; // each weight is read once
  auto evaluator = reference::Evaluator::create(module, std::move(weights), options);
  auto results =
      evaluator->run("forward", {Tensor::ids(tokens), Tensor::ids(places),
                                 Tensor::ids(places)});
  if (failed(results))
    return failure();

  Golden golden;
  golden.tokens.assign(tokens.begin(), tokens.end());
  const std::vector<int32_t> best = reference::argmaxima(results->front());
  golden.argmax.assign(best.begin(), best.end());
  std::vector<double> logits = results->front().toDoubles();
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto row = logits.begin() + ptrdiff_t(i) * vocabulary;
    const double top = std::exchange(row[best[i]], -HUGE_VAL);
    const double second = *std::max_element(row, row + vocabulary);
    golden.margin.push_back(vocabulary > 1 ? float(top - second) : 0);
  }
  extras.goldens.push_back(std::move(golden));
  return success();
}

} // namespace mlir::llm
