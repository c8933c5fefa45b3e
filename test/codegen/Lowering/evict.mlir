// RUN: llm-opt --llm-make-evict --llm-lower-to-plan="targets=lavapipe widths=1 context=256 logits-widths=0" %s | FileCheck %s
// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1 context=256 logits-widths=0" %s | FileCheck --check-prefix=WITHOUT %s

// Room in a full context: the history, then the values and the keys of as many layers at once as turn alike.
module attributes {llm.model = {architecture = "llama", context = 2048, layers = 3}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  llm.kv_cache @kv : 3 x !llm.kv<1x32, f16, f16, 2048>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x64xf32>
    %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %w = llm.weight @model["q.weight"] : tensor<64x64xf32>
    %wk = llm.weight @model["k.weight"] : tensor<32x64xf32>
    %q = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %q0 = llm.rope %q at %positions base(10000.0) : tensor<?x2x32xf32>
    %k0 = llm.rope %k at %positions base(10000.0) : tensor<?x1x32xf32>
    %kv0 = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv0, %k0, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y0 = llm.attention %q0, %kv0 at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %kv1 = llm.kv @kv[1] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv1, %k0, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y1 = llm.attention %q0, %kv1 at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %q2 = llm.rope %q at %positions base(500.0) : tensor<?x2x32xf32>
    %k2 = llm.rope %k at %positions base(500.0) : tensor<?x1x32xf32>
    %kv2 = llm.kv @kv[2] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv2, %k2, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y2 = llm.attention %q2, %kv2 at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %a = llm.add %y0, %y1 : tensor<?x2x32xf32>
    %b = llm.add %a, %y2 : tensor<?x2x32xf32>
    %s = llm.select_rows %b, %rows : tensor<?x2x32xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x2x32xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// CHECK: plan.kernel @kv_evict_1x1_{{.*}} "kv_evict" {capacity = 256 : i64, head_size = 1 : i64, kv = "f32", kv_heads = 1 : i64}
// CHECK: plan.kernel @kv_evict_1x32_{{.*}} "kv_evict" {capacity = 256 : i64, head_size = 32 : i64, kv = "f16", kv_heads = 1 : i64, layers = 2 : i64, stride = 32768 : i64}
// CHECK: plan.kernel @kv_evict_1x32_{{.*}} "kv_evict" {capacity = 256 : i64, dims = 32 : i64, head_size = 32 : i64, kv = "f16", kv_heads = 1 : i64, layers = 2 : i64, stride = 32768 : i64}
// CHECK: plan.program @evict_1 evict width 1 {
// CHECK: plan.dispatch @kv_evict_1x1_{{.*}} groups [1, 32, 1] "evict, history"
// CHECK: plan.dispatch @kv_evict_1x32_{{.*}} groups [1, 32, 2] "evict, values"
// CHECK: plan.dispatch @kv_evict_1x32_{{.*}} groups [1, 32, 2] "evict, keys"
// CHECK: plan.dispatch @kv_evict_1x32_{{.*}} groups [1, 32, 1] "evict, values"
// CHECK: plan.dispatch @kv_evict_1x32_{{.*}} groups [1, 32, 1] "evict, keys"
// CHECK-NOT: plan.dispatch
// CHECK-NOT: func.func

// WITHOUT-NOT: kv_evict
