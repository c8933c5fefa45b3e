// From a complete plan to a .sprig file.
#ifndef SPRIG_CODEGEN_PACKAGE_PACKAGEWRITER_H
#define SPRIG_CODEGEN_PACKAGE_PACKAGEWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/Text/TokenizerData.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm {

class WeightStore;

/// Tokens that the reference evaluator has run, for a self-test on the device.
struct Golden {
  std::vector<uint32_t> tokens;
  std::vector<uint32_t> argmax; ///< after each token
  std::vector<float>
      margin; ///< largest logit less the second, at each position
};

/// What a package holds beside the plan.
struct PackageExtras {
  std::optional<sprig::TokenizerTables> tokenizer;
  std::string chatTemplate;
  std::vector<Golden> goldens;
};

struct PackageOptions {
  /// Folder that the paths of `llm.source` are relative to.
  std::string sourceFolder;
  /// The open files behind the sources, new weights among them; null: those of
  /// the folder.
  WeightStore *weights = nullptr;
  /// Called with the fraction of the weights that is written.
  std::function<void(double)> progress;
};

struct PackageSummary {
  uint64_t packageBytes = 0, metadataBytes = 0, weightBytes = 0;
  unsigned tensors = 0, kernels = 0;
};

/// Writes `module` to `path`: aside first, so that the file is whole or absent.
/// The module holds placed tensors and at least one target whose kernels have
/// their SPIR-V; the dictionary `plan.model` on it describes the model. Errors
/// are diagnostics on the module.
FailureOr<PackageSummary> writePackage(ModuleOp module, StringRef path,
                                       const PackageExtras &extras,
                                       const PackageOptions &options = {});

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_PACKAGEWRITER_H
