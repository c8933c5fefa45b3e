// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe,generic widths=1 context=64 logits-widths=0" %s | FileCheck %s

// A weight in a grid format is one binding, whatever its planes, and its grid another, once in the package.
module attributes {llm.model = {architecture = "llama", context = 64, layers = 1}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %table : tensor<40x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x256xf32>
    %g = llm.weight @model["norm.weight"] : tensor<256xf32>
    %f = llm.rms_scale %x eps(1.0e-05) : tensor<?x256xf32>
    %gate = llm.weight @model["gate.weight"] : tensor<256x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>
    %up = llm.weight @model["up.weight"] : tensor<256x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>
    %y = llm.gated_linear silu %x, %gate, %up gamma(%g : tensor<256xf32>) row_scale(%f) : tensor<?x256xf32>, tensor<256x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>, tensor<256x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x256xf32>
    %s = llm.select_rows %y, %rows : tensor<?x256xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x256xf32>, tensor<40x256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// CHECK: plan.tensor @[[GRID:grid.iq2_s]] layout "f32" bytes 4096
// CHECK: plan.target @lavapipe
// CHECK: plan.program @sample_1
// CHECK: %[[G:.*]] = plan.weight @[[GRID]]
// CHECK: plan.dispatch @embedding_IQ2_S_{{.*}}(in %[[T:[0-9]+]], in %[[G]],
// CHECK: plan.dispatch @linear_gated_iq2_s_256x256_t1_{{.*}}(in %{{[0-9]+}}, in %{{[0-9]+}}, in %[[G]],
// CHECK: plan.dispatch @linear_iq2_s_40x256_t1_{{.*}}(in %[[T]], in %[[G]],
// CHECK: plan.target @generic
// CHECK: plan.dispatch @linear_gated_iq2_s_
