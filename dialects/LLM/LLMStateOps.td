// Key-value caches, and attention over them.
#ifndef LLM_STATE_OPS_TD
#define LLM_STATE_OPS_TD

include "dialects/LLM/LLMAttrs.td"
include "dialects/LLM/LLMTypes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LLM_KVResource : Resource<"::mlir::llm::KVResource">;
def LLM_KVRead : MemRead<LLM_KVResource>;
def LLM_KVWrite : MemWrite<LLM_KVResource>;

def LLM_KVCacheOp : LLM_Op<"kv_cache", [Symbol]> {
  let summary = "The key-value caches of equal layers";
  let description = [{
    - (C1) `count` is positive.

    ```mlir
    llm.kv_cache @kv : 30 x !llm.kv<3x64, f16, f16, 2048>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, LLM_I64Attr:$count, TypeAttrOf<LLM_KVType>:$type);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::llm::KVType getCacheType() { return ::llvm::cast<KVType>(getType()); }
  }];
}

def LLM_KVOp : LLM_Op<"kv", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Handle to one cache";
  let description = [{
    Pure: effects belong to the users of the handle.

    - (C1) `cache` names an `llm.kv_cache`.
    - (C2) `index` is below its count.
    - (C3) the handle has its type.

    ```mlir
    %kv = llm.kv @kv[7] : !llm.kv<3x64, f16, f16, 2048>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$cache, DefaultValuedAttr<LLM_I64Attr, "0">:$index);
  let results = (outs LLM_KVType:$handle);
  let assemblyFormat = "$cache `[` $index `]` attr-dict `:` type($handle)";
}

def LLM_KVAppendOp
    : LLM_Op<"kv_append", [AttrSizedOperandSegments, OneARow<"key", "positions", "i32">,
                           OptionalOneARow<"key", "slots", "i32">]> {
  let summary = "Put the keys and values of the step's tokens into a cache";
  let description = [{
    Token `t` goes to slot `positions[t]`; with slots to `slots[t]`, with a base (the
    nodes of a tree) to `base + t`. The slot remembers the position. A quantised
    cache quantises here.

    - (C1) keys are `TxGxE` as the cache has them.
    - (C2) values are `TxGxEV`; there are none where values are a prefix of the keys.
    - (C3) there are no slots beside a base.

    ```mlir
    llm.kv_append %kv, %k, %v at %positions : !llm.kv<3x64, f16, f16, 2048>, tensor<?x3x64xf32>, tensor<?x3x64xf32>
    llm.kv_append %kv, %k, %v at %positions slots(%s) : !llm.kv<3x64, f16, f16, 2048>, tensor<8x3x64xf32>, tensor<8x3x64xf32>
    llm.kv_append %kv, %k, %v at %positions base(%b) : !llm.kv<3x64, f16, f16, 2048>, tensor<8x3x64xf32>, tensor<8x3x64xf32>
    ```
  }];
  let arguments = (ins Arg<LLM_KVType, "", [LLM_KVWrite]>:$cache, LLM_FloatTensor:$key,
                       Optional<LLM_FloatTensor>:$value, LLM_I32Vector:$positions,
                       Optional<LLM_I32Vector>:$slots, Optional<LLM_I32Scalar>:$base);
  let assemblyFormat = [{
    $cache `,` $key (`,` $value^)? `at` $positions (`slots` `(` $slots^ `)`)?
    (`base` `(` $base^ `)`)? attr-dict
    `:` type($cache) `,` type($key) (`,` type($value)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$cache, "::mlir::Value":$key, "::mlir::Value":$value,
                   "::mlir::Value":$positions, CArg<"::mlir::Value", "{}">:$slots), [{
      build($_builder, $_state, cache, key, value, positions, slots, /*base=*/::mlir::Value());
    }]>,
  ];
  let hasVerifier = 1;
}

class LLM_AttentionBase<string mnemonic, list<Trait> traits = []>
    : LLM_Op<mnemonic, !listconcat([InferTypeOpAdaptor,
                                    OneARow<"query", "positions", "i32">], traits)> {
  dag attentionAttributes = (ins F32Attr:$scale, OptionalAttr<F32Attr>:$softcap,
                                 OptionalAttr<LLM_I64Attr>:$window, OptionalAttr<LLM_I64Attr>:$sinks);
  let results = (outs LLM_FloatTensor:$result);
  let hasVerifier = 1;
}

def LLM_AttentionOp : LLM_AttentionBase<"attention"> {
  let summary = "Attention of the step's queries over a cache";
  let description = [{
    For each query head `h`, over the keys `j` of head `h / (H/G)` that it sees:

    ```
    y[t,h] = softmax_j(softcap(scale * q[t,h].k[j]) + bias[h]*(pos_j - pos_t)) . v[j]
    ```

    A causal query sees positions up to its own; with `window(W)` only the last `W`
    of these, its own among them, and the first `sinks`. `chunked` attention sees
    the positions up to its own in its own chunk of `W`, `full` attention every
    position in the cache. `blocks` (`#llm.blocks`) hides further keys, whose blocks
    are skipped: they are not read; `first(F)` hides the positions below `F`. A query
    that sees nothing gives zeros. `bias` holds ALiBi slopes.

    With `integers` both products are of 8-bit integers, over a cache of such: a query
    is rounded as its keys were, with a scale a head; weights, times the scales of
    their values, are rounded to 127ths of the greatest in each block of 8 positions
    (from multiples of 8 on). The sum that they are divided by is not rounded.

    - (C1) `q` is `TxHxE` with the cache's `E`, and `G` divides `H`.
    - (C2) softcap is positive.
    - (C3) window is positive, sinks are not negative and need a window; a chunked
      mask needs a window and takes no sinks.
    - (C4) the bias has `H` elements.
    - (C5) a window is not longer than that of the cache.
    - (C6) the first position is positive.
    - (C7) integers need keys and values of `!llm.q<i8, *:f32>`.

    ```mlir
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
    %z = llm.attention %q, %kv at %positions scale(0.0625) softcap(50.0) window(512)
        : tensor<?x4x256xf32>, !llm.kv<1x256, f16, f16, 2048>
    %w = llm.attention %q, %kv at %positions scale(0.125) integers
        : tensor<?x9x64xf32>, !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>
    ```
  }];
  let arguments = !con((ins LLM_FloatTensor:$query, Arg<LLM_KVType, "", [LLM_KVRead]>:$cache,
                            LLM_I32Vector:$positions, Optional<LLM_FloatVector>:$bias),
                       attentionAttributes,
                       (ins DefaultValuedAttr<LLM_MaskKindAttr, "::mlir::llm::MaskKind::Causal">:$mask,
                            OptionalAttr<LLM_BlockMaskAttr>:$blocks,
                            OptionalAttr<LLM_I64Attr>:$first, UnitAttr:$integers));
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$query, "::mlir::Value":$cache, "::mlir::Value":$positions,
                   "::mlir::Value":$bias, "::mlir::FloatAttr":$scale, "::mlir::FloatAttr":$softcap,
                   "::mlir::IntegerAttr":$window, "::mlir::IntegerAttr":$sinks,
                   "::mlir::llm::MaskKindAttr":$mask, "::mlir::llm::BlockMaskAttr":$blocks), [{
      build($_builder, $_state, type, query, cache, positions, bias, scale, softcap, window, sinks, mask, blocks,
            /*first=*/::mlir::IntegerAttr(), /*integers=*/::mlir::UnitAttr());
    }]>,
  ];
  let assemblyFormat = [{
    $query `,` $cache `at` $positions (`bias` `(` $bias^ `:` type($bias) `)`)?
    `scale` `(` custom<Float>($scale) `)` (`softcap` `(` custom<Float>($softcap)^ `)`)?
    (`window` `(` $window^ `)`)? (`sinks` `(` $sinks^ `)`)? (`mask` $mask^)?
    (`blocks` $blocks^)? (`first` `(` $first^ `)`)? (`integers` $integers^)? attr-dict
    `:` type($query) `,` type($cache)
  }];
}

