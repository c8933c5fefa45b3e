// RUN: llm-opt --llm-tree-verify --llm-lower-to-plan="targets=lavapipe widths=1,4 context=64 logits-widths=1" %s | FileCheck %s

// A cache that the model fills and a draft reads: every program of the model takes the hidden state of the token before
// each, appends without queries, and keeps its own states for the steps behind it.
llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>
llm.kv_cache @heads_kv : 1 x !llm.kv<1x32, f16, f16, 2048>
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
  %own = llm.kv @heads_kv[0] : !llm.kv<1x32, f16, f16, 2048>
  %before = llm.previous_rows %h, %own at %positions : tensor<?x32xf32>, !llm.kv<1x32, f16, f16, 2048>
  %hk = llm.linear %before, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
  %hr = llm.rope %hk at %positions base(10000.0) : tensor<?x1x32xf32>
  llm.kv_append %own, %hr, %hk at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %s = llm.select_rows %h, %rows : tensor<?x32xf32>, tensor<?xi32>
  %logits = llm.linear %s, %table : tensor<?x32xf32>, tensor<40x32xf32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}
func.func @guess_heads_0(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %hidden: tensor<?x32xf32>)
    -> (tensor<?x40xf32>, tensor<?x32xf32>)
    attributes {llm.draft = {name = "heads", description = "test", hidden = "target", repeats = true}} {
  %table = llm.weight dense<1.0> : tensor<40x32xf32>
  %w = llm.weight dense<1.0> : tensor<32x32xf32>
  %own = llm.kv @heads_kv[0] : !llm.kv<1x32, f16, f16, 2048>
  %q = llm.linear %hidden, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
  %k = llm.linear %hidden, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
  %qr = llm.rope %q at %positions base(10000.0) : tensor<?x1x32xf32>
  %kr = llm.rope %k at %positions base(10000.0) : tensor<?x1x32xf32>
  llm.kv_append %own, %kr, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %y = llm.attention %qr, %own at %positions scale(0.125) first(1) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 2048>
  %z = llm.linear %y, %w : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %logits = llm.linear %z, %table : tensor<?x32xf32>, tensor<40x32xf32> -> tensor<?x40xf32>
  return %logits, %z : tensor<?x40xf32>, tensor<?x32xf32>
}

// A guess's own row, the rows of a step of four, and the ring of 64 rows.
// CHECK-DAG: plan.buffer state @state bytes 8960
// CHECK: plan.program @append_4 append width 4
// CHECK: "hidden states before"
// CHECK: "keep hidden states"
// CHECK: "rope, append"
// CHECK-NOT: attention
// CHECK: plan.program @sample_4 sample width 4
// CHECK: "hidden states before"
// CHECK: "keep hidden states"
// CHECK: "sample"
// In a tree those that are kept are known last.
// CHECK: plan.program @verify_4 verify width 4
// CHECK: "hidden states before"
// CHECK-NOT: "keep hidden states"
// CHECK: "accept"
// CHECK: "keep hidden states"
// CHECK: plan.program @draft_0 draft width 1
// CHECK-NOT: "keep hidden states"
