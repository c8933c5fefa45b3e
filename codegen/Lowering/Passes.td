// From the llm dialect to the plan dialect, and from kernels' keys to SPIR-V.
#ifndef SPRIG_CODEGEN_LOWERING_PASSES_TD
#define SPRIG_CODEGEN_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildKernelsPass : Pass<"plan-build-kernels", "plan::TargetOp"> {
  let summary = "Build the IR of kernels from their keys";
  let description = [{
    Kernels that have no device code get the `gpu.module` that their family builds for the target's profile; equal keys
    are one kernel already. For looking at: `plan-lower-kernels` does not need it.

    ```mlir
    plan.kernel @rms_factor_576_6a09e667 "rms_factor" {eps = 1.000000e-05 : f64, width = 576 : i64} …
    // ==>
    plan.kernel @rms_factor_576_6a09e667 "rms_factor" {…} … {
      gpu.module @kernels {
        gpu.func @main(…) kernel {…}
    ```
  }];
}

def LowerKernelsPass : Pass<"plan-lower-kernels", "ModuleOp"> {
  let summary = "Compile kernels to SPIR-V";
  let description = [{
    Kernels of all targets, each built (where it has no IR yet), converted to SPIR-V, validated, optimised and validated
    again, in parallel. What a profile lacks is an error that names the kernel and the capability. The kernel gets the
    words of its module and the list of features that a device needs for it.

    ```mlir
    plan.kernel @rms_factor_576_6a09e667 "rms_factor" {eps = 1.000000e-05 : f64, width = 576 : i64} …
    // ==>
    plan.kernel @rms_factor_576_6a09e667 "rms_factor" {…} … features ["subgroup_shuffle"] spirv dense<"0x03022307…">
    ```
  }];
}

#endif // SPRIG_CODEGEN_LOWERING_PASSES_TD
