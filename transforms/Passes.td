// Passes from llm to llm, in alphabetical order. docs/generated/Passes.md is made from this file.
#ifndef SPRIG_TRANSFORMS_PASSES_TD
#define SPRIG_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "transforms/Prune/Passes.td"
include "transforms/Quantize/Passes.td"
include "transforms/Speculation/Passes.td"

def CleanUpPass : Pass<"llm-clean-up", "func::FuncOp"> {
  let summary = "Constants and shapes made plain";
  let description = [{
    Applies the canonical forms of the dialect and joins equal expressions, so that later passes and the package writer
    meet one form of each thing: equal weights are one, a slice looks through a slice and into a concatenation, a
    concatenation takes the inputs of its inputs, chains of `reshape` and `transpose` are one op or none, a factor on an
    embedding is the embedding's, and what repeats a default or changes nothing goes.

    ```mlir
    %a = llm.weight @model["a"] : tensor<64x32xf16>
    %c = llm.concat %a, %b axis 0 : tensor<64x32xf16>, tensor<32x32xf16>
    %s = llm.slice %c 64 to 96 axis 0 : tensor<96x32xf16>
    %n = llm.rms_norm %x eps(1.0e-5) count(32) : tensor<?x32xf32>
    %y = llm.linear %n, %s : ...
    // ==>
    %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x32xf32>
    %y = llm.linear %n, %b : ...
    ```
  }];
}

def FoldAdaptersPass : Pass<"llm-fold-adapters", "ModuleOp"> {
  let summary = "Adapters become part of the weights";
  let description = [{
    ```mlir
    %y0 = llm.linear %x, %w : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
    %a = llm.linear %x, %A : tensor<?x576xf32>, tensor<16x576xf32> -> tensor<?x16xf32>
    %y = llm.linear %a, %B residual(%y0) : tensor<?x16xf32>, tensor<576x16xf32> -> tensor<?x576xf32>
    // ==> w + B A
    %y = llm.linear %x, %w1 : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
    ```

    The sum is written in the format that the weight had (LoRA, arXiv 2106.09685).
  }];
  let dependentDialects = ["LLMDialect"];
}

