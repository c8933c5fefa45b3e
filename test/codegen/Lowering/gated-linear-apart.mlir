// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 context=16" %s | FileCheck %s --check-prefix=APART
// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1 context=16" %s | FileCheck %s --check-prefix=TOGETHER

// Two matrices of three planes each, x, gamma, factor and y are ten buffers; the generic target binds eight.
module attributes {llm.model = {architecture = "llama", context = 16, layers = 1}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 16>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x64xf16>
    %x = llm.embedding %ids, %table : tensor<40x64xf16> -> tensor<?x64xf32>
    %g = llm.weight @model["ffn_norm.weight"] : tensor<64xf32>
    %r = llm.rms_scale %x eps(1.0e-5) : tensor<?x64xf32>
    %gate = llm.weight @model["ffn_gate.weight"] : tensor<96x64x!llm.q<u5, 32:f16+f16>, #llm.layout<gguf>>
    %up = llm.weight @model["ffn_up.weight"] : tensor<96x64x!llm.q<u5, 32:f16+f16>, #llm.layout<gguf>>
    %f = llm.gated_linear silu %x, %gate, %up gamma(%g : tensor<64xf32>) row_scale(%r)
        : tensor<?x64xf32>, tensor<96x64x!llm.q<u5, 32:f16+f16>, #llm.layout<gguf>>, tensor<96x64x!llm.q<u5, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x96xf32>
    %down = llm.weight @model["ffn_down.weight"] : tensor<64x96xf16>
    %o = llm.linear %f, %down : tensor<?x96xf32>, tensor<64x96xf16> -> tensor<?x64xf32>
    %s = llm.select_rows %o, %rows : tensor<?x64xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x64xf32>, tensor<40x64xf16> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// APART: plan.program @sample_1
// APART: "gate" {
// APART: "up" {
// APART: "gated" {
// TOGETHER: plan.program @sample_1
// TOGETHER-NOT: "gated" {
// TOGETHER: "gate, up"
