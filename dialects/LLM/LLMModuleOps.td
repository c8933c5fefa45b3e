// Symbols of a model, and the layer that structures a function.
#ifndef LLM_MODULE_OPS_TD
#define LLM_MODULE_OPS_TD

include "dialects/LLM/LLMTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLM_SourceOp : LLM_Op<"source", [Symbol]> {
  let summary = "A file of weights, or a place that is filled at run time";
  let description = [{
    `path` is relative to the folder of the IR file. A source without a path is
    filled at run time: the tensors of a LoRA adapter live in one.

    - (C1) a source with a path names its format.
    - (C2) `bytes` is not negative.

    ```mlir
    llm.source @model {path = "smollm2.gguf", format = "gguf", bytes = 98000000 : i64}
    llm.source @adapter
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$path,
                       OptionalAttr<StrAttr>:$format, OptionalAttr<LLM_I64Attr>:$bytes,
                       OptionalAttr<StrAttr>:$hash);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isRuntime() { return !getPath(); }
  }];
}

def LLM_TokenizerOp
    : LLM_Op<"tokenizer", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The tokenizer that a source carries";
  let description = [{
    `keep` lists the ids that vocabulary pruning left, in their new order.

    - (C1) `source` names an `llm.source`.
    - (C2) the ids of `keep` are not negative, and each is kept once.

    ```mlir
    llm.tokenizer @tokenizer {source = @model}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$source,
                       OptionalAttr<DenseI32ArrayAttr>:$keep);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def LLM_LayerOp
    : LLM_Op<"layer", [SingleBlock, RecursiveMemoryEffects, AutomaticAllocationScope,
                       DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
                       DeclareOpInterfaceMethods<RegionBranchOpInterface, [
                           "getEntrySuccessorOperands", "getRegionInvocationBounds"]>]> {
  let summary = "A layer: the unit of depth pruning, calibration and skip-drafts";
  let description = [{
    The body runs once. Results have the types of the inputs, so that a layer can
    always be skipped by taking its inputs for its results. The body sees values
    from outside (positions, for one). `kind` is free text: `decoder`, `attention`,
    `ffn`.

    - (C1) `index` is not negative.
    - (C2) the block has one argument an input, of the same type.
    - (C3) there is one result an input, of the same type.
    - (C4) what is yielded has the types of the results.

    ```mlir
    %y = llm.layer 3 "decoder" (%h = %x : tensor<?x576xf32>) {
      %n = llm.rms_norm %h eps(1.0e-5) : tensor<?x576xf32>
      llm.yield %n : tensor<?x576xf32>
    }
    ```
  }];
  let arguments = (ins LLM_I64Attr:$index, StrAttr:$kind, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the block and its arguments; the caller fills it and yields.
    OpBuilder<(ins "int64_t":$index, "::llvm::StringRef":$kind, "::mlir::ValueRange":$inputs)>,
  ];
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    ::mlir::llm::YieldOp getYield();
  }];
  let hasCanonicalizeMethod = 1;
}

def LLM_YieldOp
    : LLM_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"LayerOp">]> {
  let summary = "Results of a layer";
  let description = [{
    ```mlir
    llm.yield %y : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

#endif // LLM_MODULE_OPS_TD
