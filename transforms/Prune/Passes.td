// Passes that take something out of a model for good.
#ifndef SPRIG_TRANSFORMS_PRUNE_PASSES_TD
#define SPRIG_TRANSFORMS_PRUNE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FactorizePass : Pass<"llm-factorize", "ModuleOp"> {
  let summary = "Products of low rank";
  let description = [{
    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<1536x576xf16> -> tensor<?x1536xf32>
    // ==> ratio=0.2, rank 320
    %r = llm.linear %x, %down : tensor<?x576xf32>, tensor<320x576xf16> -> tensor<?x320xf32>
    %y = llm.linear %r, %up : tensor<?x320xf32>, tensor<1536x320xf16> -> tensor<?x1536xf32>
    ```

    The rank is the largest multiple of 32 whose two factors have `1 - ratio` of the numbers; a product that would not
    become smaller is left. The factors are the nearest by what they do to the inputs of the calibration text
    (`SVD(W L)` with `L Lᵀ = E[x xᵀ]`, arXiv 2403.07378), or with `whiten=false` by their numbers, and are written in the
    format that the weight had. With `head` the output table is factorised, too; where it is also the embedding that
    stays as it is.
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of a product's numbers, that go">,
    Option<"whiten", "whiten", "bool", /*default=*/"true", "Weigh directions by a calibration text">,
    Option<"head", "head", "bool", /*default=*/"false", "Products outside layers, too">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneFFNPass : Pass<"llm-prune-ffn", "ModuleOp"> {
  let summary = "Feed-forward blocks with fewer channels";
  let description = [{
    A channel is a row of the gate and of the up product and a column of the down product; all three go together.

    ```mlir
    %g = llm.linear %x, %gate : tensor<?x576xf32>, tensor<1536x576xf16> -> tensor<?x1536xf32>
    %u = llm.linear %x, %up : ...
    %a = llm.gated_activation silu %g, %u : tensor<?x1536xf32>
    %y = llm.linear %a, %down : tensor<?x1536xf32>, tensor<576x1536xf16> -> tensor<?x576xf32>
    // ==> ratio=0.25
    %gate1 = llm.gather %gate, %channels axis 0 : tensor<1536x576xf16>, tensor<1152xi32>
    %g = llm.linear %x, %gate1 : tensor<?x576xf32>, tensor<1152x576xf16> -> tensor<?x1152xf32>
    ...
    %down1 = llm.weight @weights["...pruned"] : tensor<576x1152xf16>
    ```

    Blocks without a gate, and those of experts, lose channels likewise. What is removed is rounded down to whole blocks
    of the down product's format, which is kept, and to whole units (`unit=32` leaves floats as `llm-quantize-weights` can
    take them). Scores of a channel: `magnitude` (squares of its weights), `wanda`
    (squares of its down column, times those of what meets it), `random`. With `recover` the columns that stay are fitted
    anew, by least squares over the calibration text, to give what all gave.
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of the channels, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Channels that are left are a multiple of this at least, for a format that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def MergeKVHeadsPass : Pass<"llm-merge-kv-heads", "ModuleOp"> {
  let summary = "One key-value head in the place of several, for all query heads of theirs";
  let description = [{
    Key-value heads that follow one another become one, so that a model of many has grouped queries (Ainslie et al., arXiv
    2305.13245, who take means and train on). Here nothing is trained: the new head is what says least wrong of all of
    them, by the second moments of what they are made of, and the products of queries and outputs are refitted to it in
    closed form. Pairs of channels that a rotation turns are complex numbers, and merged by complex factors, which the
    rotation lets pass; values, and keys that do not turn, by principal directions.

    ```mlir
    llm.kv_cache @kv : 32 x !llm.kv<32x128, f16, f16, 4096>
    // ==> heads=8
    llm.kv_cache @kv : 32 x !llm.kv<8x128, f16, f16, 4096>
    ```

    No query head goes. Attention with a norm between its products and their rotation is left, with a remark.
  }];
  let options = [
    Option<"heads", "heads", "int64_t", /*default=*/"0", "Key-value heads that stay; must divide those there are">,
    Option<"whiten", "whiten", "bool", /*default=*/"true", "Read the calibration text; else all inputs count alike">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneHeadDimPass : Pass<"llm-prune-head-dim", "ModuleOp"> {
  let summary = "Narrower attention heads";
  let description = [{
    A channel of queries and keys is a row of both products and an element of their norms' factors; where a rotation
    turns it, it goes with the other of its pair, and the frequencies that are left are written out. A channel of values
    is a row of the value product and a column of the output product. The scale of the scores, and what norms divide by,
    stay.

    ```mlir
    %q = llm.rope %x at %positions base(1.0e+05) : tensor<?x9x64xf32>
    // ==> ratio=0.25
    %q = llm.rope %x1 at %positions frequencies(%f : tensor<24xf64>) dims(48) : tensor<?x9x48xf32>
    ```

    A pair is worth the mean square of its part of a query times that of a key (`wanda`), the squares of its weights
    (`magnitude`), or what chance says (`random`). Values are chosen and made up for as channels of `llm-prune-ffn` are;
    queries and keys have no product behind them that could make up for what goes.
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of each head's channels, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Channels that are left are a multiple of this at least, for a format that follows">,
    Option<"cacheUnit", "cache-unit", "int64_t", /*default=*/"1",
           "Widths of keys and of values are a multiple of this at least, for a format of caches that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneHeadsPass : Pass<"llm-prune-heads", "ModuleOp"> {
  let summary = "Fewer query heads, with all key-value heads";
  let description = [{
    Of the query heads that share a key-value head as many go everywhere, so that the rest still share it: rows of the
    query product, columns of the output product, slopes of ALiBi.

    ```mlir
    %q = llm.linear %x, %w : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x9x64xf32>
    // ==> ratio=0.34, three key-value heads
    %q = llm.linear %x, %w1 : tensor<?x576xf32>, tensor<384x576xf16> -> tensor<?x6x64xf32>
    ```

    Scores and recovery are those of `llm-prune-ffn`, over the columns of the output product. With a unit heads go as
    many at a time as take a multiple of so many columns from that product (`unit=32`: floats that `llm-quantize-weights`
    can take).
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of the query heads of each key-value head, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Columns of the output product that go are a multiple of this, for a format that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneKVHeadsPass : Pass<"llm-prune-kv-heads", "ModuleOp"> {
  let summary = "Fewer key-value heads, and their query heads";
  let description = [{
    A key-value head goes with the query heads that read it and their columns of the output product. The cache shrinks
    with it: layers that differ get caches of their own.

    ```mlir
    llm.kv_cache @kv : 30 x !llm.kv<3x64, f16, f16, 2048>
    // ==> ratio=0.34
    llm.kv_cache @kv : 30 x !llm.kv<2x64, f16, f16, 2048>
    ```

    Scores and recovery are those of `llm-prune-heads`, summed over the query heads. The unit is theirs, too.
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of the key-value heads, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Columns of the output product that go are a multiple of this, for a format that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneLayersPass : Pass<"llm-prune-layers", "ModuleOp"> {
  let summary = "Fewer layers";
  let description = [{
    ```mlir
    %y = llm.layer 3 "decoder" (%h = %x : tensor<?x576xf32>) { ... }
    %z = llm.layer 4 "decoder" (%h = %y : tensor<?x576xf32>) { ... }
    // ==> where layer 3 says least
    %z = llm.layer 4 "decoder" (%h = %x : tensor<?x576xf32>) { ... }
    ```

    The layers of the least influence go: `1 - E cos(x, layer(x))` over the calibration text (arXiv 2403.03853), or ones
    chosen at `random`. With `recover` the last product of the layer before a removed span is changed by the least
    squares of what the span added, in the format that it has. Their caches go by `llm-remove-dead-state`.
  }];
  let options = [
    Option<"count", "count", "int64_t", /*default=*/"0", "Layers that go">,
    ListOption<"remove", "remove", "int64_t", "Places of the layers that go, from 0; instead of count and score">,
    Option<"score", "score", "std::string", /*default=*/"\"influence\"", "influence or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the product before a removed span">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneMasksPass : Pass<"llm-prune-masks", "ModuleOp"> {
  let summary = "What masks from a file call zero goes";
  let description = [{
    For masks that were learned elsewhere. The file is JSON: for each block in program order a list with a number for
    each of its parts, zero for what goes; `null` for a block that stays as it is.

    ```json
    {"channels": [[1, 0, 1, ...], null, ...], "heads": [[1, 1, 0, ...], ...], "kv_heads": [...], "layers": [1, 1, 0, ...]}
    ```

    Channels are those of feed-forward blocks; of query heads as many of each key-value head have to stay, and their
    masks are of those that `kv_heads` leaves. Layers, a number for each, go last. A mask of another length, for another number of blocks or one that keeps
    nothing is refused, and nothing is written; with `unit=32` also one that leaves a weight of rows that
    `llm-quantize-weights` cannot take. What is left is fitted as in `llm-prune-ffn`.
  }];
  let options = [
    Option<"file", "file", "std::string", /*default=*/"", "The masks, as JSON">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Columns that masks leave have to be a multiple of this, for a format that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneToShapePass : Pass<"llm-prune-to-shape", "ModuleOp"> {
  let summary = "A model of a given shape";
  let description = [{
    Says what stays rather than what goes, one number for all layers or one for each: `layers`, then `kv-heads`, `heads`,
    `head-dim`, `ffn` and `width`, each by the pass of its name. What is not given stays as it is. Refused are shapes that
    break grouped heads or the pairs of a rotation, and lists of another length than the layers.

    ```
    llm-prune-to-shape{layers=26 heads=6 ffn=1280}
    llm-prune-to-shape{ffn=1024,1536,1536,1280}
    ```
  }];
  let options = [
    Option<"layers", "layers", "int64_t", /*default=*/"-1", "That stay; -1: all">,
    ListOption<"kvHeads", "kv-heads", "int64_t", "That stay, with their query heads">,
    ListOption<"heads", "heads", "int64_t", "Query heads that stay">,
    ListOption<"headDim", "head-dim", "int64_t", "Width of a head that stays">,
    ListOption<"ffn", "ffn", "int64_t", "Feed-forward channels that stay">,
    Option<"width", "width", "int64_t", /*default=*/"-1", "Of the residual, that stays; -1: all">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def PruneVocabularyPass : Pass<"llm-prune-vocabulary", "ModuleOp"> {
  let summary = "Only the tokens that the tokenizer keeps";
  let description = [{
    The rows of the embedding and of the head become those that `keep` of `llm.tokenizer` lists, in its order; without a
    list nothing changes. `llm-compile --prune=vocabulary:FILE` makes a list that is whole: what the tokens of a file are
    merged from, every byte, and the control tokens with it.

    ```mlir
    llm.tokenizer @tokenizer {source = @model, keep = array<i32: 0, 1, 17, 200>}
    %x = llm.embedding %ids, %table : tensor<49152x576xf16> -> tensor<?x576xf32>
    // ==>
    %few = llm.gather %table, %keep axis 0 : tensor<49152x576xf16>, tensor<4xi32>
    %x = llm.embedding %ids, %few : tensor<4x576xf16> -> tensor<?x576xf32>
    ```
  }];
  let dependentDialects = ["LLMDialect"];
}

def PruneWidthPass : Pass<"llm-prune-width", "ModuleOp"> {
  let summary = "A narrower residual";
  let description = [{
    A channel of the residual is a column of the embedding and of every product that reads it, a row of every product
    that adds to it, and an element of every norm's factor. Norms go on dividing by the width that was: a channel that
    is gone counts as zero.

    ```mlir
    %n = llm.rms_norm %x gamma(%g : tensor<576xf32>) eps(1.0e-05) : tensor<?x576xf32>
    // ==> ratio=0.12
    %n = llm.rms_norm %x gamma(%g1 : tensor<512xf32>) eps(1.0e-05) count(576) : tensor<?x512xf32>
    ```

    Scores are those of `llm-prune-ffn`, over all products that read the residual, each counting the same. With `recover`
    their columns are fitted anew, but for a table that is also the embedding.
  }];
  let options = [
    Option<"ratio", "ratio", "double", /*default=*/"0", "Of the channels, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"wanda\"", "magnitude, wanda or random">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Channels that are left are a multiple of this at least, for a format that follows">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def SearchShapePass : Pass<"llm-search-shape", "ModuleOp"> {
  let summary = "The shape that loses least under a budget";
  let description = [{
    Feed-forward channels and query heads go where they say least for their bytes, whatever the layer, until the budget
    is met. Layers come out with different shapes. The budget is a share of the bytes of all weights, the milliseconds
    that a decode step may take to read them on a target, or a share of what a token takes in the caches, for which
    key-value heads go with their query heads.

    What a unit says is what the output of its block loses without it over the calibration text, token by token as a share
    of the residual that the layer leaves. That is true within a layer and a guess across them, so bands of layers are
    tried out: a copy of the model is cut there alone, fitted, and its guesses are compared with the model's own. Shapes
    between the same share everywhere and what the scores say are then tried whole, and the best stays.

    ```
    llm-search-shape{bytes=0.75}
    llm-search-shape{milliseconds=4 target=rdna3}
    llm-search-shape{kv-bytes=0.67}
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "double", /*default=*/"1", "Share of the weights' bytes that stays">,
    Option<"milliseconds", "milliseconds", "double", /*default=*/"-1",
           "Of a decode step on the target; -1: no such budget">,
    Option<"kvBytes", "kv-bytes", "double", /*default=*/"1", "Share of the bytes of a token's keys and values that stays">,
    Option<"target", "target", "std::string", /*default=*/"\"\"",
           "A profile, by name or file, for milliseconds; generic where none is named">,
    Option<"recover", "recover", "bool", /*default=*/"true", "Fit the columns that stay">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"unit", "unit", "int64_t", /*default=*/"1",
           "Channels that are left are a multiple of this at least, for a format that follows">,
    Option<"trialTokens", "trial-tokens", "int64_t", /*default=*/"6144",
           "Of the text, for each trial: two thirds to fit, one to judge; 0: scores alone decide">,
    Option<"bands", "bands", "int64_t", /*default=*/"6", "Of layers that are tried out one by one, for each kind of unit">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def SparsifyPass : Pass<"llm-sparsify", "ModuleOp"> {
  let summary = "Weights with zeros in a pattern, stored without them";
  let description = [{
    Of each 4 or 8 neighbours in a row of a weight half stay. What is stored are their codes, and patterns that say which
    they are: 3.25 bits a number of 2:4 with 4 bits and a scale for 64, where all of them take 4.25.

    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<1536x576xf16> -> tensor<?x1536xf32>
    // ==> pattern=2:4 bits=4
    %c = llm.weight @weights["blk.0.ffn_up.weight.codes"] : tensor<1536x144xi8>
    %s = llm.weight @weights["blk.0.ffn_up.weight.scales"] : tensor<1536x9xf16>
    %p = llm.weight @weights["blk.0.ffn_up.weight.patterns"] : tensor<1536x54xi8>
    %q = llm.assemble %c scales(%s : tensor<1536x9xf16>) patterns(%p : tensor<1536x54xi8>)
        : tensor<1536x144xi8> -> tensor<1536x576x!llm.q<i4, 2:4, 64:f16>, #llm.layout<packed>>
    %w = llm.dequantize %q : ... -> tensor<1536x576xf32>
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<1536x576xf32> -> tensor<?x1536xf32>
    ```

    - `magnitude`: the largest stay.
    - `wanda`: the largest times the norm of what meets them (arXiv 2306.11695).
    - `sparsegpt`: column after column, what costs least once all that follows has made up for it (arXiv 2301.00774);
      numbers are rounded on the way.

    With `bits=16` numbers are written as floats, for a quantise step that follows: `llm-quantize-weights` finds the
    zeros, keeps them and stores the rest likewise. A ratio instead of a pattern makes that share zero wherever it costs
    least, in blocks that stay as they were: good for judging a pattern, but no byte and no instruction less. Products
    whose rows are not whole units of 32 numbers are left.
  }];
  let options = [
    Option<"pattern", "pattern", "std::string", /*default=*/"\"2:4\"", "2:4, 4:8, or a ratio of the numbers, that go">,
    Option<"score", "score", "std::string", /*default=*/"\"sparsegpt\"", "magnitude, wanda or sparsegpt">,
    Option<"bits", "bits", "unsigned", /*default=*/"0",
           "Of a number: 4 or 8, 16 for floats; 0: 4 where the weight had up to 4, else 8">,
    Option<"group", "group", "int64_t", /*default=*/"64",
           "Numbers of a row that share a scale, a multiple of 32; 0: all of them">,
    Option<"symmetric", "symmetric", "bool", /*default=*/"true", "Without zero points">,
    Option<"head", "head", "bool", /*default=*/"false", "Also products outside layers, such as the head">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"damping", "damping", "double", /*default=*/"0.01",
           "sparsegpt: what is added to the diagonal of the second moments, times its mean">,
    Option<"replay", "replay", "bool", /*default=*/"false", "Layers see what became of those before them">,
  ];
  let dependentDialects = ["LLMDialect"];
}

#endif // SPRIG_TRANSFORMS_PRUNE_PASSES_TD
