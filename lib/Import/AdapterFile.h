// The two files of a LoRA adapter's folder.
#ifndef SPRIG_LIB_IMPORT_ADAPTERFILE_H
#define SPRIG_LIB_IMPORT_ADAPTERFILE_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightSource.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <set>

namespace mlir::llm {

/// The two matrices that change one product.
struct AdapterPair {
  const WeightTensor *down = nullptr, *up = nullptr; ///< A [r, K], B [N, r]
};

class AdapterFile {
public:
  AdapterFile(ModuleOp module, StringRef folder, double scale, WeightStore &store)
      : module(module), folder(folder), scale(scale), store(store) {}

  /// Errors are diagnostics of the module.
  LogicalResult open() { return failure(failed(readConfig()) || failed(openWeights())); }

  int64_t rank() const { return ranks; }
  /// What B·A is multiplied by.
  double factor() const;

  /// The first of the names that there is a pair for; empty where there is none.
  StringRef find(ArrayRef<std::string> names) const;
  /// Its pair, from now on used; null where there is none.
  const AdapterPair *use(ArrayRef<std::string> names);
  /// Whether all that the adapter changes was used.
  LogicalResult checkUse();

  /// A tensor of the file.
  Value read(OpBuilder &builder, Location loc, const WeightTensor &tensor) const;

private:
  std::string inside(StringRef name) const;
  LogicalResult readConfig();
  LogicalResult openWeights();

  ModuleOp module;
  StringRef folder;
  double scale, alpha = 1;
  int64_t ranks = 1;
  bool byRoot = false;
  WeightStore &store;
  std::unique_ptr<WeightSource> file;
  std::string symbol;
  std::map<std::string, AdapterPair> pairs; ///< by the name of the product
  std::set<std::string> used;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_ADAPTERFILE_H
