// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK-LABEL: func.func @sample(
func.func @sample(%logits: tensor<1x49152xf32>, %parameters: tensor<8xi32>, %history: tensor<2048xi32>,
                  %positions: tensor<1xi32>) -> tensor<1xi32> {
  // CHECK: llm.sample %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} : tensor<1x49152xf32>, tensor<2048xi32>
  %tokens = llm.sample %logits, %parameters, %history at %positions : tensor<1x49152xf32>, tensor<2048xi32>
  return %tokens : tensor<1xi32>
}

// CHECK-LABEL: func.func @tree_mask(
func.func @tree_mask(%parents: tensor<8xi32>, %base: tensor<1xi32>) -> (tensor<8x2xi32>, tensor<8xi32>) {
  // CHECK: llm.tree_mask %{{.*}} : tensor<8xi32>
  %mask, %depths = llm.tree_mask %parents : tensor<8xi32>
  // CHECK: llm.tree_mask %{{.*}} base(%{{.*}}) : tensor<8xi32>
  %m, %positions = llm.tree_mask %parents base(%base) : tensor<8xi32>
  %fixed = llm.weight dense<[-1, 0, 0, 2]> : tensor<4xi32>
  // CHECK: llm.tree_mask %{{.*}} : tensor<4xi32>
  %mf, %d = llm.tree_mask %fixed : tensor<4xi32>
  return %mask, %depths : tensor<8x2xi32>, tensor<8xi32>
}

// CHECK-LABEL: func.func @tree_verify(
func.func @tree_verify(%logits: tensor<8x49152xf32>, %tokens: tensor<8xi32>, %parents: tensor<8xi32>,
                       %parameters: tensor<8xi32>, %history: tensor<2048xi32>, %base: tensor<1xi32>)
    -> (tensor<8xi32>, tensor<1xi32>, tensor<1xi32>) {
  // CHECK: llm.tree_verify %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} base %{{.*}} : tensor<8x49152xf32>, tensor<2048xi32>
  %accepted, %count, %bonus = llm.tree_verify %logits, %tokens, %parents, %parameters, %history base %base
      : tensor<8x49152xf32>, tensor<2048xi32>
  return %accepted, %count, %bonus : tensor<8xi32>, tensor<1xi32>, tensor<1xi32>
}
