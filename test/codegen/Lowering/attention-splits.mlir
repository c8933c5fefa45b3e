// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1,64 logits-widths=0" %s | FileCheck %s
// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1 context=256 logits-widths=0" %s | FileCheck --check-prefix=SHORT %s
// RUN: llm-opt --plan-pipeline="targets=lavapipe widths=1 kernels=false" %s | FileCheck --check-prefix=PIPELINE %s

// Attention over a long context: its splits get workgroups of their own where tokens and heads are too few of them,
// counted on the device, once for layers that are alike.
module attributes {llm.model = {architecture = "llama", context = 2048, layers = 3}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  llm.kv_cache @kv : 3 x !llm.kv<1x32, f16, f16, 2048>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x64xf32>
    %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %w = llm.weight @model["q.weight"] : tensor<64x64xf32>
    %wk = llm.weight @model["k.weight"] : tensor<32x64xf32>
    %q0 = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k0 = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %kv0 = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv0, %k0, %k0 at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y0 = llm.attention %q0, %kv0 at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %q1 = llm.linear %y0, %w : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k1 = llm.linear %y0, %wk : tensor<?x2x32xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %kv1 = llm.kv @kv[1] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv1, %k1, %k1 at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y1 = llm.attention %q1, %kv1 at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %q2 = llm.linear %y1, %w : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k2 = llm.linear %y1, %wk : tensor<?x2x32xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %kv2 = llm.kv @kv[2] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv2, %k2, %k2 at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y2 = llm.attention %q2, %kv2 at %positions scale(0.125) window(300) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %s = llm.select_rows %y2, %rows : tensor<?x2x32xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x2x32xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// CHECK: plan.program @sample_1
// CHECK: plan.dispatch @attention_groups_{{.*}}(in %{{.*}}, out %[[N:.*]], out %[[C:.*]]) groups [1, 1, 1] "groups"
// CHECK: plan.dispatch @attention_2x32_t1_{{.*}} groups [1, 1, 8] indirect %[[N]] "attention"
// CHECK: plan.dispatch @attention_combine_{{.*}} groups [2, 1, 1] indirect %[[C]] "attention, combine"
// CHECK-NOT: "groups"
// CHECK: plan.dispatch @attention_2x32_t1_{{.*}} groups [1, 1, 8] indirect %[[N]] "attention"
// A window sees three splits at most, and has counts of its own.
// CHECK: plan.dispatch @attention_groups_{{.*}}(in %{{.*}}, out %[[W:.*]], out %{{.*}}) groups [1, 1, 1] "groups"
// CHECK: plan.dispatch @attention_2x32_t1_{{.*}} groups [1, 1, 3] indirect %[[W]] "attention"

// Tokens are enough here.
// CHECK: plan.program @sample_64
// CHECK-NOT: indirect
// CHECK: plan.dispatch @attention_2x32_t8_{{.*}} groups [1, 8, 1] "attention"
// CHECK-NOT: indirect

// SHORT-NOT: indirect

// The counts are waited for as such.
// PIPELINE: "groups"
// PIPELINE: plan.barrier indirect
// PIPELINE: indirect
