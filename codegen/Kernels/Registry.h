// The kernel families by name. A family is a typed spec (what is to be
// computed: shapes, types, what is fused); how it is computed is the schedule,
// which the target profile chooses. The plan dialect holds a kernel as (family,
// DictionaryAttr): everything below starts from that pair.
//
// A spec type offers
//   static constexpr llvm::StringLiteral kFamily;
//   static FailureOr<Spec> fromAttr(DictionaryAttr, EmitError);       //
//   refuses what the family cannot do DictionaryAttr toAttr(MLIRContext *)
//   const; FailureOr<KernelInterface> interface(const TargetProfile &,
//   EmitError) const;   // no IR is built void build(KernelBuilder &, const
//   KernelInterface &) const;
// and is added to the list in Registry.cpp.
#ifndef SPRIG_CODEGEN_KERNELS_REGISTRY_H
#define SPRIG_CODEGEN_KERNELS_REGISTRY_H

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Target/TargetProfile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::llm {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Names of the families, in alphabetical order.
ArrayRef<StringRef> kernelFamilies();

/// The kernel's interface: its key, bindings and groups. Cheap; equal keys need
/// one kernel only.
FailureOr<KernelInterface> describeKernel(StringRef family, DictionaryAttr spec,
                                          const TargetProfile &profile,
                                          Location loc);

/// The kernel as a module of gpu, scf, vector, arith, memref and a few spirv
/// ops.
FailureOr<OwningOpRef<ModuleOp>> buildKernel(StringRef family,
                                             DictionaryAttr spec,
                                             const TargetProfile &profile,
                                             Location loc);

/// Seconds that each stage of `compileKernel` took.
struct CompileTimes {
  double build = 0, convert = 0, validate = 0, optimise = 0;
};

struct CompiledKernel {
  KernelInterface interface;
  std::vector<uint32_t> spirv;
  CompileTimes times;
};

/// Lowers a kernel that `buildKernel` made to SPIR-V, validates, optimises and
/// validates again; `module` is used up. Safe to call from several threads with
/// one context. Errors name the kernel.
FailureOr<CompiledKernel> lowerKernel(ModuleOp module,
                                      const KernelInterface &interface,
                                      const TargetProfile &profile,
                                      Location loc);

/// Builds and lowers.
FailureOr<CompiledKernel> compileKernel(StringRef family, DictionaryAttr spec,
                                        const TargetProfile &profile,
                                        Location loc);

/// The dialects that kernels are made of. They must be loaded into a context
/// before kernels are built in it: building may happen on several threads,
/// loading may not.
void registerKernelDialects(DialectRegistry &registry);
void loadKernelDialects(MLIRContext &context);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_REGISTRY_H
