// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 context=16" %s | FileCheck %s

// The generic target promises bindings of 128 MiB. Codes of a 262144x640 matrix of 8 bits take 160 MiB: 209,664 rows of
// them fit (a multiple of 256), and 52,480 are left. A gated product becomes two of two parts each.
module attributes {llm.model = {architecture = "llama", context = 16, layers = 1}} {
  llm.source @model {path = "large.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 16>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x262144xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %table : tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x640xf32>
    %gate = llm.weight @model["ffn_gate.weight"] : tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %up = llm.weight @model["ffn_up.weight"] : tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %f = llm.gated_linear silu %x, %gate, %up
        : tensor<?x640xf32>, tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>>, tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x262144xf32>
    %s = llm.select_rows %x, %rows : tensor<?x640xf32>, tensor<?xi32>
    %fs = llm.select_rows %f, %rows : tensor<?x262144xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table residual(%fs) : tensor<?x640xf32>, tensor<262144x640x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x262144xf32>
    return %logits : tensor<?x262144xf32>
  }
}

// CHECK: plan.program @sample_1
// CHECK: plan.dispatch @[[FIRST:embedding_[^(]*]]({{.*}} "embedding"
// CHECK: plan.weight @token_embd.weight at 144670720 bytes 33587200
// CHECK: plan.dispatch @embedding_{{.*}} "embedding"
// CHECK: plan.dispatch @[[PART:linear_q8_0_209664x640[^(]*]]({{.*}} "gate"
// CHECK: plan.slice %{{.*}} at 838656 bytes 209920
// CHECK: plan.dispatch @[[REST:linear_q8_0_52480x640[^(]*]]({{.*}} "gate"
// The same kernels again: where a part lies is the binding's offset.
// CHECK: plan.dispatch @[[PART]]({{.*}} "up"
// CHECK: plan.dispatch @[[REST]]({{.*}} "up"
// CHECK: "gated"
// CHECK: plan.dispatch @[[PART]]({{.*}} "linear"
// CHECK: plan.dispatch @[[REST]]({{.*}} "linear"
// CHECK: "residual"