def FuseDequantizePass : Pass<"llm-fuse-dequantize", "func::FuncOp"> {
  let summary = "Read quantised weights inside the product";
  let description = [{
    ```mlir
    %w = llm.dequantize %q : ...
    %y = llm.linear %x, %w : ...
    // ==>
    %y = llm.linear %x, %q : ...
    ```

    The same for the weights of `gated_linear` and `expert_linear` and for the table of an `embedding`. A dequantise
    first moves through the slices, gathers, concatenations and reshapes between it and the product, where they keep
    whole groups together.

    A weight with several users stays dequantised unless `fuse-shared` is set; each such refusal is a `missed` remark of
    category `llm`.
  }];
  let options = [
    Option<"fuseShared", "fuse-shared", "bool", /*default=*/"false",
           "Also fuse weights that have more than one user">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def FuseGatedMLPPass : Pass<"llm-fuse-gated-mlp", "func::FuncOp"> {
  let summary = "Gate and up product of a feed-forward block in one op";
  let description = [{
    ```mlir
    %g = llm.linear %x, %gate : ...
    %u = llm.linear %x, %up : ...
    %y = llm.gated_activation silu %g, %u : ...
    // ==>
    %y = llm.gated_linear silu %x, %gate, %up : ...
    ```

    A kernel then reads `x` once for both and writes one result in place of three. The products must take the same `x`
    (with the same folded norm), have one user each, weights of one type, and neither bias nor residual; each refusal is
    a `missed` remark of category `llm`.
  }];
  let dependentDialects = ["LLMDialect"];
}

def FuseNormPass : Pass<"llm-fuse-norm", "func::FuncOp"> {
  let summary = "Fold RMS norm into the products that read it";
  let description = [{
    ```mlir
    %n = llm.rms_norm %x gamma(%g : ...) eps(1.0e-5) : ...
    %y = llm.linear %n, %w : ...
    // ==>
    %r = llm.rms_scale %x eps(1.0e-5) : ...
    %y = llm.linear %x, %w gamma(%g : ...) row_scale(%r) : ...
    ```

    Gamma meets `x` as the product loads it, and the factor of a row is applied to its sums, so the normalised rows are
    never written. Norms are folded where every user is the `x` of a `linear` or `gated_linear` without a folded norm;
    each refusal is a `missed` remark of category `llm`. Whether it pays depends on the target: a schedule that wants
    the norm as an op of its own leaves this pass out.
  }];
  let options = [
    Option<"maxUsers", "max-users", "unsigned", /*default=*/"0",
           "Keep norms that more products than this read; 0: no limit">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def FuseQKVPass : Pass<"llm-fuse-qkv", "func::FuncOp"> {
  let summary = "Query, key and value product in one op";
  let description = [{
    ```mlir
    %q = llm.linear %x, %wq : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x9x64xf32>
    %k = llm.linear %x, %wk : tensor<?x576xf32>, tensor<192x576xf16> -> tensor<?x3x64xf32>
    %v = llm.linear %x, %wv : tensor<?x576xf32>, tensor<192x576xf16> -> tensor<?x3x64xf32>
    // ==>
    %w = llm.concat %wq, %wk, %wv axis 0 : ...
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<960x576xf16> -> tensor<?x15x64xf32>
    %q = llm.slice %y 0 to 9 axis 1 : tensor<?x15x64xf32>
    %k = llm.slice %y 9 to 12 axis 1 : tensor<?x15x64xf32>
    %v = llm.slice %y 12 to 15 axis 1 : tensor<?x15x64xf32>
    ```

    The concatenation is done when the package is written, the slices are views. The products must read the same `x`
    (with the same folded norm), end in one attention and the append to its cache, make heads of one size, have weights
    of one type, and a bias all or none; each refusal is a `missed` remark of category `llm`.
  }];
  let options = [
    Option<"minRows", "min-rows", "int64_t", /*default=*/"0",
           "Join only where a product has fewer rows of weights than this, too few to fill the device; 0: always">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def FuseQuantizePass : Pass<"llm-fuse-quantize", "func::FuncOp"> {
  let summary = "Round activations where they are made, read their integers where they are used";
  let description = [{
    ```mlir
    %n = llm.rms_norm %x gamma(%g) eps(1e-5) : tensor<?x576xf32> -> tensor<?x576xf32>
    %q = llm.quantize %n : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
    %d = llm.dequantize %q : tensor<?x576x!llm.q<i8, *:f32>> -> tensor<?x576xf32>
    %y = llm.linear %d, %w : tensor<?x576xf32>, tensor<192x576x!llm.q<i4, 64:f16>> -> tensor<?x192xf32>
    // ==>
    %q = llm.rms_norm %x gamma(%g) eps(1e-5) : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
    %y = llm.linear %q, %w : tensor<?x576x!llm.q<i8, *:f32>>, tensor<192x576x!llm.q<i4, 64:f16>> -> tensor<?x192xf32>
    ```

    The same for `gated_activation` and `gated_linear`, which make the input of the down product. A norm, or a gate, with
    other users stays, with a `missed` remark of category `llm`.
  }];
  let dependentDialects = ["LLMDialect"];
}

def FuseResidualPass : Pass<"llm-fuse-residual", "func::FuncOp"> {
  let summary = "Add the residual in the epilogue of the product";
  let description = [{
    ```mlir
    %y = llm.linear %x, %w : ...
    %z = llm.add %h, %y : ...
    // ==>
    %z = llm.linear %x, %w residual(%h) : ...
    ```

    The same for `sparse_linear`, and for an `expert_linear` that combines its experts. The product must have no other
    user and no residual yet; each refusal is a `missed` remark of category `llm`.
  }];
  let dependentDialects = ["LLMDialect"];
}

def RemoveDeadStatePass : Pass<"llm-remove-dead-state", "ModuleOp"> {
  let summary = "Remove caches that nobody reads, and sources that nobody uses";
  let description = [{
    ```mlir
    llm.kv_cache @kv : 2 x !llm.kv<3x64, f16, f16, 2048>
    ...
    %kv = llm.kv @kv[0] : ...
    llm.kv_append %kv, %k, %v at %positions : ...      // no attention reads @kv[0]
    %kv1 = llm.kv @kv[1] : ...
    // ==>
    llm.kv_cache @kv : 1 x !llm.kv<3x64, f16, f16, 2048>
    ...
    %kv1 = llm.kv @kv[0] : ...
    ```

    A cache is read by `attention` and `tree_attention` whose result is used. What only writes an unread cache goes, with
    the products that fed it; caches without users go, the others are numbered anew, and a symbol without caches goes,
    as does a source that neither a weight nor a tokenizer names. A handle that leaves the ops of the dialect (an
    argument of a call, say) keeps its cache, with a `missed` remark of category `llm`.
  }];
  let dependentDialects = ["LLMDialect"];
}

#endif // SPRIG_TRANSFORMS_PASSES_TD
