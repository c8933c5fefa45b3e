// Passes that make the functions by which tokens are guessed and verified.
#ifndef SPRIG_TRANSFORMS_SPECULATION_PASSES_TD
#define SPRIG_TRANSFORMS_SPECULATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttachHeadsPass : Pass<"llm-attach-heads", "ModuleOp"> {
  let summary = "Heads that guess from the last hidden state";
  let description = [{
    Reads a safetensors file of head weights and adds a function for each guess. What the last layer left for the last
    token is the argument `%hidden`; weights of the model that heads need, such as its final norm, are shared.

    Heads in the manner of Medusa (arXiv 2401.10774; keys `0.0.linear.weight`, `0.0.linear.bias`, …, `0.1.weight`): one
    for each token ahead, blocks `x + silu(W x + b)` and a table of their own (or, where a file has none, the model's).

    ```mlir
    func.func @guess_heads_0(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                             %hidden: tensor<?x576xf32>) -> tensor<?x49152xf32>
        attributes {llm.draft = {description = "medusa:3", hidden = "target", name = "heads", repeats = false}} {
      %x = llm.rms_norm %hidden gamma(%gamma : tensor<576xf32>) eps(1.0e-05) : tensor<?x576xf32>
      %y = llm.linear %x, %w bias(%b : tensor<576xf32>) : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
      %z = llm.activation silu %y : tensor<?x576xf32>
      %s = llm.add %x, %z : tensor<?x576xf32>
      %logits = llm.linear %s, %table : tensor<?x576xf32>, tensor<49152x576xf16> -> tensor<?x49152xf32>
      return %logits : tensor<?x49152xf32>
    }
    ```

    Ridge heads (`llm-fit-heads`; keys `ridge.hidden.weight`, `ridge.embedding.weight`, `ridge.bias`): the next hidden
    state from this one and the token after it, `W_h norm(h) + W_e emb(x) + b`, which the model's final norm and head
    then read; the second function goes on from what the first made.

    EAGLE heads (arXiv 2401.15077, and EAGLE-2; keys `fc.weight`, `layers.0.…`, with `config.json` beside the file) and,
    with `file=mtp`, the layer of the model's own checkpoint that predicts the token after the next (MiMo, DeepSeek-V3)
    have a layer and a cache of their own: from the next token and the hidden state behind the model's last norm they
    make that of the next position, which the table of the model reads and the next guess starts from.

    ```mlir
    llm.kv_cache @heads_kv : !llm.kv<3x64, f16, f16, 2048>
    func.func @guess_heads_0(...) -> (tensor<?x49152xf32>, tensor<?x576xf32>)
        attributes {llm.draft = {description = "eagle", hidden = "target", name = "heads", repeats = true}} {
      %f = llm.rms_norm %hidden gamma(%gamma : tensor<576xf32>) eps(1.0e-05) : tensor<?x576xf32>
      %e = llm.embedding %ids, %table : ...
      %a = llm.linear %e, %fc_left : ...
      %x = llm.linear %f, %fc_right residual(%a : ...) : ...
      %y = llm.layer 0 "decoder" (%h = %x : tensor<?x576xf32>) { ... llm.attention ... first(1) ... }
      %logits = llm.linear %y, %table : ...
      return %logits, %y : tensor<?x49152xf32>, tensor<?x576xf32>
    }
    ```

    EAGLE-3's (arXiv 2503.01840; `midlayer.…`, `d2t`) read what layers 2, L / 2 and L - 3 of the model do, which
    `@forward` puts together in one product, and have a table of their own for some of the tokens (`llm.gather` of its
    logits).

    `@forward` fills the cache as it fills its own: behind its last layer it takes the hidden state of the token before
    each (`llm.previous_rows`), and appends the layer's keys and values. So prompts, decode steps and the nodes of trees
    leave what is true, and guesses are overwritten. Slot 0 has no token before it, and is never seen (`first(1)`).

    Heads of another width, of which a tensor is missing, or of another kind are errors that name the tensor.
  }];
  let options = [
    Option<"file", "file", "std::string", /*default=*/"\"\"", "The safetensors file, the folder it is in, or `mtp`">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def MakeDraftPass : Pass<"llm-make-draft", "ModuleOp"> {
  let summary = "Make a cheaper function that guesses what @forward says";
  let description = [{
    Adds `@guess_self` beside `@forward`: the same function without some of its layers, or after other passes. It
    reads and writes the same caches, so that it sees all that the model has seen, and has the same weights wherever no
    pass changed them.

    ```mlir
    func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32> {
      %1 = llm.layer 0 "decoder" (%h = %0 : tensor<?x576xf32>) { ... }
      %2 = llm.layer 1 "decoder" (%h = %1 : tensor<?x576xf32>) { ... }
      %3 = llm.layer 2 "decoder" (%h = %2 : tensor<?x576xf32>) { ... }
    // ==> layers=1, and also
    func.func @guess_self(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32>
        attributes {llm.draft = {description = "skip:1", name = "self", repeats = true}} {
      %1 = llm.layer 0 "decoder" (%h = %0 : tensor<?x576xf32>) { ... }
      %3 = llm.layer 2 "decoder" (%h = %1 : tensor<?x576xf32>) { ... }
    ```

    Which layers: `layers`, or `skip` of them. With a calibration text those of the least influence and the run of layers
    that has the least together are tried, and the ones stay whose arg-max agrees with that of the model most often over
    the time that the rest takes; `skip=-1` tries several numbers of layers. A guess costs what it reads, and a chain of
    them `Σ agreement^k` tokens: what is measured is the most tokens a model's step that any chain brings. Without a text
    the layers are every second one, from the end of the second third backwards.

    `passes` are a pipeline that runs on a copy of the module, such as `llm-prune-ffn{ratio=0.5}`, of which only the
    function and its new weights are kept. It must leave the caches as they are.
  }];
  let options = [
    Option<"skip", "skip", "int64_t", /*default=*/"0", "Layers that are left out; -1: as many as pay most">,
    ListOption<"layers", "layers", "int64_t", "The layers that are left out, by index">,
    Option<"passes", "passes", "std::string", /*default=*/"\"\"", "Passes that the copy gets">,
    Option<"note", "note", "std::string", /*default=*/"\"\"", "What `passes` do, in short">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"256", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"128", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def MakeEvictPass : Pass<"llm-make-evict", "ModuleOp"> {
  let summary = "Make the function that makes room in a full context";
  let description = [{
    Adds `@evict` beside `@forward`: of every cache that a function of the module fills, the first `sinks` slots stay,
    the next `drop` go, and those behind them move up, turned back by as many positions as the rotation of the keys says
    (docs/endless.md).

    ```mlir
    func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32> {
      %k = llm.rope %x at %positions base(10000.0) : tensor<?x3x64xf32>
      %kv = llm.kv @kv[0] : !llm.kv<3x64, f16, f16, 2048>
      llm.kv_append %kv, %k, %v at %positions : ...
    // ==> and also
    func.func @evict(%sinks: tensor<1xi32>, %drop: tensor<1xi32>) {
      %kv = llm.kv @kv[0] : !llm.kv<3x64, f16, f16, 2048>
      llm.kv_evict %kv sinks(%sinks) drop(%drop) base(10000.0) : !llm.kv<3x64, f16, f16, 2048>
    ```

    Run it last, on the functions that lowering gets. Errors: positions that are learned (an embedding of them cannot be
    taken out of a key), rotations of which only a part of a key comes, and those whose frequencies change within the
    context; slots that are not the positions.
  }];
  let options = [
    Option<"context", "context", "int64_t", /*default=*/"0", "Slots of the caches; 0: as the module says">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def TreeVerifyPass : Pass<"llm-tree-verify", "ModuleOp"> {
  let summary = "Make the function that verifies a tree of draft tokens";
  let description = [{
    Adds `@verify` beside `@forward`: the same layers over the nodes of a tree, whose tokens are sampled from and walked
    through on the device. Node 0 is the last token that was emitted; `parents` are topological, -1 at node 0.

    ```mlir
    func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32> {
      llm.kv_append %kv, %k, %v at %positions : ...
      %y = llm.attention %q, %kv at %positions scale(0.125) : ...
    // ==> and also
    func.func @verify(%tokens: tensor<?xi32>, %parents: tensor<?xi32>, %parameters: tensor<8xi32>,
                      %history: tensor<?xi32>, %base: tensor<1xi32>) -> (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>) {
      %mask, %positions = llm.tree_mask %parents base(%base) : tensor<?xi32>
      llm.kv_append %kv, %k, %v at %positions base(%base) : ...
      %y = llm.tree_attention %q, %kv base %base mask %mask at %positions scale(0.125) : ...
      ...
      %accepted, %count, %bonus = llm.tree_verify %logits, %tokens, %parents, %parameters, %history base %base : ...
      llm.kv_compact %kv base %base accepted %accepted count %count : ...
    ```

    A draft that reads nothing but tokens (`llm-make-draft`) gets a form over the nodes of a tree as well, by which its
    own trees grow level by level: `@guess_self_tree`, of the same arguments, whose result is the logits of all nodes.
    So do heads that go on from what they left themselves (`llm-attach-heads`): the nodes are those behind the first
    guess, each reads what the guess at its parent left, and base is the slot behind that of the first guess.

    ```mlir
    func.func @guess_heads_1_tree(%tokens, %parents, %parameters, %history, %base, %hidden: tensor<?x576xf32>)
        -> (tensor<?x49152xf32>, tensor<?x576xf32>) attributes {llm.draft_tree = @guess_heads_1}
    ```

    Run it last, on the function that lowering gets. Attention with a mask other than causal, and
    appends with slots of their own are errors, or with `if-possible` remarks; a module that has a `@verify` keeps it.
  }];
  let dependentDialects = ["LLMDialect"];
  let options = [
    Option<"ifPossible", "if-possible", "bool", /*default=*/"false",
           "Leave a module alone that no tree can be verified with">,
  ];
}

#endif // SPRIG_TRANSFORMS_SPECULATION_PASSES_TD
