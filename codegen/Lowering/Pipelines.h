// Named pipelines of code generation: `llm-compile` is `llm-opt` with their
// names.
#ifndef SPRIG_CODEGEN_LOWERING_PIPELINES_H
#define SPRIG_CODEGEN_LOWERING_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::llm {

struct PlanPipelineOptions : PassPipelineOptions<PlanPipelineOptions> {
  ListOption<std::string> targets{
      *this, "targets", llvm::cl::desc("Profiles, by name or JSON file")};
  ListOption<int64_t> widths{
      *this, "widths",
      llvm::cl::desc("Tokens of a step (default: the profile's)")};
  Option<int64_t> context{
      *this, "context",
      llvm::cl::desc("Slots of the key-value caches; 0: as imported"),
      llvm::cl::init(0)};
  Option<int64_t> logitWidths{
      *this, "logits-widths",
      llvm::cl::desc("Widest step with a program for the logits of all rows"),
      llvm::cl::init(16)};
  Option<int64_t> treeNodes{
      *this, "tree-nodes",
      llvm::cl::desc("Nodes of the largest tree with a program, at most 64"),
      llvm::cl::init(64)};
  Option<int64_t> largestBinding{
      *this, "largest-binding",
      llvm::cl::desc("Bytes that a storage buffer's binding may span, if fewer "
                     "than the target promises"),
      llvm::cl::init(0)};
  Option<bool> kernels{*this, "kernels",
                       llvm::cl::desc("Compile the kernels, too"),
                       llvm::cl::init(true)};
};

/// From a fused `llm` module to a complete plan.
void buildPlanPipeline(OpPassManager &manager,
                       const PlanPipelineOptions &options);

/// Makes the passes of this folder and `plan-pipeline` known to `llm-opt` and
/// to textual pipelines.
void registerCodegen();

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_PIPELINES_H
