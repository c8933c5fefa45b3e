// What the reference evaluator says of an imported model, with an adapter or without.
#ifndef SPRIG_TEST_LIB_IMPORT_ADAPTEDMODEL_H
#define SPRIG_TEST_LIB_IMPORT_ADAPTEDMODEL_H

#include "lib/Import/Adapter.h"
#include "lib/Reference/Evaluator.h"
#include "test/lib/Import/ImportTesting.h"

#include <numeric>

namespace mlir::llm::testing {

class AdaptedModelTest : public ImportTest {
protected:
  /// The logits of `source` after the tokens `ids`, with an adapter in the folder `adapter` unless that is empty; none
  /// where something fails, which is reported.
  std::vector<double> logitsAfter(const std::vector<int32_t> &ids, const std::string &source, const std::string &adapter,
                                  const reference::Options &how) {
    ImportOptions options;
    options.folder = folder.string();
    auto module = importModel(&context, source, options);
    if (!module) {
      ADD_FAILURE() << llvm::toString(module.takeError());
      return {};
    }
    auto store = std::make_shared<WeightStore>(folder.string());
    WeightStore::attach(&context, store);
    if (!adapter.empty() && failed(addAdapter(**module, adapter, 1, *store))) {
      ADD_FAILURE() << "the adapter does not fit " << source;
      return {};
    }
    auto evaluator = reference::Evaluator::create(**module, store, how);
    std::vector<int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    using reference::Tensor;
    auto results = evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(positions), Tensor::ids(positions)});
    return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
  }

  /// The greatest difference; infinite where the sizes differ or nothing is there.
  static double distance(const std::vector<double> &a, const std::vector<double> &b) {
    double worst = a.size() == b.size() && !a.empty() ? 0 : HUGE_VAL;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
  }
};

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_ADAPTEDMODEL_H
