// Weights by name, and the expressions over them that are evaluated when a package is written.
#ifndef LLM_WEIGHT_OPS_TD
#define LLM_WEIGHT_OPS_TD

include "dialects/LLM/LLMAttrs.td"
include "dialects/LLM/LLMTypes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class LLM_InferredOp<string mnemonic, list<Trait> traits = []>
    : LLM_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor],
                                   traits)>;

def LLM_WeightOp
    : LLM_Op<"weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor of a source, or an inline value in tests";
  let description = [{
    The key is the source's own (`blk.0.attn_q.weight` in GGUF). The declared type
    is a promise: reading the source checks it. An inline value of a quantised
    tensor is its bytes.

    - (C1) there is a source and a key, or an inline value.
    - (C2) the source is an `llm.source`.
    - (C3) an inline value has the type of the result, or is an i8 blob for a
      quantised one; a blob in the `gguf` layout has the bytes of whole rows.
    - (C4) the shape is static.

    ```mlir
    %w = llm.weight @model["blk.0.attn_q.weight"] : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %c = llm.weight dense<[1.0, 2.0]> : tensor<2xf32>
    %q = llm.weight dense<0> : tensor<18xi8> as tensor<1x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$source, OptionalAttr<StrAttr>:$key,
                       OptionalAttr<ElementsAttr>:$value);
  let results = (outs LLM_AnyTensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$source, "::llvm::StringRef":$key)>,
    OpBuilder<(ins "::mlir::ElementsAttr":$value)>,
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::ElementsAttr":$blob)>,
  ];
  let extraClassDeclaration = [{
    bool isInline() { return static_cast<bool>(getValueAttr()); }
  }];
}

def LLM_SliceOp : LLM_InferredOp<"slice"> {
  let summary = "Rows, columns or heads `begin` to `end` of a tensor";
  let description = [{
    - (C1) `axis` is a dimension of the input.
    - (C2) `0 <= begin < end`, and `end` is within the axis.
    - (C3) along the last axis of a quantised tensor, `begin` is a multiple of the
      outermost group, and `end` too or the end of the row.

    ```mlir
    %q = llm.slice %qkv 0 to 9 axis 1 : tensor<?x15x64xf32>
    ```
  }];
  let arguments = (ins LLM_AnyTensor:$input, LLM_I64Attr:$begin, LLM_I64Attr:$end, LLM_I64Attr:$axis);
  let results = (outs LLM_AnyTensor:$result);
  let assemblyFormat = "$input $begin `to` $end `axis` $axis attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def LLM_ConcatOp : LLM_InferredOp<"concat"> {
  let summary = "Tensors one after another along an axis";
  let description = [{
    - (C1) there is at least one input.
    - (C2) `axis` is a dimension of the inputs.
    - (C3) inputs differ along the axis alone: same element type, layout and other
      dimensions.
    - (C4) along the last axis of quantised tensors, every input but the last is a
      whole number of outermost groups.

    ```mlir
    %qkv = llm.concat %q, %k, %v axis 0 : tensor<576x576xf16>, tensor<192x576xf16>, tensor<192x576xf16>
    ```
  }];
  let arguments = (ins Variadic<LLM_AnyTensor>:$inputs, LLM_I64Attr:$axis);
  let results = (outs LLM_AnyTensor:$result);
  let assemblyFormat = "$inputs `axis` $axis attr-dict `:` type($inputs)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def LLM_GatherOp : LLM_InferredOp<"gather"> {
  let summary = "Chosen rows, columns or heads of a tensor, in a chosen order";
  let description = [{
    `result[..., i, ...] = input[..., index[i], ...]`. On activations it is the
    column order of GPTQ's `g_idx`.

    - (C1) `axis` is a dimension of the input.
    - (C2) a quantised tensor with scales is not gathered along its last axis.

    ```mlir
    %y = llm.gather %x, %order axis 1 : tensor<?x576xf32>, tensor<576xi32>
    ```
  }];
  let arguments = (ins LLM_AnyTensor:$input, LLM_I32Vector:$index, LLM_I64Attr:$axis);
  let results = (outs LLM_AnyTensor:$result);
  let assemblyFormat = [{
    $input `,` $index `axis` $axis attr-dict `:` type($input) `,` type($index)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_ScaleAxisOp : LLM_Op<"scale_axis", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Each slice along an axis times a number of its own";
  let description = [{
    - (C1) `axis` is a dimension of the input.
    - (C2) there is one factor a slice.

    ```mlir
    %v = llm.scale_axis %w, %s axis 1 : tensor<576x1536xf32>, tensor<1536xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_FloatVector:$factors, LLM_I64Attr:$axis);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $factors `axis` $axis attr-dict `:` type($input) `,` type($factors)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_OffsetOp : LLM_Op<"offset", [Pure]> {
  let summary = "Every number plus a constant, in f32";
  let description = [{
    Checkpoints of some families store the factors of their norms less one.

    - (C1) the shapes are equal.
    - (C2) the result is of f32.

    ```mlir
    %g = llm.offset %w by 1.0 : tensor<576xbf16> -> tensor<576xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, F32Attr:$amount);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `by` custom<Float>($amount) attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def LLM_TransposeOp : LLM_InferredOp<"transpose"> {
  let summary = "A weight with its dimensions in another order";
  let description = [{
    Dimension `i` of the result is dimension `order[i]` of the input.

    - (C1) `order` is a permutation of the dimensions.
    - (C2) the last dimension of a quantised tensor stays last.

    ```mlir
    %t = llm.transpose %w [1, 0] : tensor<64x192xf32>
    ```
  }];
  let arguments = (ins LLM_AnyTensor:$input, DenseI64ArrayAttr:$order);
  let results = (outs LLM_AnyTensor:$result);
  let assemblyFormat = "$input $order attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_ReshapeOp : LLM_Op<"reshape", [Pure]> {
  let summary = "The same numbers in row-major order under another shape";
  let description = [{
    For weights that stack heads or experts, and for the heads of a token that are
    quantised together; elsewhere activations are reshaped by the ops that make and
    take them.

    - (C1) as many elements, all dimensions static but the number of rows.
    - (C2) same element type and layout.
    - (C3) a quantised tensor keeps its last dimension.

    ```mlir
    %h = llm.reshape %w : tensor<1024x512xf16> -> tensor<16x64x512xf16>
    ```
  }];
  let arguments = (ins LLM_AnyTensor:$input);
  let results = (outs LLM_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_ArgsortOp : LLM_Op<"argsort", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "The order that sorts a vector";
  let description = [{
    `input[result[0]] <= input[result[1]] <= ...`, equal elements in their old order.
    It makes of GPTQ's `g_idx` (the group of each column) the order in which groups
    are contiguous.

    ```mlir
    %order = llm.argsort %groups : tensor<576xi32>
    ```
  }];
  let arguments = (ins LLM_I32Vector:$input);
  let results = (outs LLM_I32Vector:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def LLM_AssembleOp : LLM_Op<"assemble", [Pure, AttrSizedOperandSegments]> {
  let summary = "A quantised tensor from the tensors that a checkpoint splits it into";
  let description = [{
    The layout of the result says how codes and zero points are packed; scales are
    one tensor a level, inner level first, minima or zero points likewise for the
    levels that have them. A learned codebook has a row for each row of the tensor,
    or one for all. Patterns of `N:M` number the ways to keep `N` of `M` places in
    lexical order, the first place first, packed as codes are. With an order,
    column `i` of the result is column `order[i]` of the codes.

    - (C1) the result is quantised, and its layout is `gptq`, `awq` or `packed`.
    - (C2) there is one tensor of scales a level.
    - (C3) there is one tensor of minima or zero points a level that has them.
    - (C4) there is a codebook just where the code is one that is not known
      (`iq4nl`, `nf4`), with 2^bits entries in its last dimension.
    - (C5) with codes of `b` bits in words of `W`, codes are `ceil(K*b/W) x N` for
      `gptq`, `K x ceil(N*b/W)` for `awq`, `N x ceil(K*b/W)` for `packed`; for `N:M`
      the `K*N/M` that are kept count.
    - (C6) there are patterns just where the type is `N:M`, and its layout `packed`.
    - (C7) an order has `K` elements.

    ```mlir
    %w = llm.assemble %codes scales(%s : tensor<4x576xf16>) zeros(%z : tensor<4x72xi32>)
        : tensor<72x576xi32> -> tensor<576x576x!llm.q<u4, 144:f16 zero u4>, #llm.layout<gptq>>
    ```
  }];
  let arguments = (ins LLM_IntTensor:$codes, Variadic<LLM_AnyTensor>:$scales,
                       Variadic<LLM_AnyTensor>:$zeros, Optional<LLM_FloatTensor>:$codebook,
                       Optional<LLM_IntTensor>:$patterns, Optional<LLM_I32Vector>:$order);
  let results = (outs LLM_QuantizedTensor:$result);
  let assemblyFormat = [{
    $codes (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`zeros` `(` $zeros^ `:` type($zeros) `)`)?
    (`codebook` `(` $codebook^ `:` type($codebook) `)`)?
    (`patterns` `(` $patterns^ `:` type($patterns) `)`)?
    (`order` `(` $order^ `:` type($order) `)`)? attr-dict
    `:` type($codes) `->` type($result)
  }];
  let hasVerifier = 1;
}

def LLM_QuantizeOp : LLM_Op<"quantize", [Pure]> {
  let summary = "Floats to codes and scales";
  let description = [{
    Scales come from the numbers: symmetric codes take the largest magnitude of a
    group, codes with a minimum or zero point the range, both times `clip` where
    given. Codes round to nearest, ties to even.

    - (C1) the shapes are equal.
    - (C2) the result is quantised, and its code is neither a codebook that has to
      be learned nor a grid.
    - (C3) `0 < clip <= 1`.

    ```mlir
    %q = llm.quantize %x : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, OptionalAttr<F32Attr>:$clip);
  let results = (outs LLM_QuantizedTensor:$result);
  let assemblyFormat = [{
    $input (`clip` `(` custom<Float>($clip)^ `)`)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_DequantizeOp : LLM_Op<"dequantize", [Pure]> {
  let summary = "Codes and scales to floats";
  let description = [{
    - (C1) the shapes are equal.

    ```mlir
    %w = llm.dequantize %q : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<576x576xf32>
    ```
  }];
  let arguments = (ins LLM_QuantizedTensor:$input);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def LLM_RelayoutOp : LLM_Op<"relayout", [Pure]> {
  let summary = "The same tensor with its bytes in another order";
  let description = [{
    - (C1) shapes and element types are equal.

    ```mlir
    %t = llm.relayout %q : tensor<8x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
        -> tensor<8x32x!llm.q<u4-8, 32:f16>, #llm.layout<tiled<rows = 8, word = 32>>>
    ```
  }];
  let arguments = (ins LLM_NumberTensor:$input);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

#endif // LLM_WEIGHT_OPS_TD
