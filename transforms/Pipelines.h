// Named pipelines: `llm-compile` is `llm-opt` with one of these names.
#ifndef SPRIG_TRANSFORMS_PIPELINES_H
#define SPRIG_TRANSFORMS_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::llm {

/// Choices of `llm-default-pipeline`; the defaults are what the kernels want on every target.
struct DefaultPipelineOptions : PassPipelineOptions<DefaultPipelineOptions> {
  Option<bool> fuseNorm{*this, "fuse-norm", llvm::cl::desc("Fold norms into the products that read them"),
                        llvm::cl::init(true)};
  Option<bool> fuseQKV{*this, "fuse-qkv", llvm::cl::desc("Join query, key and value products"),
                       llvm::cl::init(true)};
  Option<bool> fuseGatedMLP{*this, "fuse-gated-mlp", llvm::cl::desc("Join gate and up products"),
                            llvm::cl::init(true)};
};

/// From an imported module to what codegen/Lowering takes: clean-up, every fusion, removal of dead state. Also run again
/// after any other `llm` pass; it changes nothing the second time.
void buildDefaultPipeline(OpPassManager &manager, const DefaultPipelineOptions &options = {});

/// Makes the passes of this folder and the named pipelines known to `llm-opt` and to textual pipelines.
void registerTransforms();

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_PIPELINES_H
