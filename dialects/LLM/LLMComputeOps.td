// Products, norms and rotations on activations.
#ifndef LLM_COMPUTE_OPS_TD
#define LLM_COMPUTE_OPS_TD

include "dialects/LLM/LLMAttrs.td"
include "dialects/LLM/LLMTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLM_EmbeddingOp
    : LLM_Op<"embedding", [Pure, OneARow<"result", "ids", "i32">]> {
  let summary = "Rows of a table, one a token";
  let description = [{
    `result[t] = scale * table[ids[t]]`; the scale is 1 where none is given. Ids
    outside the table are clamped.

    - (C1) the table is `VxD`, and the result `TxD`.

    ```mlir
    %x = llm.embedding %ids, %table : tensor<49152x576x!llm.q<i8, 32:f16>> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_I32Vector:$ids, LLM_NumberTensor:$table, OptionalAttr<F32Attr>:$scale);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $ids `,` $table (`scale` `(` custom<Float>($scale)^ `)`)? attr-dict
    `:` type($table) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_RmsNormOp : LLM_Op<"rms_norm", [Pure]> {
  let summary = "Divide by the root mean square";
  let description = [{
    `y = gamma * x / sqrt(sum(x^2)/count + eps)` over the last dimension; with a
    gamma as long as all dimensions but the first together, over these. `count` is
    the width that the mean divides by: after width pruning it is the original one.
    A quantised result is quantised from the normalised numbers.

    - (C1) the shapes of input and result are equal.
    - (C2) gamma is as long as the last dimension, or as a row.
    - (C3) `eps` is not negative, `count` positive.

    ```mlir
    %n = llm.rms_norm %x gamma(%g : tensor<576xf32>) eps(1.0e-5) : tensor<?x576xf32>
    %q = llm.rms_norm %x eps(1.0e-5) count(576) : tensor<?x512xf32> -> tensor<?x512x!llm.q<i8, *:f32>>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, Optional<LLM_FloatVector>:$gamma, F32Attr:$eps,
                       OptionalAttr<LLM_I64Attr>:$count);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = [{
    $input (`gamma` `(` $gamma^ `:` type($gamma) `)`)? `eps` `(` custom<Float>($eps) `)`
    (`count` `(` $count^ `)`)? attr-dict
    `:` type($input) `` custom<ResultType>(ref(type($input)), type($result))
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_LayerNormOp : LLM_Op<"layer_norm", [Pure, AttrSizedOperandSegments]> {
  let summary = "Subtract the mean, divide by the standard deviation";
  let description = [{
    `y = gamma * (x - mean)/sqrt(var + eps) + beta` over the last dimension; mean
    and variance divide by `count`, the last dimension where none is given: channels
    that width pruning took away count as zeros.

    - (C1) the shapes of input and result are equal.
    - (C2) gamma and beta are as long as the last dimension.
    - (C3) `eps` is not negative, `count` positive.

    ```mlir
    %n = llm.layer_norm %x gamma(%g : tensor<64xf32>) beta(%b : tensor<64xf32>) eps(1.0e-5) : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, Optional<LLM_FloatVector>:$gamma,
                       Optional<LLM_FloatVector>:$beta, F32Attr:$eps, OptionalAttr<LLM_I64Attr>:$count);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = [{
    $input (`gamma` `(` $gamma^ `:` type($gamma) `)`)? (`beta` `(` $beta^ `:` type($beta) `)`)?
    `eps` `(` custom<Float>($eps) `)` (`count` `(` $count^ `)`)? attr-dict
    `:` type($input) `` custom<ResultType>(ref(type($input)), type($result))
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_RmsScaleOp : LLM_Op<"rms_scale", [Pure, OneARow<"input", "result", "f32">]> {
  let summary = "What RMS norm multiplies each row by";
  let description = [{
    `r[t] = 1 / sqrt(sum(x[t]^2)/count + eps)`: the part of a norm that a product
    cannot fold into its load of `x`. Lowering puts it into the epilogue of what
    makes `x`, or into a small dispatch.

    - (C1) the input is `TxD`.
    - (C2) `eps` is not negative, `count` positive.

    ```mlir
    %r = llm.rms_scale %x eps(1.0e-5) : tensor<?x576xf32>
    %q = llm.linear %x, %w gamma(%g : tensor<576xf32>) row_scale(%r)
        : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, F32Attr:$eps, OptionalAttr<LLM_I64Attr>:$count);
  let results = (outs LLM_F32Vector:$result);
  let assemblyFormat = [{
    $input `eps` `(` custom<Float>($eps) `)` (`count` `(` $count^ `)`)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def LLM_LinearOp
    : LLM_Op<"linear", [Pure, AttrSizedOperandSegments,
                        OptionalOneARow<"input", "row_scale", "f32">,
                        OptionalTypesMatchWith<"'residual' has the type of the result", "result",
                                               "residual", "$_self">]> {
  let summary = "Product with a weight, and what fuses with it";
  let description = [{
    ```
    y[t,n] = row_scale[t] * sum_k weight[n,k] * gamma[k] * x[t,k] + bias[n] + residual[t,n]
    ```

    `gamma` and `row_scale` are a folded RMS norm (`llm.rms_scale`). Operands may be
    quantised: the product is of the numbers they mean. A weight `HxNxK` is one
    product a head, of `x` `TxHxK` to `TxHxN`.

    - (C1) the weight is `NxK` or `HxNxK`, all dimensions static.
    - (C2) a row of `x` has `K` elements, or is `HxK`.
    - (C3) a row of the result has `N` elements, or is `HxN`.
    - (C4) `x` and the result have as many rows.
    - (C5) gamma has `K` elements.
    - (C6) the bias has `N` elements, or `H*N`.
    - (C7) `gamma` and `row_scale` need a float `x`.

    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<192x576xf16> -> tensor<?x3x64xf32>
    %z = llm.linear %a, %o bias(%b : tensor<576xf32>) residual(%h)
        : tensor<?x9x64xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_NumberTensor:$input, LLM_NumberTensor:$weight,
                       Optional<LLM_FloatVector>:$gamma, Optional<LLM_F32Vector>:$row_scale,
                       Optional<LLM_FloatVector>:$bias, Optional<LLM_FloatTensor>:$residual);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`gamma` `(` $gamma^ `:` type($gamma) `)`)?
    (`row_scale` `(` $row_scale^ `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`residual` `(` $residual^ `)`)? attr-dict
    `:` type($input) `,` type($weight) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input, "::mlir::Value":$weight,
                   CArg<"::mlir::Value", "{}">:$bias, CArg<"::mlir::Value", "{}">:$residual)>,
  ];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_GatedLinearOp
    : LLM_Op<"gated_linear", [Pure, AttrSizedOperandSegments,
                              OptionalOneARow<"input", "row_scale", "f32">]> {
  let summary = "Gate and up product of a feed-forward block in one";
  let description = [{
    The fused form of two linears and a `gated_activation`:

    ```
    y[t,f] = kind(row_scale[t] * sum_k gate[f,k]*gamma[k]*x[t,k])
                * row_scale[t] * sum_k up[f,k]*gamma[k]*x[t,k]
    ```

    - (C1) the weights are `FxK`, of equal static shape.
    - (C2) `x` is `TxK`, and the result `TxF`.
    - (C3) gamma has `K` elements.
    - (C4) `gamma` and `row_scale` need a float `x`.

    ```mlir
    %y = llm.gated_linear silu %x, %gate, %up
        : tensor<?x576xf32>, tensor<1536x576xf16>, tensor<1536x576xf16> -> tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins LLM_ActivationKindAttr:$kind, LLM_NumberTensor:$input,
                       LLM_NumberTensor:$gate, LLM_NumberTensor:$up,
                       Optional<LLM_FloatVector>:$gamma, Optional<LLM_F32Vector>:$row_scale);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = [{
    $kind $input `,` $gate `,` $up (`gamma` `(` $gamma^ `:` type($gamma) `)`)?
    (`row_scale` `(` $row_scale^ `)`)? attr-dict
    `:` type($input) `,` type($gate) `,` type($up) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_SparseLinearOp
    : LLM_Op<"sparse_linear", [Pure, OptionalTypesMatchWith<"'residual' has the type of the result",
                                                            "result", "residual", "$_self">]> {
  let summary = "Product with a weight of which each row has P entries";
  let description = [{
    `y[t,n] = sum_p values[n,p] * x[t, index[n,p]] + residual[t,n]`; a row with
    fewer entries is filled with zeros. `N:M` sparsity is a type of `llm.linear`.

    - (C1) `values` and `index` are `NxP`, of equal static shape.
    - (C2) `x` is `TxK`, and the result `TxN`.

    ```mlir
    %y = llm.sparse_linear %x, %v, %i residual(%d)
        : tensor<?x576xf32>, tensor<64x8xf16>, tensor<64x8xi32> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_NumberTensor:$values, RankedTensorOf<[I32]>:$index,
                       Optional<LLM_FloatTensor>:$residual);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $values `,` $index (`residual` `(` $residual^ `)`)? attr-dict
    `:` type($input) `,` type($values) `,` type($index) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_RopeOp
    : LLM_Op<"rope", [Pure, AllTypesMatch<["input", "result"]>, OneARow<"input", "positions", "i32">]> {
  let summary = "Rotary position embedding";
  let description = [{
    Pair `i` of each head turns by `position * scale * f_i`, where `f_i` is
    `base^(-2i/dims)` or `frequencies[i]`, in radians a position; cosine and sine
    are multiplied by `amplitude`. The first `dims` elements of a head turn, the
    rest passes. A pair is `(i, i + dims/2)`, interleaved `(2i, 2i + 1)`.

    With `long_from`, frequencies are two rows: a token whose position is below
    `long_from` uses the first, any other the second (LongRoPE).

    - (C1) the input is `TxHxE`.
    - (C2) `dims` is even, positive, and at most `E`.
    - (C3) there is a base or there are frequencies, not both; a base is positive.
    - (C4) frequencies have `dims/2` elements, with `long_from` two rows of them.

    ```mlir
    %q = llm.rope %x at %positions base(10000.0) : tensor<?x9x64xf32>
    %k = llm.rope %y at %positions frequencies(%f : tensor<24xf32>) dims(48) interleaved : tensor<?x3x64xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_I32Vector:$positions,
                       Optional<RankedTensorOf<[F32, F64]>>:$frequencies, OptionalAttr<F32Attr>:$base,
                       OptionalAttr<LLM_I64Attr>:$dims, OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<F32Attr>:$amplitude, OptionalAttr<LLM_I64Attr>:$long_from,
                       UnitAttr:$interleaved);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `at` $positions (`base` `(` custom<Float>($base)^ `)`)?
    (`frequencies` `(` $frequencies^ `:` type($frequencies) `)`)? (`dims` `(` $dims^ `)`)?
    (`scale` `(` custom<Float>($scale)^ `)`)? (`amplitude` `(` custom<Float>($amplitude)^ `)`)?
    (`long_from` `(` $long_from^ `)`)? (`interleaved` $interleaved^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of a head that turn.
    int64_t getRotatedDims();
  }];
  let hasCanonicalizeMethod = 1;
}

def LLM_HadamardOp : LLM_Op<"hadamard", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Orthogonal Walsh-Hadamard transform of blocks of the last dimension";
  let description = [{
    `y = H * (s . x) / sqrt(block)` for each block, `H` the Sylvester matrix and
    `s` the signs: bit `j mod 64` of word `j/64` is set where element `j` of the last dimension
    changes sign. `inverse` is the transpose: `y = s . (H * x) / sqrt(block)`.

    - (C1) `block` is a power of two that divides the last dimension.
    - (C2) there are as many signs as the last dimension needs words.

    ```mlir
    %y = llm.hadamard %x block(64) : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_I64Attr:$block,
                       OptionalAttr<DenseI64ArrayAttr>:$signs, UnitAttr:$inverse);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `block` `(` $block `)` (`signs` $signs^)? (`inverse` $inverse^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // LLM_COMPUTE_OPS_TD
