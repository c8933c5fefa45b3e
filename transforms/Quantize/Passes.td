// Passes that write weights, activations and caches in fewer bits, or make that easier.
#ifndef SPRIG_TRANSFORMS_QUANTIZE_PASSES_TD
#define SPRIG_TRANSFORMS_QUANTIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def MixPrecisionPass : Pass<"llm-mix-precision", "func::FuncOp"> {
  let summary = "Bits of each weight by what it matters, under a budget";
  let description = [{
    Each weight of a layer is rounded to 2, 3, 4, 5, 6 and 8 bits, and the error behind its product measured over the
    second moments of a calibration text, as a share of the output. From 2 bits on, the step that takes off most error for
    its bits is taken again and again, while the average of all weights allows it. Products of one input have one width, so
    that they can be joined. The choice is an attribute that `llm-quantize-weights` takes in place of its `bits`:

    ```mlir
    %y = llm.linear %x, %w {llm.bits = 5 : i64} : ...
    ```
  }];
  let options = [
    Option<"bits", "bits", "double", /*default=*/"4", "On average, scales left out">,
    Option<"group", "group", "int64_t", /*default=*/"64", "Numbers of a row that share a scale">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def QuantizeActivationsPass : Pass<"llm-quantize-activations", "func::FuncOp"> {
  let summary = "Products that read integers, with a scale a token";
  let description = [{
    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<576x576x!llm.q<i4, 64:f16>> -> tensor<?x576xf32>
    // ==>
    %q = llm.quantize %x : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
    %y = llm.linear %q, %w : tensor<?x576x!llm.q<i8, *:f32>>, tensor<576x576x!llm.q<i4, 64:f16>> -> tensor<?x576xf32>
    ```

    Products that share an input share the quantised one. Heads have a scale each; with `group`, so have so many numbers of
    a row, which they have to divide. A product whose weight is not of integers (of the file, or by `llm-quantize-weights`
    before this) would gain nothing and is left, with a `missed` remark of category `llm`; where there are only such, that is
    an error. Runs before `llm-fuse-norm`: a product with a folded norm is left as well.
  }];
  let options = [
    Option<"bits", "bits", "unsigned", /*default=*/"8", "Of a number: 2 to 8">,
    Option<"group", "group", "int64_t", /*default=*/"0", "Numbers of a row that share a scale; 0: all">,
    Option<"head", "head", "bool", /*default=*/"false", "Also products outside layers, such as the head">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def QuantizeKVPass : Pass<"llm-quantize-kv", "ModuleOp"> {
  let summary = "Caches of 8 or 4 bits";
  let description = [{
    ```mlir
    llm.kv_cache @kv : 30 x !llm.kv<3x64, f16, f16, 2048>
    // ==> bits=8
    llm.kv_cache @kv : 30 x !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>
    ```

    The append quantises, attention dequantises: a scale a token and head for 8 bits, a scale and a minimum a group of
    it for 4. Some numbers of a key are much larger than the rest, so queries and keys go through one Hadamard transform
    first, which spreads them and changes no product of the two:

    ```mlir
    %t = llm.hadamard %k block(64) : tensor<?x3x64xf32>
    ```

    Where queries and keys have norms of their own, factors move from the norm of keys to that of queries first, so that
    both are of like size in each channel (`balance`; after SmoothAttention, arXiv 2405.04532). That writes new weights,
    and fails where llm-compile has no place for them; llm-opt, which reads no weights, leaves keys as they are.

    With `attention=8` attention over caches of 8 bits is of integers: queries and weights are rounded, too.

    ```mlir
    %y = llm.attention %q, %kv at %p scale(0.125) : ...
    // ==> bits=8 attention=8
    %y = llm.attention %t, %kv at %p scale(0.125) integers : ...
    ```
  }];
  let options = [
    Option<"bits", "bits", "unsigned", /*default=*/"8", "Of a number: 8 or 4">,
    Option<"attention", "attention", "unsigned", /*default=*/"16",
           "Of queries and weights in attention: 16 for floats, or 8 over caches of 8 bits">,
    Option<"group", "group", "int64_t", /*default=*/"16", "Numbers of a head that share a scale, for 4 bits">,
    Option<"rotate", "rotate", "bool", /*default=*/"true", "Queries and keys go through a Hadamard transform">,
    Option<"balance", "balance", "bool", /*default=*/"true", "Norms of queries take factors from those of keys">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def QuantizeWeightsPass : Pass<"llm-quantize-weights", "ModuleOp"> {
  let summary = "Weights of products in codes of a few bits";
  let description = [{
    ```mlir
    %w = llm.weight @model["blk.0.ffn_up.weight"] : tensor<1536x576xf16>
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<1536x576xf16> -> tensor<?x1536xf32>
    // ==> bits=4 group=64
    %c = llm.weight @weights["blk.0.ffn_up.weight.codes"] : tensor<1536x288xi8>
    %s = llm.weight @weights["blk.0.ffn_up.weight.scales"] : tensor<1536x9xf16>
    %q = llm.assemble %c scales(%s : tensor<1536x9xf16>)
        : tensor<1536x288xi8> -> tensor<1536x576x!llm.q<i4, 64:f16>, #llm.layout<packed>>
    %w = llm.dequantize %q : ... -> tensor<1536x576xf32>
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<1536x576xf32> -> tensor<?x1536xf32>
    ```

    `llm-fuse-dequantize` then lets the product read the codes. New tensors go to the file of new weights
    (`--weights-out` of llm-compile). Symmetric schemes store `w = s*code`, others `w = s*(code - zero)` with an integer
    zero point a group; scales are f16. A group that does not divide a row leaves a short one at its end.

    - `rtn`: the scale of the largest magnitude, or of the range; codes to the nearest.
    - `mse`: of each group the scale (and zero point) of least squared error.
    - `gptq`: columns one after another, what is lost made up for in those that follow (arXiv 2210.17323).
    - `awq`: columns that meet large inputs are scaled up first, the inverse folded into the norm, the up product or the
      value product before (arXiv 2306.00978); then `mse`.
    - `codebook`: a book of 4, 8 or 16 numbers a row by k-means, columns counted by the squares of their inputs where
      there is a text (arXiv 2306.07629); no groups: `!llm.q<cb<learned, 4>>` and `NAME.book` in place of scales.

    `gptq` and `awq` need, `codebook` takes a calibration text (`--calibrate` of llm-compile), read layer by layer. The statistics
    of a text are cached, so an interrupted run goes on where it stopped; with `replay` each layer sees what quantisation has made of
    those before it, and nothing is cached.
  }];
  let options = [
    Option<"bits", "bits", "unsigned", /*default=*/"4", "Of a code: 2, 3, 4, 5, 6 or 8">,
    Option<"group", "group", "int64_t", /*default=*/"64",
           "Numbers of a row that share a scale, a multiple of 32; 0: all of them">,
    Option<"symmetric", "symmetric", "bool", /*default=*/"true", "Without zero points">,
    Option<"method", "method", "std::string", /*default=*/"\"mse\"", "rtn, mse, gptq, awq or codebook">,
    Option<"head", "head", "bool", /*default=*/"false", "Also products outside layers, such as the head">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
    Option<"damping", "damping", "double", /*default=*/"0.01",
           "gptq: what is added to the diagonal of the second moments, times its mean">,
    Option<"actOrder", "act-order", "bool", /*default=*/"true",
           "gptq: columns of large inputs first, with grids of the weights as they were">,
    Option<"replay", "replay", "bool", /*default=*/"false", "Layers see what became of those before them">,
    Option<"report", "report", "std::string", /*default=*/"", "JSON file for the errors of each weight">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def RotatePass : Pass<"llm-rotate", "func::FuncOp"> {
  let summary = "Activations in another basis, where no number stands out";
  let description = [{
    The residual, with Q a Hadamard matrix in blocks of the largest power of two that divides the width, its columns with
    random signs (QuaRot, arXiv 2404.00456): gammas of norms are folded into the products that read them, those read
    `W·Qᵀ`, products that add to the residual become `Q·W`. The embedding, which a head may share, stays: its rows are
    rotated as they are read, and the residual is rotated back behind the last layer. The function stays.

    ```mlir
    %x = llm.embedding %ids, %t : ...
    %h = llm.hadamard %x block(64) signs [...] : tensor<?x576xf32>
    ...
      %n = llm.rms_norm %h eps(1.0e-5) : tensor<?x576xf32>
      %s = llm.scale_axis %w, %gamma axis 1 : ...
      %r = llm.hadamard %s block(64) signs [...] : tensor<576x576xf32>
      %q = llm.linear %n, %r : ...
    ```

    Refused where something other than such norms and products touches the residual within a layer: norms behind products
    forbid it. With `where=inputs` each product's input is transformed as it is made, whatever made it:

    ```mlir
      %n = llm.rms_norm %h gamma(%g : tensor<640xf32>) eps(1.0e-6) : tensor<?x640xf32>
      %t = llm.hadamard %n block(128) : tensor<?x640xf32>
      %r = llm.hadamard %w block(128) : tensor<1024x640xf32>
      %q = llm.linear %t, %r : ...
    ```

    Weights become expressions over floats; `llm-quantize-weights` behind it quantises them.
  }];
  let options = [
    Option<"seed", "seed", "uint64_t", /*default=*/"1", "Of the signs">,
    Option<"where", "where", "std::string", /*default=*/"\"residual\"",
           "residual; inputs; or auto: residual where it can be rotated, else inputs">,
    Option<"most", "most", "int64_t", /*default=*/"256", "inputs: numbers that are transformed together at most">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def SmoothPass : Pass<"llm-smooth", "ModuleOp"> {
  let summary = "Large inputs made smaller, at the cost of weights";
  let description = [{
    Column j of products is multiplied by `s_j = max|x_j|^alpha / max|w_j|^(1 - alpha)`, and what makes their input is
    divided by it: the gamma of a norm, the rows of the up product or of the value product (one s for the query heads of
    a key head). The function stays (SmoothQuant, arXiv 2211.10438).

    ```mlir
    %n = llm.rms_norm %x gamma(%g : tensor<576xf32>) eps(1.0e-5) : tensor<?x576xf32>
    %y = llm.linear %n, %w : ...
    // ==>
    %g1 = llm.scale_axis %g, %inverse axis 0 : tensor<576xf32>, tensor<576xf64>
    %n = llm.rms_norm %x gamma(%g1 : tensor<576xf32>) eps(1.0e-5) : tensor<?x576xf32>
    %w1 = llm.scale_axis %w, %scales axis 1 : tensor<576x576xf32>, tensor<576xf64>
    %y = llm.linear %n, %w1 : ...
    ```

    Weights become expressions over floats; `llm-quantize-weights` behind it quantises them.
  }];
  let options = [
    Option<"alpha", "alpha", "double", /*default=*/"0.5", "How much of the inputs' size goes to the weights, 0 to 1">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

def SplitOutliersPass : Pass<"llm-split-outliers", "ModuleOp"> {
  let summary = "Columns of large inputs in a product of their own";
  let description = [{
    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
    // ==> 3 columns of %x exceed the threshold
    %o = llm.gather %x, %outliers axis 1 : tensor<?x576xf32>, tensor<3xi32>
    %v = llm.weight @weights["blk.0.attn_q.weight.columns"] : tensor<576x3xf16>
    %s = llm.linear %o, %v : tensor<?x3xf32>, tensor<576x3xf16> -> tensor<?x576xf32>
    %r = llm.scale_axis %x, %regular axis 1 : tensor<?x576xf32>, tensor<576xf64>     // zero in the 3 columns
    %y = llm.linear %r, %w residual(%s) : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
    ```

    Columns whose largest magnitude over the calibration text exceeds the threshold are apart, in f16 (LLM.int8(), arXiv
    2208.07339), so that what is left can be quantised; the passes that do leave the columns apart as they are. But for
    the rounding to f16 the function stays.
  }];
  let options = [
    Option<"threshold", "threshold", "double", /*default=*/"6", "Largest magnitude of a regular column">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"16384", "Of the calibration text">,
    Option<"window", "window", "int64_t", /*default=*/"512", "Tokens of the text that see each other">,
  ];
  let dependentDialects = ["LLMDialect"];
}

#endif // SPRIG_TRANSFORMS_QUANTIZE_PASSES_TD
