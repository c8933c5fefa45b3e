// RUN: llm-opt --llm-tree-verify %s | FileCheck %s
// RUN: llm-opt --llm-tree-verify --llm-tree-verify %s | FileCheck %s

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>

// What was there stays.
// CHECK: func.func @forward(%{{.*}}: tensor<?xi32>, %[[P:.*]]: tensor<?xi32>, %{{.*}}: tensor<?xi32>)
// CHECK: llm.kv_append %{{.*}} at %[[P]] :
// CHECK: llm.attention
// CHECK: llm.select_rows

// CHECK: func.func @verify(%[[TOKENS:.*]]: tensor<?xi32>, %[[PARENTS:.*]]: tensor<?xi32>, %[[PARAMETERS:.*]]: tensor<8xi32>, %[[HISTORY:.*]]: tensor<?xi32>, %[[BASE:.*]]: tensor<1xi32>) -> (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>)
// CHECK: %[[MASK:.*]], %[[AT:.*]] = llm.tree_mask %[[PARENTS]] base(%[[BASE]])
// CHECK: llm.embedding %[[TOKENS]]
// CHECK: llm.rope %{{.*}} at %[[AT]]
// CHECK: llm.kv_append %{{.*}} at %[[AT]] base(%[[BASE]])
// CHECK: %[[Y:.*]] = llm.tree_attention %{{.*}}, %{{.*}} base %[[BASE]] mask %[[MASK]] at %[[AT]] scale(0.125) softcap(30.0) window(128) sinks(4)
// CHECK-NOT: llm.select_rows
// CHECK: %[[LOGITS:.*]] = llm.linear %[[Y]]
// CHECK: %[[A:.*]], %[[N:.*]], %[[B:.*]] = llm.tree_verify %[[LOGITS]], %[[TOKENS]], %[[PARENTS]], %[[PARAMETERS]], %[[HISTORY]] base %[[BASE]]
// CHECK: %[[KV:.*]] = llm.kv @kv[0]
// CHECK: llm.kv_compact %[[KV]] base %[[BASE]] accepted %[[A]] count %[[N]]
// CHECK: return %[[A]], %[[N]], %[[B]]
// CHECK-NOT: func.func
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
  %table = llm.weight dense<1.0> : tensor<40x64xf32>
  %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
  %wq = llm.weight dense<1.0> : tensor<64x64xf32>
  %wk = llm.weight dense<1.0> : tensor<32x64xf32>
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
  %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
  %kr = llm.rope %k at %positions base(10000.0) : tensor<?x1x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
  llm.kv_append %kv, %kr, %k at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %y = llm.attention %q, %kv at %positions scale(0.125) softcap(30.0) window(128) sinks(4) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
  %s = llm.select_rows %y, %rows : tensor<?x2x32xf32>, tensor<?xi32>
  %logits = llm.linear %s, %table : tensor<?x2x32xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
  return %logits : tensor<?x40xf32>
}
