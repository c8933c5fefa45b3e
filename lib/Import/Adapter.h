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

/// An adapter that sessions know by `name`.
struct SwitchableAdapter {
  std::string name, folder;
  double scale = 1;
};

/// Adds several adapters beside the products of all functions, of which a session uses one or none:
///
///   %ids, %gain = llm.adapter_choice %positions of %gains    alpha/r and `scale` of each
///   %a = llm.expert_linear %x, %ids, %A                      A of all adapters, ranks filled up with zeros
///   %y = llm.expert_linear %a, %ids, %B combine(%gain) residual(%y0)
///
/// Their names become the module's `llm.adapters`. Errors are those of addAdapter, and names that are not different.
LogicalResult addSwitchableAdapters(ModuleOp module, ArrayRef<SwitchableAdapter> adapters, WeightStore &store);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_ADAPTER_H
