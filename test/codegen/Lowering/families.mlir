// RUN: llm-opt %s --llm-lower-to-plan="targets=lavapipe context=64 widths=1,4" | FileCheck %s

// What families beyond llama need: rows of a table named by positions, norms of each head (rows are then heads) and of
// all heads of a token together, norms after a block.

llm.kv_cache @kv : !llm.kv<1x32, f16, f16, 64>

// CHECK-DAG: plan.kernel @embedding_F32_64x64_{{.*}} "embedding" {capacity = 64 : i64, format = "F32", positions, rows = 64 : i64, width = 64 : i64}
// CHECK-DAG: plan.kernel @[[HEAD:norm_32_.*]] "norm" {{.*}}width = 32
// CHECK-DAG: plan.kernel @[[ROW:norm_64_.*]] "norm" {{.*}}width = 64
// CHECK: plan.program @append_4 append width 4 {
// CHECK: plan.dispatch @embedding{{.*}} "embedding"
// CHECK: plan.dispatch @embedding{{.*}} "embedding"
// CHECK: plan.dispatch @add
// CHECK: plan.dispatch @[[ROW]]({{.*}}) groups [4, 1, 1] "norm"
// CHECK: plan.dispatch @[[HEAD]]({{.*}}) groups [4, 1, 1] "norm"
// CHECK: plan.program @logits_4 logits width 4 {
// CHECK: "attention"
// CHECK: plan.dispatch @[[HEAD]]({{.*}}) groups [8, 1, 1] "norm"
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %w = llm.weight dense<1.0> : tensor<64x64xf32>
  %p = llm.weight dense<2.0> : tensor<64x64xf32>
  %wk = llm.weight dense<3.0> : tensor<32x64xf32>
  %g = llm.weight dense<1.0> : tensor<32xf32>
  %gr = llm.weight dense<1.0> : tensor<64xf32>
  %t = llm.embedding %ids, %w : tensor<64x64xf32> -> tensor<?x64xf32>
  %at = llm.embedding %positions, %p : tensor<64x64xf32> -> tensor<?x64xf32>
  %x = llm.add %t, %at : tensor<?x64xf32>
  %q = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
  %v = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
  %qn = llm.rms_norm %q gamma(%gr : tensor<64xf32>) eps(1.0e-6) : tensor<?x2x32xf32>
  %kn = llm.rms_norm %k gamma(%g : tensor<32xf32>) eps(1.0e-6) : tensor<?x1x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  llm.kv_append %kv, %kn, %v at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %y = llm.attention %qn, %kv at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 64>
  %h = llm.rms_norm %y gamma(%g : tensor<32xf32>) eps(1.0e-6) : tensor<?x2x32xf32>
  %s = llm.linear %h, %w : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}
