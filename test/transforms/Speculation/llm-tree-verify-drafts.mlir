// RUN: llm-opt --llm-make-draft=layers=1 --llm-tree-verify %s | FileCheck %s
// RUN: llm-opt --llm-make-draft=layers=1 --llm-tree-verify --llm-lower-to-plan="targets=lavapipe widths=1,2,4,6,8 context=64" %s \
// RUN:   | FileCheck %s --check-prefix=PLAN

// A draft that reads tokens alone gets a form over the nodes of a tree, with the logits of all of them; nothing is drawn.
// CHECK: func.func @verify(
// CHECK: func.func @guess_self(
// CHECK-SAME: llm.draft = {description = "skip:1", name = "self", repeats = true}
// CHECK: func.func @guess_self_tree(%[[TOKENS:.*]]: tensor<?xi32>, %[[PARENTS:.*]]: tensor<?xi32>, %{{.*}}: tensor<8xi32>, %{{.*}}: tensor<?xi32>, %[[BASE:.*]]: tensor<1xi32>) -> tensor<?x40xf32>
// CHECK-SAME: llm.draft_tree = @guess_self
// CHECK-NOT: llm.draft =
// CHECK: %[[MASK:.*]], %[[AT:.*]] = llm.tree_mask %[[PARENTS]] base(%[[BASE]])
// CHECK: llm.embedding %[[TOKENS]]
// CHECK: llm.tree_attention %{{.*}}, %{{.*}} base %[[BASE]] mask %[[MASK]] at %[[AT]]
// CHECK-NOT: llm.tree_attention
// CHECK-NOT: llm.tree_verify
// CHECK: return %{{.*}} : tensor<?x40xf32>

// Its trees have programs of the widths that are powers of two, from four on. All leave what may follow; the guess of one
// token draws as well, and what verifies can keep guesses that were drawn.
// PLAN: plan.buffer control @control bytes 5376
// PLAN: plan.kernel @sample_40_{{.*}}rounds = 1
// PLAN: plan.program @verify_2 verify width 2 {
// PLAN: plan.program @draft_0 draft width 1 guess 0 {
// PLAN: "sample"
// PLAN: %[[ROWS:.*]] = plan.view @control at 256 bytes 5120
// PLAN: plan.dispatch @top_40_{{.*}}out %[[ROWS]]) groups [1, 1, 1] "likeliest"
// PLAN-NOT: plan.program @draft_0_2
// PLAN: plan.program @draft_0_4 draft width 4 guess 0 {
// PLAN: "tree"
// PLAN-NOT: "sample
// PLAN: plan.dispatch @top_40_{{.*}} groups [4, 1, 1] "likeliest"
// PLAN-NOT: plan.program @draft_0_6
// PLAN: plan.program @draft_0_8 draft width 8 guess 0 {
module attributes {llm.model = {architecture = "llama", context = 2048, layers = 2}} {
  llm.kv_cache @kv : 2 x !llm.kv<1x32, f16, f16, 2048>
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
    %1 = llm.layer 1 "decoder" (%h = %0 : tensor<?x64xf32>) {
      %wq = llm.weight dense<1.0> : tensor<64x64xf32>
      %wk = llm.weight dense<1.0> : tensor<32x64xf32>
      %q = llm.linear %h, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
      %k = llm.linear %h, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
      %kv = llm.kv @kv[1] : !llm.kv<1x32, f16, f16, 2048>
      llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
      %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
      %o = llm.linear %y, %wq : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
      llm.yield %o : tensor<?x64xf32>
    }
    %s = llm.select_rows %1, %rows : tensor<?x64xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}
