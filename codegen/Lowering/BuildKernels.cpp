// plan-build-kernels: see Passes.td.
#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::llm {
#define GEN_PASS_DEF_BUILDKERNELSPASS
#include "codegen/Lowering/Passes.h.inc"

namespace {

struct BuildKernels final : impl::BuildKernelsPassBase<BuildKernels> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    plan::TargetOp target = getOperation();
    llvm::Expected<TargetProfile> profile =
        findProfile(target.getProfileName());
    if (!profile) {
      target.emitOpError() << llvm::toString(profile.takeError());
      return signalPassFailure();
    }
    for (auto kernel : target.getOps<plan::KernelOp>())
      if (!kernel.getModule() && !kernel.getSpirv() &&
          failed(build(kernel, *profile)))
        return signalPassFailure();
  }

  static LogicalResult build(plan::KernelOp kernel,
                             const TargetProfile &profile) {
    FailureOr<OwningOpRef<ModuleOp>> module = buildKernel(
        kernel.getFamily(), kernel.getSpec(), profile, kernel.getLoc());
    if (failed(module))
      return failure();
    for (auto code :
         llvm::make_early_inc_range((**module).getOps<gpu::GPUModuleOp>()))
      code->moveBefore(&kernel.getCode().front(),
                       kernel.getCode().front().end());
    return success();
  }
};

} // namespace
} // namespace mlir::llm
