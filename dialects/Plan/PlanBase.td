// The dialect, its one type, and the enumerations that the package format repeats.
#ifndef SPRIG_DIALECTS_PLAN_PLANBASE_TD
#define SPRIG_DIALECTS_PLAN_PLANBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::mlir::plan";
  let summary = "The host program: buffers, kernels, dispatches and barriers";
  let description = [{
    What the runtime does on a device, before it becomes a package. A module holds the weights (`plan.tensor`) and one
    `plan.target` per device profile; a target holds kernels, buffers, and programs: straight lines of dispatches and
    barriers over views of the buffers. A program is recorded once as a command buffer and submitted for every step,
    so nothing in it depends on the step: lengths and positions live in the control buffer.

    A target grows in stages, and each stage prints and parses:

    1. lowering makes kernels that are keys (family and spec), and scratch values (`plan.scratch`);
    2. `plan-assign-memory` turns scratch values into views of one scratch buffer, `plan-place-weights` gives every
       tensor its place in the weight section, `plan-insert-barriers` orders dependent dispatches;
    3. kernels get their device code, first as a `gpu.module`, then as SPIR-V words.
  }];
  let useDefaultTypePrinterParser = 1;
}

class Plan_Type<string name, string mnemonic_> : TypeDef<Plan_Dialect, name>,
    BuildableType<"$_builder.getType<::mlir::plan::" # name # "Type>()"> {
  let mnemonic = mnemonic_;
}

def Plan_ViewType : Plan_Type<"View", "view"> {
  let summary = "A range of bytes of a buffer";
  let description = [{
    The operation that makes a view knows its size and place (`plan.view`, `plan.weight`, `plan.scratch`,
    `plan.slice`); what the bytes mean is between the kernels that write and read them.
  }];
}

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::plan";
}

// The numbers of BufferKind and ProgramKind are those of runtime/Format/Package.fbs.
def Plan_BufferKind : Plan_Enum<"BufferKind", "what a buffer is for", [
  I32EnumAttrCase<"weights", 0>, I32EnumAttrCase<"kv", 1>, I32EnumAttrCase<"scratch", 2>,
  I32EnumAttrCase<"control", 3>, I32EnumAttrCase<"history", 4>, I32EnumAttrCase<"logits", 5>,
  I32EnumAttrCase<"state", 6>]>;

def Plan_ProgramKind : Plan_Enum<"ProgramKind", "what a step leaves behind", [
  I32EnumAttrCase<"append", 0>, I32EnumAttrCase<"sample", 1>, I32EnumAttrCase<"logits", 2>,
  I32EnumAttrCase<"verify", 3>, I32EnumAttrCase<"draft", 4>, I32EnumAttrCase<"evict", 5>]>;

// Bits: 1 read, 2 write.
def Plan_Access : Plan_Enum<"Access", "how a kernel touches a binding", [
  I32EnumAttrCase<"in", 1>, I32EnumAttrCase<"out", 2>, I32EnumAttrCase<"inout", 3>]>;

#endif // SPRIG_DIALECTS_PLAN_PLANBASE_TD
