// From the llm dialect to the plan dialect, and from kernels' keys to SPIR-V.
#ifndef SPRIG_CODEGEN_LOWERING_PASSES_TD
#define SPRIG_CODEGEN_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def BoundSubmissionsPass : Pass<"plan-bound-submissions", "plan::TargetOp"> {
  let summary = "Keep submissions shorter than a driver's watchdog";
  let description = [{
    Drivers reset a device that works on one submission for too long: two seconds on many systems. By the estimates that
    lowering left on dispatches (those of a full context), no submission gets more than a quarter of the profile's
    `watchdog_s`: a dispatch that takes longer becomes several, each over a part of its workgroups, and barriers are
    marked where the next submission starts. The kernels do what they did, so results keep their bits. An indirect
    dispatch that is split is one no longer. A profile whose `watchdog_s` is 0 leaves programs as they are.

    The number of submissions is a remark of category `codegen` (`passed`), as is a workgroup that takes too long by
    itself (`missed`).

    ```mlir
    plan.dispatch @f(in %a, out %b) groups [4, 1, 1] {nanoseconds = 800000000 : i64}
    plan.barrier
    plan.dispatch @g(in %b, out %c) groups [1, 1, 1] {nanoseconds = 10000000 : i64}
    // ==>
    plan.dispatch @f(in %a, out %b) groups [2, 1, 1] base [0, 0, 0] {nanoseconds = 400000000 : i64}
    plan.barrier submit
    plan.dispatch @f(in %a, out %b) groups [2, 1, 1] base [2, 0, 0] {nanoseconds = 400000000 : i64}
    plan.barrier
    plan.dispatch @g(in %b, out %c) groups [1, 1, 1] {nanoseconds = 10000000 : i64}
    ```
  }];
}

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

def LowerToPlanPass : Pass<"llm-lower-to-plan", "ModuleOp"> {
  let summary = "From a model to the programs of a target";
  let description = [{
    Takes `@forward(ids, positions, rows)` and makes, for every target, programs for the kinds `append` and `sample` and
    each width, and for `logits` at widths up to 16: one dispatch for each operation of the function, with the kernel
    family and the schedule that the profile chooses. Intermediate results become scratch values, weights tensors of
    the module, caches buffers. What a program does not need is left out: an `append` program ends with the last append.
    The function and the caches' symbols go; sources stay.

    Where `llm-tree-verify` has made a function `@verify`, programs of the kind `verify` come out of it, for the widths
    from 2 to `tree-nodes`.

    Where `llm-make-evict` has made a function `@evict`, a program of the kind `evict` comes out of it.

    An operation that has no kernel is an error that names it.

    ```mlir
    func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32> {
      %w = llm.weight @model["blk.0.attn_q.weight"] : …
      %q = llm.linear %x, %w : …
    // ==>
    plan.tensor @blk.0.attn_q.weight layout "tiled<rows=8>" bytes 207360 { … }
    plan.target @lavapipe {
      plan.kernel @linear_… "linear" {…}
      plan.program @append_1 append width 1 {
        %codes = plan.weight @blk.0.attn_q.weight at 0 bytes 165888
        plan.dispatch @linear_…(in %x, in %codes, …, out %q) groups [18, 1, 1] "layer 0 linear"
    ```
  }];
  let options = [
    ListOption<"targets", "targets", "std::string", "Profiles, by name or JSON file; from special to general">,
    ListOption<"widths", "widths", "int64_t", "Tokens of a step that programs are made for (default: the profile's)">,
    Option<"context", "context", "int64_t", /*default=*/"0",
           "Slots of the key-value caches; 0 keeps what the caches say">,
    Option<"logitWidths", "logits-widths", "int64_t", /*default=*/"16",
           "Widest step that gets a program for the logits of all rows; 0: none">,
    Option<"treeNodes", "tree-nodes", "int64_t", /*default=*/"64",
           "Nodes of the largest tree that gets a program, at most 64">,
    Option<"largestBinding", "largest-binding", "int64_t", /*default=*/"0",
           "Bytes that the binding of a storage buffer may span, where these are to be fewer than the target promises; "
           "0: what it promises">,
  ];
}

#endif // SPRIG_CODEGEN_LOWERING_PASSES_TD
