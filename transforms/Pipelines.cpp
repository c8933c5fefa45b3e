#include "transforms/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "transforms/Passes.h"

using namespace mlir;
using namespace mlir::llm;

void mlir::llm::buildDefaultPipeline(OpPassManager &manager, const DefaultPipelineOptions &options) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createCleanUpPass());
  // A dequantised copy of a weight would be read from memory at its full size, so sharing never pays.
  functions.addPass(createFuseDequantizePass({/*fuseShared=*/true}));
  functions.addPass(createFuseQuantizePass());
  functions.addPass(createFuseResidualPass());
  if (options.fuseQKV)
    functions.addPass(createFuseQKVPass());
  if (options.fuseGatedMLP)
    functions.addPass(createFuseGatedMLPPass());
  // After the joins: a norm then has one user where it had three.
  if (options.fuseNorm)
    functions.addPass(createFuseNormPass());
  functions.addPass(createCleanUpPass());
  manager.addPass(createRemoveDeadStatePass());
}

void mlir::llm::registerTransforms() {
  registerLLMPasses();
  PassPipelineRegistration<DefaultPipelineOptions>(
      "llm-default-pipeline", "From an imported module to what codegen lowers", buildDefaultPipeline);
}
