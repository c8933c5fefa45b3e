// Operations of the plan dialect, outermost first.
include "dialects/Plan/PlanBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===--------------------------------------------------------------------------------------------------------------===//
// Module level
//===--------------------------------------------------------------------------------------------------------------===//

def Plan_TensorOp : Plan_Op<"tensor", [IsolatedFromAbove, Symbol, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A tensor of the weight section";
  let description = [{
    The region says what the tensor is (weight operations of another dialect, or a constant); the package writer
    evaluates it, lays it out as `layout` says, and writes `bytes` bytes at `offset` of the weight section. Targets of
    one module share tensors: two layouts of one weight are two tensors.

    - (C1) the region yields one value.
    - (C2) `bytes` > 0.
    - (C3) `offset`, once given, is a multiple of 256.

    Example:

    ```mlir
    plan.tensor @blk.0.attn_q.weight layout "tiled<rows=8>" bytes 207360 at 4096 {
      %0 = llm.weight @model["blk.0.attn_q.weight"] : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      plan.yield %0 : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$layout, I64Attr:$bytes, OptionalAttr<I64Attr>:$offset);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `layout` $layout `bytes` custom<Plain>($bytes) (`at` custom<Plain>($offset)^)? $body attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_YieldOp : Plan_Op<"yield", [Pure, Terminator, HasParent<"TensorOp">]> {
  let summary = "The value of a `plan.tensor`";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ValueRange()); }]>];
}

def Plan_TargetOp : Plan_Op<"target", [
    IsolatedFromAbove, Symbol, SymbolTable, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "Everything that one device profile runs";
  let description = [{
    Kernels, buffers, caches and programs for the profile named `profile` (the symbol name by default).

    - (C1) the region holds kernels, buffers, caches and programs only.
    - (C2) no two programs have the same kind and width, or as drafts the same width and guess.
    - (C3) at most one buffer of each kind, but any number of kind `kv`.

    Example:

    ```mlir
    plan.target @lavapipe {
      plan.buffer control @control bytes 256
      plan.kernel @scale_4 "elementwise" {count = 4 : i64}
      plan.program @append_1 append width 1 {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$profile);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`profile` $profile^)? $body attr-dict";
  let extraClassDeclaration = [{
    ::llvm::StringRef getProfileName() { return getProfile().value_or(getSymName()); }
    BufferOp findBuffer(BufferKind kind);
  }];
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Target level
//===--------------------------------------------------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [
    Symbol, SymbolTable, HasParent<"TargetOp">, IsolatedFromAbove, SingleBlock, NoRegionArguments, NoTerminator]> {
  let summary = "A compute kernel: a key, then device code";
  let description = [{
    `family` and `spec` are the key from which the kernel is built; equal keys are one kernel. `plan-build-kernels`
    fills the region with a `gpu.module`; `plan-lower-kernels` turns that into a `spirv.module` and then into the words
    of a SPIR-V binary, and leaves the region empty. `entry` names the entry point.

    - (C1) the region is empty or holds one module (`gpu.module` or `spirv.module`).
    - (C2) a kernel has device code in one form only: a region or words.
    - (C3) words come with `entry`, `workgroup` and `access`.
    - (C4) `workgroup` has three sizes of at least 1.
    - (C5) `texel_formats`, if any, has one VkFormat (0: none) for each binding in `access`.

    Example:

    ```mlir
    plan.kernel @linear_q4_1_576x576_t1 "linear" {k = 576 : i64, n = 576 : i64, tokens = 1 : i64}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, StrAttr:$family, DictionaryAttr:$spec, OptionalAttr<StrAttr>:$entry,
    OptionalAttr<DenseI32ArrayAttr>:$access, OptionalAttr<DenseI32ArrayAttr>:$workgroup,
    DefaultValuedAttr<I32Attr, "0">:$uniform_bindings,
    DefaultValuedAttr<I32Attr, "0">:$push_constant_bytes, DefaultValuedAttr<I32Attr, "0">:$shared_bytes,
    DefaultValuedAttr<I32Attr, "0">:$subgroup_size, OptionalAttr<DenseI32ArrayAttr>:$texel_formats,
    OptionalAttr<StrArrayAttr>:$features, OptionalAttr<I32ElementsAttr>:$spirv);
  let regions = (region SizedRegion<1>:$code);
  let assemblyFormat = [{
    $sym_name $family $spec (`entry` $entry^)? (`access` $access^)? (`workgroup` $workgroup^)?
    (`features` $features^)? (`spirv` $spirv^)? attr-dict-with-keyword `` custom<OptionalRegion>($code)
  }];
  let builders = [
    // A key, with nothing built yet.
    OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::StringRef":$family, "::mlir::DictionaryAttr":$spec)>];
  let extraClassDeclaration = [{
    /// The module in the region, or null.
    Operation *getModule() { return getCode().front().empty() ? nullptr : &getCode().front().front(); }
  }];
  let hasVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [Symbol, HasParent<"TargetOp">]> {
  let summary = "Device memory";
  let description = [{
    One allocation that lives as long as the session. A `weights` buffer is the whole weight section as this target
    sees it, `offset` (a multiple of 4,096) telling where in the file's section it starts.

    - (C1) `bytes` > 0.
    - (C2) only a `weights` buffer has an offset, and it is a multiple of 4,096.

    Example:

    ```mlir
    plan.buffer kv @cache bytes 47185920
    plan.buffer weights @weights bytes 96468992 at 0
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_BufferKind:$kind, I64Attr:$bytes, OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = [{
    custom<Keyword>($kind) $sym_name `bytes` custom<Plain>($bytes) (`at` custom<Plain>($offset)^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_KvCacheOp : Plan_Op<"kv_cache", [Symbol, HasParent<"TargetOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A key-value cache inside a buffer, described for reports and sessions";
  let description = [{
    `layers` equal parts lie one after another from `offset` of the buffer. The programs do not refer to it: they use
    views of the buffer.

    - (C1) the buffer is of kind `kv` and holds `bytes` bytes at `offset`.
    - (C2) layers, heads, head size and capacity are at least 1, window and sinks at least 0.
    - (C3) each plane, `capacity` slots of `slot_bytes` bytes from `plane_offsets` of a layer's part on, lies in that
      part.

    Example:

    ```mlir
    plan.kv_cache @kv in @cache at 0 bytes 47185920
      {layers = 30 : i64, heads = 3 : i64, head_size = 64 : i64, capacity = 2048 : i64,
       key_type = "f16", value_type = "f16",
       plane_offsets = array<i64: 0, 786432>, slot_bytes = array<i64: 384, 384>}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$buffer, I64Attr:$offset, I64Attr:$bytes,
    I64Attr:$layers, I64Attr:$heads, I64Attr:$head_size, I64Attr:$capacity,
    DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<I64Attr, "0">:$sinks,
    StrAttr:$key_type, StrAttr:$value_type,
    DenseI64ArrayAttr:$plane_offsets, DenseI64ArrayAttr:$slot_bytes);
  let assemblyFormat = [{
    $sym_name `in` $buffer `at` custom<Plain>($offset) `bytes` custom<Plain>($bytes) attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [
    Symbol, HasParent<"TargetOp">, IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "One command buffer";
  let description = [{
    The commands of a step of `width` tokens, in order. `append` fills the caches; `sample` also computes the logits of
    the last valid row, draws the next token and advances the control block; `logits` leaves the logits of all rows;
    `verify` takes the tokens as nodes of a tree, accepts what sampling would have drawn, and advances behind that.
    `draft` does what `sample` does by the function that makes the `guess`-th guess of the module's `plan.drafts`; a
    draft of several tokens takes them as nodes of a tree and draws nothing. `evict` takes no tokens and
    makes room in the caches.

    Dispatches with no barrier between them may run at the same time and in any order. The runtime separates programs:
    the first command sees everything that was submitted before.

    - (C1) `width` >= 1.
    - (C2) the region holds views, scratch values, dispatches and barriers only.
    - (C3) a program has the number of a guess if it is a `draft`, and only then.

    Example:

    ```mlir
    plan.program @append_1 append width 1 {
      %h = plan.scratch "h" bytes 2304
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_ProgramKind:$kind, I64Attr:$width, OptionalAttr<I64Attr>:$guess);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name custom<Keyword>($kind) `width` custom<Plain>($width) (`guess` custom<Plain>($guess)^)? $body attr-dict
  }];
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Program level
//===--------------------------------------------------------------------------------------------------------------===//

def Plan_ViewOp : Plan_Op<"view", [Pure, HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A range of a buffer";
  let description = [{
    - (C1) the buffer exists in the target.
    - (C2) the range lies inside it.
    - (C3) the offset is a multiple of 256, so that it may be bound on any device.

    Example:

    ```mlir
    %k = plan.view @cache at 1572864 bytes 786432
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$buffer, I64Attr:$offset, I64Attr:$bytes);
  let results = (outs Plan_ViewType:$result);
  let assemblyFormat = "$buffer `at` custom<Plain>($offset) `bytes` custom<Plain>($bytes) attr-dict";
}

def Plan_WeightOp : Plan_Op<"weight", [Pure, HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A range of a tensor of the weight section";
  let description = [{
    `offset` counts from the start of the tensor: a plane of it, or the whole.

    - (C1) the module holds the tensor.
    - (C2) the range lies inside it.
    - (C3) the offset is a multiple of 256.

    Example:

    ```mlir
    %codes = plan.weight @blk.0.attn_q.weight at 0 bytes 165888
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$tensor, I64Attr:$offset, I64Attr:$bytes);
  let results = (outs Plan_ViewType:$result);
  let assemblyFormat = "$tensor `at` custom<Plain>($offset) `bytes` custom<Plain>($bytes) attr-dict";
}

def Plan_ScratchOp : Plan_Op<"scratch", [HasParent<"ProgramOp">]> {
  let summary = "Memory for one intermediate result";
  let description = [{
    Lives from the first dispatch that writes it to the last that touches it; `plan-assign-memory` gives it a place.

    - (C1) the size is at least 1 byte.

    Example:

    ```mlir
    %h = plan.scratch "layer 0 attention" bytes 2304
    ```
  }];
  let arguments = (ins StrAttr:$label, I64Attr:$bytes);
  let results = (outs Plan_ViewType:$result);
  let assemblyFormat = "$label `bytes` custom<Plain>($bytes) attr-dict";
  let hasVerifier = 1;
}

def Plan_SliceOp : Plan_Op<"slice", [Pure, HasParent<"ProgramOp">]> {
  let summary = "A part of a view";
  let description = [{
    - (C1) the part lies inside the view.
    - (C2) the offset is a multiple of 256.

    Slices of views, weights and slices fold into one operation.

    Example:

    ```mlir
    %v = plan.slice %kv at 786432 bytes 786432
    ```
  }];
  let arguments = (ins Plan_ViewType:$source, I64Attr:$offset, I64Attr:$bytes);
  let results = (outs Plan_ViewType:$result);
  let assemblyFormat = "$source `at` custom<Plain>($offset) `bytes` custom<Plain>($bytes) attr-dict";
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def Plan_DispatchOp : Plan_Op<"dispatch", [
    AttrSizedOperandSegments, HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel over a grid of workgroups";
  let description = [{
    Bindings are in the order of the kernel's set 0; `in`, `out` and `inout` say how it touches each. The number of
    workgroups is `groups`; with `indirect` the device reads it from 12 bytes of a view, and `groups` is the most that may be
    asked for. `base` is the first workgroup of each dimension (0 without it). `macs` (multiply-adds) and `touched`
    (bytes it has to move) are for reports; `nanoseconds` is what the target's profile makes of the dispatch with a full
    context.

    - (C1) the kernel exists in the target.
    - (C2) where the kernel knows its bindings, their number and access agree.
    - (C3) the grid is three counts of at least 1.
    - (C4) an indirect count is a view of at least 12 bytes.
    - (C5) no weight is written.
    - (C6) a base is three numbers of at least 0, and the grid behind it is not indirect.

    Example:

    ```mlir
    plan.dispatch @linear_t1(in %x, in %codes, in %scales, out %y) groups [18, 1, 1] "layer 3 q"
      {macs = 331776 : i64, touched = 211968 : i64}
    plan.dispatch @attention_t1(in %q, in %kv, in %control, out %y) groups [3, 9, 1] indirect %counts "layer 3 attention"
    plan.dispatch @linear_t1(in %x, in %codes, in %scales, out %y) groups [9, 1, 1] base [9, 0, 0] "layer 3 q"
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$kernel, Variadic<Plan_ViewType>:$bindings, Optional<Plan_ViewType>:$indirect,
    DenseI32ArrayAttr:$access, DenseI32ArrayAttr:$groups, OptionalAttr<DenseI32ArrayAttr>:$base,
    OptionalAttr<DenseI32ArrayAttr>:$push, DefaultValuedAttr<StrAttr, "\"\"">:$label,
    DefaultValuedAttr<I64Attr, "0">:$macs, DefaultValuedAttr<I64Attr, "0">:$touched,
    DefaultValuedAttr<I64Attr, "0">:$nanoseconds);
  let assemblyFormat = [{
    $kernel `` custom<Bindings>($bindings, $access) `groups` $groups (`base` $base^)?
    (`indirect` $indirect^)? (`push` $push^)? ($label^)? attr-dict
  }];
  let extraClassDeclaration = [{
    Access getAccessOf(unsigned binding) { return static_cast<Access>(getAccess()[binding]); }
    bool reads(unsigned binding) { return getAccess()[binding] & 1; }
    bool writes(unsigned binding) { return getAccess()[binding] & 2; }
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$kernel, "::mlir::ValueRange":$bindings,
                             "::llvm::ArrayRef<Access>":$access, "::llvm::ArrayRef<int32_t>":$groups,
                             "::llvm::StringRef":$label, CArg<"int64_t", "0">:$macs, CArg<"int64_t", "0">:$touched)>];
  let hasVerifier = 1;
}

def Plan_BarrierOp : Plan_Op<"barrier", [HasParent<"ProgramOp">]> {
  let summary = "What was written before is seen by what comes after";
  let description = [{
    Orders memory accesses of all dispatches before it with all after it. With `indirect`, workgroup counts that were
    written before it may be read by indirect dispatches after it, too. With `submit`, what comes after it goes to the
    device in a submission of its own, so that no submission takes as long as a driver's watchdog allows.

    Example:

    ```mlir
    plan.barrier
    plan.barrier indirect
    plan.barrier submit
    ```
  }];
  let arguments = (ins UnitAttr:$indirect, UnitAttr:$submit);
  let assemblyFormat = "(`indirect` $indirect^)? (`submit` $submit^)? attr-dict";
  let builders = [OpBuilder<(ins CArg<"bool", "false">:$indirect), [{
    build($_builder, $_state, indirect, /*submit=*/false);
  }]>];
}
