// LoRA adapters (Hu et al., arXiv 2106.09685) in the layout of PEFT: a folder with adapter_config.json and
// adapter_model.safetensors.
#ifndef SPRIG_LIB_IMPORT_ADAPTER_H
#define SPRIG_LIB_IMPORT_ADAPTER_H

#include "lib/Weights/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// Adds the adapter in `folder` to a module that was just imported, as a branch beside each product that it changes:
///
///   %y = llm.linear %x, %w
///   // ==>
///   %y0 = llm.linear %x, %w
///   %a = llm.linear %x, %A               A: rxK, times alpha/r and `scale`
///   %y = llm.linear %a, %B residual(%y0) B: Nxr
///
/// `llm-fold-adapters` adds B·A to the weight instead. Errors are diagnostics of the module: files that cannot be read, an
/// adapter of another kind, one for another model (a product that the module does not have, or one of another shape).
LogicalResult addAdapter(ModuleOp module, StringRef folder, double scale, WeightStore &store);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_ADAPTER_H
