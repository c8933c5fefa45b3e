// RUN: llm-opt --llm-tree-verify %s | FileCheck %s
// RUN: llm-opt --llm-tree-verify --llm-lower-to-plan="targets=lavapipe widths=1,4 context=64" %s | FileCheck %s --check-prefix=PLAN

// Heads that go on from what their own guess left get a form over the nodes behind the first guess: the layer of their
// cache under the mask of the tree, and the state above each node as an argument.
// CHECK: func.func @guess_heads_0(
// CHECK-SAME: hidden = "target"
// CHECK-NOT: @guess_heads_0_tree
// CHECK: func.func @guess_heads_1(
// CHECK: func.func @guess_heads_1_tree(%[[TOKENS:.*]]: tensor<?xi32>, %[[PARENTS:.*]]: tensor<?xi32>, %{{.*}}: tensor<8xi32>, %{{.*}}: tensor<?xi32>, %[[BASE:.*]]: tensor<1xi32>, %[[ABOVE:.*]]: tensor<?x64xf32>) -> (tensor<?x40xf32>, tensor<?x64xf32>)
// CHECK-SAME: llm.draft_tree = @guess_heads_1
// CHECK-NOT: llm.draft =
// CHECK: %[[MASK:.*]], %[[AT:.*]] = llm.tree_mask %[[PARENTS]] base(%[[BASE]])
// CHECK: llm.add %{{.*}}, %[[ABOVE]]
// CHECK: llm.kv_append %{{.*}} at %[[AT]] base(%[[BASE]])
// CHECK: llm.tree_attention %{{.*}}, %{{.*}} base %[[BASE]] mask %[[MASK]] at %[[AT]] scale(0.125) first(1)

// A form without attention needs no mask. Heads that each guess a token further ahead say the same at all nodes of a
// level, and have no form of their own.
// CHECK: func.func @guess_ridge_1_tree(
// CHECK-NOT: llm.tree_mask
// CHECK: return %{{.*}}, %{{.*}} : tensor<?x40xf32>, tensor<?x64xf32>
// CHECK-NOT: @guess_ahead_0_tree

// Each node reads the state of its parent, which a step of fewer nodes left, and leaves its own. Behind the row of a
// single guess, the four of a step and the ring of 64.
// PLAN: plan.buffer state @state bytes 18688
// PLAN: plan.kernel @hidden_rows_above_64
// PLAN: plan.program @draft_1 draft width 1 guess 1 {
// PLAN-NOT: "hidden states above"
// PLAN: "sample"
// PLAN: plan.program @draft_1_4 draft width 4 guess 1 {
// PLAN: %[[LEFT:.*]] = plan.view @state at 17664 bytes 1024
// PLAN: %[[FIRST:.*]] = plan.view @state at 0 bytes 256
// PLAN: plan.dispatch @hidden_rows_above_64_{{.*}}(in %[[LEFT]], in %[[FIRST]], {{.*}} groups [1, 4, 1] "hidden states above"
// PLAN: "tree"
// PLAN: out %[[LEFT]]) groups [1, 4, 1] "hidden state"
// PLAN-NOT: "sample"
// PLAN: plan.dispatch @top_40_{{.*}} groups [4, 1, 1] "likeliest"
// PLAN: plan.program @draft_3_4 draft width 4 guess 3 {
// PLAN-NOT: "tree"
module attributes {llm.model = {architecture = "llama", context = 2048, layers = 1}} {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>
  llm.kv_cache @heads_kv : 1 x !llm.kv<1x32, f16, f16, 2048>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight dense<1.0> : tensor<40x64xf32>
    %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %0 = llm.layer 0 "decoder" (%h = %x : tensor<?x64xf32>) {
      %wq = llm.weight dense<1.0> : tensor<64x64xf32>
      %wk = llm.weight dense<1.0> : tensor<32x64xf32>
      %q = llm.linear %h, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
      %k = llm.linear %h, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
      %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
      llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
      %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
      %o = llm.linear %y, %wq : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
      llm.yield %o : tensor<?x64xf32>
    }
    %s = llm.select_rows %0, %rows : tensor<?x64xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
  func.func @guess_heads_0(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %hidden: tensor<?x64xf32>)
      -> (tensor<?x40xf32>, tensor<?x64xf32>)
      attributes {llm.draft = {name = "heads", description = "test", hidden = "target", repeats = true}} {
    %table = llm.weight dense<1.0> : tensor<40x64xf32>
    %wk = llm.weight dense<1.0> : tensor<32x64xf32>
    %q = llm.linear %hidden, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %q, %hidden : tensor<?x40xf32>, tensor<?x64xf32>
  }
  func.func @guess_heads_1(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %hidden: tensor<?x64xf32>)
      -> (tensor<?x40xf32>, tensor<?x64xf32>)
      attributes {llm.draft = {name = "heads", description = "test", hidden = "own", repeats = true}} {
    %table = llm.weight dense<1.0> : tensor<40x64xf32>
    %wq = llm.weight dense<1.0> : tensor<64x64xf32>
    %wk = llm.weight dense<1.0> : tensor<32x64xf32>
    %e = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %x = llm.add %e, %hidden : tensor<?x64xf32>
    %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %kv = llm.kv @heads_kv[0] : !llm.kv<1x32, f16, f16, 2048>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) first(1) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
    %o = llm.linear %y, %wq : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    %logits = llm.linear %o, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits, %o : tensor<?x40xf32>, tensor<?x64xf32>
  }
  func.func @guess_ahead_0(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %hidden: tensor<?x64xf32>)
      -> tensor<?x40xf32>
      attributes {llm.draft = {name = "ahead", description = "test", hidden = "target", repeats = false}} {
    %table = llm.weight dense<1.0> : tensor<40x64xf32>
    %logits = llm.linear %hidden, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
  func.func @guess_ridge_1(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %hidden: tensor<?x64xf32>)
      -> (tensor<?x40xf32>, tensor<?x64xf32>)
      attributes {llm.draft = {name = "ridge", description = "test", hidden = "own", repeats = true}} {
    %table = llm.weight dense<1.0> : tensor<40x64xf32>
    %e = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %x = llm.add %e, %hidden : tensor<?x64xf32>
    %logits = llm.linear %x, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits, %x : tensor<?x40xf32>, tensor<?x64xf32>
  }
}