def LLM_TreeAttentionOp
    : LLM_AttentionBase<"tree_attention", [TypesMatchWith<
          "'mask' is two words a row", "query", "mask", "::mlir::llm::maskType($_self)">]> {
  let summary = "Attention of a tree of draft tokens over a cache";
  let description = [{
    As `llm.attention`, but what a query sees is: every slot below `base`, and slot
    `base + j` where bit `j` of its mask row is set; of these, by position, what the
    window and `blocks` show, from `first` on.

    - (C1) `q` is `TxHxE` with the cache's `E`, and `G` divides `H`.
    - (C2) softcap is positive.
    - (C3) window is positive, sinks are not negative and need a window.
    - (C4) the bias has `H` elements.
    - (C5) a window is not longer than that of the cache.
    - (C6) `T <= 64`.
    - (C7) the first position is positive.
    - (C8) integers need keys and values of `!llm.q<i8, *:f32>`.

    ```mlir
    %y = llm.tree_attention %q, %kv base %base mask %mask at %positions scale(0.125)
        : tensor<8x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
    ```
  }];
  let arguments = !con((ins LLM_FloatTensor:$query, Arg<LLM_KVType, "", [LLM_KVRead]>:$cache,
                            LLM_I32Scalar:$base, RankedTensorOf<[I32]>:$mask,
                            LLM_I32Vector:$positions, Optional<LLM_FloatVector>:$bias),
                       attentionAttributes,
                       (ins OptionalAttr<LLM_BlockMaskAttr>:$blocks, OptionalAttr<LLM_I64Attr>:$first,
                            UnitAttr:$integers));
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$query, "::mlir::Value":$cache, "::mlir::Value":$base,
                   "::mlir::Value":$mask, "::mlir::Value":$positions, "::mlir::Value":$bias,
                   "::mlir::FloatAttr":$scale, "::mlir::FloatAttr":$softcap, "::mlir::IntegerAttr":$window,
                   "::mlir::IntegerAttr":$sinks), [{
      build($_builder, $_state, type, query, cache, base, mask, positions, bias, scale, softcap, window, sinks,
            /*blocks=*/::mlir::llm::BlockMaskAttr(), /*first=*/::mlir::IntegerAttr(),
            /*integers=*/::mlir::UnitAttr());
    }]>,
  ];
  let assemblyFormat = [{
    $query `,` $cache `base` $base `mask` $mask `at` $positions
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    `scale` `(` custom<Float>($scale) `)` (`softcap` `(` custom<Float>($softcap)^ `)`)?
    (`window` `(` $window^ `)`)? (`sinks` `(` $sinks^ `)`)? (`blocks` $blocks^)? (`first` `(` $first^ `)`)?
    (`integers` $integers^)? attr-dict `:` type($query) `,` type($cache)
  }];
}

