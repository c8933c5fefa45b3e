// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1 logits-widths=0" %s | FileCheck %s

// Keys of a layer that no binding spans (262,144 slots of 8 heads of 128 in f16): five parts of 15 splits of 4,096 slots,
// each with a dispatch of its own that sees 64 slots more, for trees.
module attributes {llm.model = {architecture = "llama", context = 262144, layers = 1}} {
  llm.kv_cache @kv : 1 x !llm.kv<8x128, f16, f16, 262144>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x1024xf32> {
    %w = llm.weight dense<1.0> : tensor<1024x1024xf32>
    %x = llm.embedding %ids, %w : tensor<1024x1024xf32> -> tensor<?x1024xf32>
    %q = llm.linear %x, %w : tensor<?x1024xf32>, tensor<1024x1024xf32> -> tensor<?x8x128xf32>
    %k = llm.linear %x, %w : tensor<?x1024xf32>, tensor<1024x1024xf32> -> tensor<?x8x128xf32>
    %kv = llm.kv @kv[0] : !llm.kv<8x128, f16, f16, 262144>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<8x128, f16, f16, 262144>, tensor<?x8x128xf32>, tensor<?x8x128xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x8x128xf32>, !llm.kv<8x128, f16, f16, 262144>
    %s = llm.select_rows %y, %rows : tensor<?x8x128xf32>, tensor<?xi32>
    %logits = llm.linear %s, %w : tensor<?x8x128xf32>, tensor<1024x1024xf32> -> tensor<?x1024xf32>
    return %logits : tensor<?x1024xf32>
  }
}

// CHECK: plan.kernel @rope_append_{{.*}} part = 61440 : i64
// CHECK: plan.kernel @attention_8x128_{{.*}} part = 61440 : i64, parts = 64 : i64
// CHECK: plan.program @sample_1
// 61,504 slots of 2 KiB, from slot 0 on.
// CHECK: plan.view @kv_cache at 0 bytes 125960192
// CHECK: plan.view @kv_cache at 536870912 bytes 125960192
// CHECK: plan.dispatch @rope_append_{{.*}} groups [{{[0-9]+}}, 1, 1] "rope, append"
// CHECK: plan.view @kv_cache at 125829120 bytes 125960192
// CHECK: plan.dispatch @rope_append_{{.*}} groups [{{[0-9]+}}, 1, 1] base [0, 0, 1] "rope, append"
// CHECK: plan.dispatch @rope_append_{{.*}} groups [{{[0-9]+}}, 1, 1] base [0, 0, 4] "rope, append"
// CHECK-NOT: rope, append
// CHECK: plan.dispatch @attention_8x128_{{.*}} groups [{{[0-9]+}}, 1, 15] "attention"
// CHECK: plan.dispatch @attention_8x128_{{.*}} groups [{{[0-9]+}}, 1, 15] base [0, 0, 15] "attention"
// CHECK: plan.dispatch @attention_8x128_{{.*}} groups [{{[0-9]+}}, 1, 4] base [0, 0, 60] "attention"
// CHECK-NOT: "attention"
// CHECK: plan.dispatch @attention_combine_{{.*}} "attention, combine"
