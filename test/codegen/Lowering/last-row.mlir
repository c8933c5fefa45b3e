// RUN: llm-opt --split-input-file --llm-lower-to-plan="targets=lavapipe widths=1,4 context=64 logits-widths=4" %s | FileCheck %s

// A step that samples wants the last row alone behind the last attention: what attention leaves and the row of the
// residual are picked, and the products have one row.
llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
  %table = llm.weight dense<1.0> : tensor<40x32xf32>
  %w = llm.weight dense<1.0> : tensor<32x32xf32>
  %x = llm.embedding %ids, %table : tensor<40x32xf32> -> tensor<?x32xf32>
  %h = llm.layer 0 "decoder" (%a = %x : tensor<?x32xf32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
    %q = llm.linear %a, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    %k = llm.linear %a, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %z = llm.linear %y, %w residual(%a) : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  %s = llm.select_rows %h, %rows : tensor<?x32xf32>, tensor<?xi32>
  %logits = llm.linear %s, %table : tensor<?x32xf32>, tensor<40x32xf32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}
// CHECK: plan.program @append_4
// CHECK-NOT: last row
// CHECK: plan.program @sample_4
// CHECK: "layer 0 attention"
// CHECK: plan.dispatch @last_32{{.*}}"layer 0 last row"
// CHECK: plan.dispatch @last_32{{.*}}"layer 0 last row"
// CHECK: linear_f32_32x32_t1{{.*}}"layer 0 linear, residual"
// CHECK-NOT: select_rows
// CHECK: linear_f32_40x32_t1{{.*}}"head"
// CHECK: plan.program @logits_4
// CHECK-NOT: last row
// CHECK: linear_f32_32x32_t4{{.*}}"layer 0 linear, residual"

// -----

// Nothing but the choice of rows is behind attention: it stays where it is.
llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
  %table = llm.weight dense<1.0> : tensor<40x32xf32>
  %w = llm.weight dense<1.0> : tensor<32x32xf32>
  %x = llm.embedding %ids, %table : tensor<40x32xf32> -> tensor<?x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
  %q = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
  llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 2048>
  %s = llm.select_rows %y, %rows : tensor<?x1x32xf32>, tensor<?xi32>
  %logits = llm.linear %s, %table : tensor<?x1x32xf32>, tensor<40x32xf32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}
// CHECK: plan.program @sample_4
// CHECK: "select_rows"
// CHECK-NOT: last row
// CHECK: "head"
