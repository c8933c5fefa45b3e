// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 logits-widths=0" %s | FileCheck %s

// More workgroups than 65,535 in one dimension fold into another.
module attributes {llm.model = {architecture = "llama", context = 64}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x1100000xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<1100000x32xf16>
    %x = llm.embedding %ids, %table : tensor<1100000x32xf16> -> tensor<?x32xf32>
    %s = llm.select_rows %x, %rows : tensor<?x32xf32>, tensor<?xi32>
    // CHECK: plan.dispatch @linear_f16_1100000x32_t1_{{.*}} groups [34375, 1, 2] "head"
    %logits = llm.linear %s, %table : tensor<?x32xf32>, tensor<1100000x32xf16> -> tensor<?x1100000xf32>
    return %logits : tensor<?x1100000xf32>
  }
}