def LLM_KVCompactOp : LLM_Op<"kv_compact", []> {
  let summary = "Move the accepted tokens of a tree behind the prefix";
  let description = [{
    Slot `base + accepted[i]` moves to `base + 1 + i` for `i < count`, scales and
    positions with it; `accepted` ascends. Node 0, at `base`, is where it belongs.

    - (C1) `accepted` has at most 64 elements.

    ```mlir
    llm.kv_compact %kv base %base accepted %accepted count %count : !llm.kv<3x64, f16, f16, 2048>, tensor<8xi32>
    ```
  }];
  let arguments = (ins Arg<LLM_KVType, "", [LLM_KVRead, LLM_KVWrite]>:$cache, LLM_I32Scalar:$base,
                       LLM_I32Vector:$accepted, LLM_I32Scalar:$count);
  let assemblyFormat = [{
    $cache `base` $base `accepted` $accepted `count` $count attr-dict
    `:` type($cache) `,` type($accepted)
  }];
  let hasVerifier = 1;
}

def LLM_PreviousRowsOp
    : LLM_Op<"previous_rows", [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>,
                               OneARow<"input", "positions", "i32">,
                               OptionalOneARow<"input", "parents", "i32">]> {
  let summary = "The row of the token before each token of the step";
  let description = [{
    Row `t` of the result is row `t - 1` of the input, or in a tree that of the
    node's parent; for the first token of the step, and for roots, the row that the
    token before it had when it was computed, which the cache remembers beside the
    keys of its slot. At position 0, and where nothing is remembered, it is zeros.
    The rows of the input are remembered. So a layer that reads a token together
    with what the model left for the token before it has a cache that is filled as
    the model's own.

    - (C1) the input is `TxD`.
    - (C2) there are parents just where there is a base.

    ```mlir
    %p = llm.previous_rows %h, %kv at %positions : tensor<?x576xf32>, !llm.kv<3x64, f16, f16, 2048>
    %q = llm.previous_rows %h, %kv at %positions parents(%parents) base(%b)
        : tensor<?x576xf32>, !llm.kv<3x64, f16, f16, 2048>
    ```
  }];
  let arguments = (ins LLM_FloatTensor:$input, Arg<LLM_KVType, "", [LLM_KVRead, LLM_KVWrite]>:$cache,
                       LLM_I32Vector:$positions, Optional<LLM_I32Vector>:$parents,
                       Optional<LLM_I32Scalar>:$base);
  let results = (outs LLM_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $cache `at` $positions (`parents` `(` $parents^ `)`)?
    (`base` `(` $base^ `)`)? attr-dict `:` type($input) `,` type($cache)
  }];
  let hasVerifier = 1;
}

