// The stages of llm-compile: import, passes, plan, kernels, package.
#ifndef SPRIG_TOOLS_COMPILEDRIVER_H
#define SPRIG_TOOLS_COMPILEDRIVER_H

#include "codegen/Package/PackageWriter.h"
#include "lib/Import/Adapter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::llm {

enum class Emit { LLM, Plan, Spirv, Package };

struct CompileOptions {
  std::string source, output;
  std::vector<std::string> targets;
  std::string
      passPipeline;    ///< textual, of the passes between import and lowering
  std::string adapter; ///< a folder of a LoRA adapter, or empty
  double adapterScale = 1;
  std::vector<SwitchableAdapter> switchable; ///< that sessions choose from
  std::string keepTokens; ///< a file of the token ids that stay, or empty
  std::string calibrationText; ///< a file for passes that need activations
  std::string calibrationCache; ///< folder for what they gather; empty: none
  /// The file of new weights; empty: beside IR under its name, and none that
  /// outlives the run for a package.
  std::string weightsOut;
  int64_t context = 0; ///< 0: as imported
  int64_t cacheBits = 16; ///< of a key or value, where the source is imported
  bool floatCaches = false; ///< such caches were asked for, of IR too
  std::vector<int64_t> widths;
  /// Nodes of the largest tree of draft tokens that gets a program; 0: trees
  /// only where the module has a function @verify of its own.
  int64_t treeNodes = 0;
  int64_t largestBinding = 0; ///< bytes; 0: what the targets promise
  bool endless = false; ///< a program that makes room in a full context
  /// Tokens that the reference evaluator runs, for the self-test of a package;
  /// unset: 16, but none where decoding a weight for it would take a gigabyte.
  std::optional<int64_t> selfTestTokens;
  Emit emit = Emit::Package;
  std::string pruneReport; ///< an HTML page of what was pruned, or empty
  std::string report; ///< a page that the caller makes of the package, or empty
  std::string saveTemps; ///< folder for the IR after each stage, or empty
  bool progress = false; ///< a line on stderr that is written over
};

struct CompileReport {
  std::map<std::string, double> seconds; ///< by stage
  PackageSummary package;
};

/// Makes every pass, pipeline and dialect that compiling needs known; once a
/// process.
void registerCompiler(DialectRegistry &registry);

/// Runs all stages that `options.emit` needs. Errors are diagnostics of
/// `context`; then nothing was written but intermediate files.
FailureOr<CompileReport> compileModel(MLIRContext &context,
                                      const CompileOptions &options);

/// The plan of a model, as --emit=plan would print it; `options.output` and
/// `emit` do not count.
FailureOr<OwningOpRef<ModuleOp>> planModel(MLIRContext &context,
                                           CompileOptions options);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_COMPILEDRIVER_H
