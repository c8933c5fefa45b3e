// Sampling, and trees of draft tokens.
#ifndef LLM_SPECULATION_OPS_TD
#define LLM_SPECULATION_OPS_TD

include "dialects/LLM/LLMTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLM_SampleOp
    : LLM_Op<"sample", [Pure, OneARow<"logits", "positions", "i32">, OneARow<"logits", "tokens", "i32">]> {
  let summary = "One token from each row of logits";
  let description = [{
    `parameters` are eight words: seed (low, high), temperature (0 is greedy), top-k,
    top-p, min-p, repeat penalty, and how many tokens of the history it looks back;
    temperature, top-p, min-p and the penalty are the bits of an f32. `history` holds
    the token at each position, `positions` that of the token to be drawn: noise is
    keyed by (seed, position). `docs/sampling.md` defines every bit.

    - (C1) logits are `TxV`.

    ```mlir
    %tokens = llm.sample %logits, %parameters, %history at %positions : tensor<1x49152xf32>, tensor<2048xi32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$logits, LLM_SampleParameters:$parameters, LLM_I32Vector:$history,
                       LLM_I32Vector:$positions);
  let results = (outs LLM_I32Vector:$tokens);
  let assemblyFormat = [{
    $logits `,` $parameters `,` $history `at` $positions attr-dict
    `:` type($logits) `,` type($history)
  }];
  let hasVerifier = 1;
}

def LLM_TreeMaskOp : LLM_Op<"tree_mask", [Pure, InferTypeOpAdaptor]> {
  let summary = "Ancestor masks and depths of a draft-token tree";
  let description = [{
    Bit `j` of row `i` is set when node `j` is node `i` or one of its ancestors;
    a row is two 32-bit words, low word first. The depth of a root is 0, or with a
    base the base: then depths are positions.

    - (C1) `T` <= 64.
    - (C2) constant parents are topological: `parents[i] < i`; -1 marks a root.

    ```mlir
    %mask, %depths = llm.tree_mask %parents : tensor<8xi32>
    %m, %positions = llm.tree_mask %parents base(%base) : tensor<8xi32>
    ```
  }];
  let arguments = (ins LLM_I32Vector:$parents, Optional<LLM_I32Scalar>:$base);
  let results = (outs RankedTensorOf<[I32]>:$mask, LLM_I32Vector:$depths);
  let assemblyFormat = "$parents (`base` `(` $base^ `)`)? attr-dict `:` type($parents)";
  let hasVerifier = 1;
}

def LLM_TreeVerifyOp
    : LLM_Op<"tree_verify", [Pure, InferTypeOpAdaptor,
                             OneARow<"logits", "tokens", "i32">, OneARow<"logits", "parents", "i32">]> {
  let summary = "The path through a draft tree that sampling would have taken";
  let description = [{
    Draws a token at each node as `llm.sample` does, along the node's own path (node
    `i` draws for position `base + depth + 1`, and its history ends with its ancestors),
    and walks from node 0 to the child that has the token drawn, until there is none.
    `accepted` are the nodes walked through after node 0, in order, then -1; `count`
    their number, `bonus` the token drawn last. `docs/sampling.md` defines every bit.

    - (C1) logits are `TxV`, `T <= 64`.

    ```mlir
    %accepted, %count, %bonus = llm.tree_verify %logits, %tokens, %parents, %parameters, %history base %base
        : tensor<8x49152xf32>, tensor<2048xi32>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$logits, LLM_I32Vector:$tokens, LLM_I32Vector:$parents,
                       LLM_SampleParameters:$parameters, LLM_I32Vector:$history, LLM_I32Scalar:$base);
  let results = (outs LLM_I32Vector:$accepted, LLM_I32Vector:$count, LLM_I32Vector:$bonus);
  let assemblyFormat = [{
    $logits `,` $tokens `,` $parents `,` $parameters `,` $history `base` $base attr-dict
    `:` type($logits) `,` type($history)
  }];
  let hasVerifier = 1;
}

#endif // LLM_SPECULATION_OPS_TD
