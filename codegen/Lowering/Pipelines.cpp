#include "codegen/Lowering/Pipelines.h"

#include "codegen/Lowering/Passes.h"
#include "dialects/Plan/Passes.h"
#include "mlir/Pass/PassRegistry.h"

namespace mlir::llm {

void buildPlanPipeline(OpPassManager &manager,
                       const PlanPipelineOptions &options) {
  LowerToPlanPassOptions lower;
  lower.targets.assign(options.targets.begin(), options.targets.end());
  lower.widths.assign(options.widths.begin(), options.widths.end());
  lower.context = options.context;
  lower.logitWidths = options.logitWidths;
  lower.treeNodes = options.treeNodes;
  lower.largestBinding = options.largestBinding;
  manager.addPass(createLowerToPlanPass(lower));
  // Memory before barriers: values that share bytes order the dispatches that
  // touch them.
  OpPassManager &target = manager.nest<plan::TargetOp>();
  target.addPass(plan::createAssignMemoryPass());
  target.addPass(plan::createInsertBarriersPass());
  target.addPass(createBoundSubmissionsPass());
  manager.addPass(plan::createPlaceWeightsPass());
  if (options.kernels)
    manager.addPass(createLowerKernelsPass());
}

void registerCodegen() {
  registerLoweringPasses();
  PassPipelineRegistration<PlanPipelineOptions>(
      "plan-pipeline", "From a fused llm module to a complete plan",
      buildPlanPipeline);
}

} // namespace mlir::llm
