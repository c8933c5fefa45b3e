// Attributes and enumerations of the llm dialect.
#ifndef LLM_ATTRS_TD
#define LLM_ATTRS_TD

include "dialects/LLM/LLMDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class LLM_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::mlir::llm";
}

def LLM_LayoutKind : LLM_Enum<"LayoutKind", "order of the bytes of a tensor", [
  I32EnumCase<"GGUF", 0, "gguf">, I32EnumCase<"GPTQ", 1, "gptq">,
  I32EnumCase<"AWQ", 2, "awq">, I32EnumCase<"Packed", 3, "packed">,
  I32EnumCase<"Tiled", 4, "tiled">]>;

def LLM_LayoutAttr
    : AttrDef<LLM_Dialect, "Layout",
              [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "How the bytes of a tensor lie";
  let description = [{
    The encoding of a tensor type. Without one, a tensor is numbers and nothing
    is said about bytes.

    - `gguf`: the blocks of GGUF, row by row.
    - `gptq`: 32-bit words of codes along `K`, `[K/8, N]` for 4 bits; zero points
      along `N`, stored less one.
    - `awq`: words along `N`, `[K, N/8]`, interleaved as AutoAWQ does.
    - `packed`: codes row by row, low bits first; scales and minima in tensors of
      their own, as compressed-tensors and this project's own files have them.
    - `tiled<rows = R, word = W>`: the planes of a block apart, `R` rows side by
      side in words of `W` bits, as kernels read them.

    - (C1) the element type is float or `!llm.q`; `gptq`, `awq`, `packed` and `gguf` want `!llm.q`.
    - (C2) a tile has 1 to 64 rows, and words of 32, 64 or 128 bits.

    ```mlir
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8, word = 32>>>
    ```
  }];
  let parameters = (ins
    "::mlir::llm::LayoutKind":$kind,
    "int64_t":$rows,
    "int64_t":$word
  );
  let builders = [
    AttrBuilder<(ins "::mlir::llm::LayoutKind":$kind), [{
      return $_get($_ctxt, kind, 0, 0);
    }]>,
    AttrBuilder<(ins "int64_t":$rows, CArg<"int64_t", "32">:$word), [{
      return $_get($_ctxt, LayoutKind::Tiled, rows, word);
    }]>,
  ];
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

def LLM_BlockMaskAttr : AttrDef<LLM_Dialect, "BlockMask"> {
  let mnemonic = "blocks";
  let summary = "Blocks of keys that a block of queries sees";
  let description = [{
    Positions are cut into blocks of `size`. A query in block `i` sees a key in
    block `j` when `i - j < local`, or `j < first`, or `stride` is given and
    `(i - j) mod stride = 0`; other blocks are skipped, not masked.

    - (C1) `size` and `local` are positive, `first` and `stride` not negative.

    ```mlir
    #llm.blocks<size = 64, local = 4, first = 1, stride = 8>
    ```
  }];
  let parameters = (ins
    "int64_t":$size,
    "int64_t":$local,
    DefaultValuedParameter<"int64_t", "0">:$first,
    DefaultValuedParameter<"int64_t", "0">:$stride
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def LLM_ActivationKind : LLM_Enum<"ActivationKind", "elementwise nonlinearity", [
  I32EnumCase<"Relu", 0, "relu">, I32EnumCase<"Relu2", 1, "relu2">,
  I32EnumCase<"Silu", 2, "silu">, I32EnumCase<"Gelu", 3, "gelu">,
  I32EnumCase<"GeluTanh", 4, "gelu_tanh">, I32EnumCase<"GeluQuick", 5, "gelu_quick">,
  I32EnumCase<"Sigmoid", 6, "sigmoid">, I32EnumCase<"Tanh", 7, "tanh">]>;

def LLM_MaskKind : LLM_Enum<"MaskKind", "positions that a query sees", [
  I32EnumCase<"Causal", 0, "causal">, I32EnumCase<"Full", 1, "full">,
  I32EnumCase<"Chunked", 2, "chunked">]>;

def LLM_ScoreKind : LLM_Enum<"ScoreKind", "scores of a router", [
  I32EnumCase<"Softmax", 0, "softmax">, I32EnumCase<"Sigmoid", 1, "sigmoid">]>;

def LLM_ActivationKindAttr : EnumAttr<LLM_Dialect, LLM_ActivationKind, "activation_kind">;
def LLM_MaskKindAttr : EnumAttr<LLM_Dialect, LLM_MaskKind, "mask">;
def LLM_ScoreKindAttr : EnumAttr<LLM_Dialect, LLM_ScoreKind, "score">;

#endif // LLM_ATTRS_TD