def LLM_KVEvictOp : LLM_Op<"kv_evict", [AttrSizedOperandSegments]> {
  let summary = "Keep only some slots of a cache";
  let description = [{
    With `keep`, slot `keep[i]` moves to slot `i`; `keep` ascends. Positions stay with
    their keys.

    With `sinks` and `drop`, slots `sinks` to `sinks + drop - 1` go (StreamingLLM, arXiv
    2309.17453): those behind them move up by `drop`, and so do their positions, so
    that slots and positions stay the same and no position grows past the context.
    Keys that `llm.rope` turned are turned back by `drop` positions: `base`,
    `frequencies`, `dims`, `scale` and `interleaved` are those of that rotation, and
    none of them stands for keys that were not turned. `hadamard` is the block of an
    `llm.hadamard` that keys went through behind it. A quantised cache quantises again.

    - (C1) there are not more slots to keep than the cache has.
    - (C2) there is `keep`, or there are `sinks` and `drop`; slots that are kept one
      by one are not turned.
    - (C3) there are not a base and frequencies; a base is positive; `dims` is even,
      positive and at most `E`.
    - (C4) frequencies have `dims/2` elements, or rows of so many, of which the first
      counts.
    - (C5) a Hadamard block is a power of two that divides `E`, behind a rotation.

    ```mlir
    llm.kv_evict %kv keep %keep : !llm.kv<3x64, f16, f16, 2048>, tensor<?xi32>
    llm.kv_evict %kv sinks(%s) drop(%d) base(10000.0) : !llm.kv<3x64, f16, f16, 2048>
    ```
  }];
  let arguments = (ins Arg<LLM_KVType, "", [LLM_KVRead, LLM_KVWrite]>:$cache, Optional<LLM_I32Vector>:$keep,
                       Optional<LLM_I32Scalar>:$sinks, Optional<LLM_I32Scalar>:$drop,
                       Optional<RankedTensorOf<[F32, F64]>>:$frequencies, OptionalAttr<F32Attr>:$base,
                       OptionalAttr<LLM_I64Attr>:$dims, OptionalAttr<F32Attr>:$scale,
                       UnitAttr:$interleaved, OptionalAttr<LLM_I64Attr>:$hadamard);
  let assemblyFormat = [{
    $cache (`keep` $keep^)? (`sinks` `(` $sinks^ `)`)? (`drop` `(` $drop^ `)`)?
    (`base` `(` custom<Float>($base)^ `)`)? (`frequencies` `(` $frequencies^ `:` type($frequencies) `)`)?
    (`dims` `(` $dims^ `)`)? (`scale` `(` custom<Float>($scale)^ `)`)? (`interleaved` $interleaved^)?
    (`hadamard` `(` $hadamard^ `)`)? attr-dict `:` type($cache) (`,` type($keep)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Keys are turned by what they are nearer to the first.
    bool turns() { return getBase() || getFrequencies(); }
    /// Elements of a head that turn.
    int64_t getTurnedDims();
  }];
}

#endif // LLM_STATE_OPS_TD
