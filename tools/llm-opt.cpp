// llm-opt: mlir-opt with the dialects and passes of this project.
#include "codegen/Lowering/Pipelines.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Passes.h"
#include "lib/Import/LayerHead.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "transforms/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();

  registry.insert<mlir::llm::LLMDialect, mlir::plan::PlanDialect>();
  mlir::plan::registerPlanPasses();
  mlir::llm::registerCodegen();
  mlir::llm::registerTransforms();
  mlir::llm::registerLayerHeads();

  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Sprig optimiser driver\n", registry));
}
