// Passes over the plan dialect alone. The passes that build device code live in codegen/Lowering.
#ifndef SPRIG_DIALECTS_PLAN_PASSES_TD
#define SPRIG_DIALECTS_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignMemoryPass : Pass<"plan-assign-memory", "plan::TargetOp"> {
  let summary = "Give scratch values places in one scratch buffer";
  let description = [{
    Every scratch value of a program lives from its first write to its last use. Values whose lives do not meet may share
    bytes; places are chosen largest first, each in the smallest hole that fits, at multiples of 256. The buffer is as
    large as the program that needs most. Lives are counted in steps between barriers, not in dispatches, so that sharing
    never asks for a barrier that the data does not.

    The peak is a remark of category `plan` (`passed`), with the least that the values alive at one time would need.

    ```mlir
    %a = plan.scratch "a" bytes 1024
    %b = plan.scratch "b" bytes 512
    // ==>
    plan.buffer scratch @scratch bytes 1536
    ...
    %a = plan.view @scratch at 0 bytes 1024
    %b = plan.view @scratch at 1024 bytes 512
    ```
  }];
}

def InsertBarriersPass : Pass<"plan-insert-barriers", "plan::TargetOp"> {
  let summary = "Put the fewest barriers between dependent dispatches";
  let description = [{
    Two dispatches depend on each other where one writes bytes that the other reads or writes. Walking a program in
    order, a barrier goes before the first dispatch that depends on one since the last barrier: for a given order no
    placement needs fewer. Programs are separated by the runtime. Barriers that were there before are removed.

    The number of barriers is a remark of category `plan` (`passed`).

    ```mlir
    plan.dispatch @f(in %a, out %b) groups [1, 1, 1]
    plan.dispatch @f(in %b, out %c) groups [1, 1, 1]
    // ==>
    plan.dispatch @f(in %a, out %b) groups [1, 1, 1]
    plan.barrier
    plan.dispatch @f(in %b, out %c) groups [1, 1, 1]
    ```
  }];
}

def PlaceWeightsPass : Pass<"plan-place-weights", "ModuleOp"> {
  let summary = "Give every tensor its place in the weight section";
  let description = [{
    Tensors lie in the order in which programs first use them, at multiples of 256; tensors that no program uses are
    dropped. Every target that uses one gets a `weights` buffer: the page-aligned span that holds all it uses.

    ```mlir
    plan.tensor @w layout "raw" bytes 1000 {...}
    plan.target @t {
    // ==>
    plan.tensor @w layout "raw" bytes 1000 at 0 {...}
    plan.target @t {
      plan.buffer weights @weights bytes 4096 at 0
    ```
  }];
}

#endif // SPRIG_DIALECTS_PLAN_PASSES_TD
