// llm-lsp-server: completion, hovers and diagnostics for IR in an editor.
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Plan.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mlir::llm::LLMDialect, mlir::plan::PlanDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
