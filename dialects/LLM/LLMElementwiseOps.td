// Elementwise ops, choices of rows, and experts.
#ifndef LLM_ELEMENTWISE_OPS_TD
#define LLM_ELEMENTWISE_OPS_TD

include "dialects/LLM/LLMAttrs.td"
include "dialects/LLM/LLMTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLM_ActivationOp : LLM_Op<"activation", [Pure]> {
  let summary = "Elementwise nonlinearity";
  let description = [{
    `relu2` is the square of `relu`; `gelu` is exact, `gelu_tanh` its usual
    approximation, `gelu_quick` is `x * sigmoid(1.702 x)`.

    - (C1) the shapes of input and result are equal.

    ```mlir
    %y = llm.activation gelu_tanh %x : tensor<?x256xf32>
    ```
  }];
  let arguments = (ins LLM_ActivationKindAttr:$kind, LLM_FloatTensor:$input);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = [{
    $kind $input attr-dict `:` type($input) `` custom<ResultType>(ref(type($input)), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_GatedActivationOp : LLM_Op<"gated_activation", [Pure, AllTypesMatch<["gate", "up"]>]> {
  let summary = "`kind(gate) * up`";
  let description = [{
    - (C1) the shapes of input and result are equal.

    ```mlir
    %y = llm.gated_activation silu %gate, %up : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins LLM_ActivationKindAttr:$kind, LLM_FloatTensor:$gate, LLM_FloatTensor:$up);
  let results = (outs LLM_NumberTensor:$result);
  let assemblyFormat = [{
    $kind $gate `,` $up attr-dict `:` type($gate) `` custom<ResultType>(ref(type($gate)), type($result))
  }];
  let hasVerifier = 1;
}

def LLM_CosineGateOp
    : LLM_Op<"cosine_gate", [Pure, AllTypesMatch<["query", "key"]>, AllTypesMatch<["value", "result"]>]> {
  let summary = "Heads of a row times the cosine between two others";
  let description = [{
    What attends from a token to one other alone, as Clover's heads do; head `h` of
    `v` are the numbers `h*E` to `(h+1)*E` of a row:

    ```
    y[t,h] = v[t,h] * q[t,h].k[t,h] / (max(|q[t,h]|, eps) * max(|k[t,h]|, eps))
    ```

    - (C1) query and key are `TxHxE`, value and result `TxN` with `N = H*E`.
    - (C2) eps is positive.

    ```mlir
    %y = llm.cosine_gate %q, %k, %v eps(1.0e-5) : tensor<?x9x64xf32>, tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$query, LLM_FloatTensor:$key, LLM_FloatTensor:$value, F32Attr:$eps);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `eps` `(` custom<Float>($eps) `)` attr-dict
    `:` type($query) `,` type($result)
  }];
  let hasVerifier = 1;
}

def LLM_AddOp : LLM_Op<"add", [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "Elementwise sum";
  let description = [{
    ```mlir
    %y = llm.add %a, %b : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$lhs, LLM_FloatTensor:$rhs);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}

def LLM_MultiplyOp : LLM_Op<"multiply", [Pure, AllTypesMatch<["lhs", "result"]>]> {
  let summary = "Elementwise product, also with one factor a row";
  let description = [{
    - (C1) `rhs` has the shape of `lhs`, or 1 in place of its last dimension.

    ```mlir
    %y = llm.multiply %x, %gate : tensor<?x64xf32>, tensor<?x1xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$lhs, LLM_FloatTensor:$rhs);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_ScaleOp : LLM_Op<"scale", [Pure, SameOperandsAndResultType]> {
  let summary = "Product with a constant";
  let description = [{
    ```mlir
    %y = llm.scale %x by 0.5 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, F32Attr:$factor);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input `by` custom<Float>($factor) attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def LLM_SoftcapOp : LLM_Op<"softcap", [Pure, SameOperandsAndResultType]> {
  let summary = "`cap * tanh(x / cap)`";
  let description = [{
    - (C1) `cap` is positive.

    ```mlir
    %y = llm.softcap %logits at 30.0 : tensor<?x49152xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, F32Attr:$cap);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input `at` custom<Float>($cap) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def LLM_SelectRowsOp
    : LLM_Op<"select_rows", [Pure, InferTypeOpAdaptor]> {
  let summary = "Rows of the step whose results are wanted";
  let description = [{
    Before the final norm and the head, so that a prefill computes no `TxV` logits.
    Rows outside the input are clamped.

    ```mlir
    %y = llm.select_rows %x, %rows : tensor<?x576xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, LLM_I32Vector:$rows);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` type($input) `,` type($rows)";
}

def LLM_RouteOp
    : LLM_Op<"route", [Pure, InferTypeOpAdaptor]> {
  let summary = "The best k experts of each token, and their weights";
  let description = [{
    Scores are the softmax over all experts, or the sigmoid of each. The `top`
    experts have the largest score plus `bias`, ties to the lower id. Of `groups` equal
    groups only the `top_groups` best (by the sum of their two largest, or with `by_best`
    by their largest) take part. Weights are the scores, with `normalise` divided by their
    sum, times `scale`.

    - (C1) logits are `TxX`.
    - (C2) `0 < top <= X`.
    - (C3) the bias has `X` elements.
    - (C4) `groups` divides `X`, and `0 < top_groups <= groups`; both or neither, and
      `by_best` only with them.

    ```mlir
    %ids, %weights = llm.route %logits top 2 score sigmoid normalise : tensor<?x8xf32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$logits, Optional<LLM_FloatVector>:$bias, LLM_I64Attr:$top,
                       DefaultValuedAttr<LLM_ScoreKindAttr, "::mlir::llm::ScoreKind::Softmax">:$score,
                       UnitAttr:$normalise, OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<LLM_I64Attr>:$groups, OptionalAttr<LLM_I64Attr>:$top_groups,
                       UnitAttr:$by_best);
  let results = (outs RankedTensorOf<[I32]>:$ids, RankedTensorOf<[F32]>:$weights);
  let assemblyFormat = [{
    $logits `top` $top (`score` $score^)? (`normalise` $normalise^)?
    (`scale` `(` custom<Float>($scale)^ `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`groups` `(` $groups^ `)`)? (`top_groups` `(` $top_groups^ `)`)?
    (`by_best` $by_best^)? attr-dict `:` type($logits)
  }];
  let hasVerifier = 1;
}

def LLM_AdapterChoiceOp : LLM_Op<"adapter_choice", [Pure]> {
  let summary = "Which of several adapters a session uses, for each token";
  let description = [{
    The number of a session's adapter less one, and its gain; 0 and 0 where it uses none, so that what a product of
    chosen weights adds is nothing. All tokens of a step have the same. The number is part of a session's state, not of
    the function: see `sprig_session_set_adapter`.

    - (C1) `ids` and `gain` are `Tx1`, of i32 and f32.
    - (C2) there is at least one gain.

    ```mlir
    %ids, %gain = llm.adapter_choice %positions of %gains : tensor<?xi32>, tensor<2xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
    %a = llm.expert_linear %x, %ids, %A : tensor<?x64xf32>, tensor<?x1xi32>, tensor<2x8x64xf16> -> tensor<?x1x8xf32>
    %y = llm.expert_linear %a, %ids, %B combine(%gain : tensor<?x1xf32>) residual(%w : tensor<?x64xf32>)
        : tensor<?x1x8xf32>, tensor<?x1xi32>, tensor<2x64x8xf16> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_I32Vector:$positions, LLM_FloatVector:$gains);
  let results = (outs RankedTensorOf<[I32]>:$ids, RankedTensorOf<[F32]>:$gain);
  let assemblyFormat = [{
    $positions `of` $gains attr-dict `:` type($positions) `,` type($gains) `->` type($ids) `,` type($gain)
  }];
  let hasVerifier = 1;
}

def LLM_ExpertLinearOp : LLM_Op<"expert_linear", [Pure, AttrSizedOperandSegments]> {
  let summary = "Product with the weights of the chosen experts";
  let description = [{
    With `k` experts a token, `y[t,j] = weight[ids[t,j]] * x[t]` (`x` `TxK`) or
    `* x[t,j]` (`x` `TxkxK`). With `combine` the results of a token are summed, each
    times its weight: `y[t] = sum_j combine[t,j] * …`, and a residual is added. As with
    `llm.linear`, rows of one expert a token may be split in two dimensions.

    - (C1) the weight is `XxNxK`, all dimensions static.
    - (C2) `ids` is `Txk`.
    - (C3) `x` is `TxK` or `TxkxK`, or `TxHxE` with `H*E = K`.
    - (C4) the result is `TxkxN`, with `combine` `TxN` or `TxHxE` with `H*E = N`.
    - (C5) `combine` has the shape of `ids`.
    - (C6) the bias is `XxN`.
    - (C7) a residual has the shape of the result, and needs `combine`.

    ```mlir
    %u = llm.expert_linear %x, %ids, %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<8x128x64xf16> -> tensor<?x2x128xf32>
    %y = llm.expert_linear %a, %ids, %v combine(%p : tensor<?x2xf32>)
        : tensor<?x2x128xf32>, tensor<?x2xi32>, tensor<8x64x128xf16> -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_NumberTensor:$input, RankedTensorOf<[I32]>:$ids, LLM_NumberTensor:$weight,
                       Optional<RankedTensorOf<[F32]>>:$combine, Optional<LLM_FloatTensor>:$bias,
                       Optional<LLM_FloatTensor>:$residual);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $ids `,` $weight (`combine` `(` $combine^ `:` type($combine) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    attr-dict `:` type($input) `,` type($ids) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LLM_ELEMENTWISE_OPS_TD
