// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// 2:4 sparsity with 4-bit values, and a sparse remainder of outliers beside it. The type says 2:4, the product is an
// ordinary linear. Of 1536 columns 768 codes are kept: 96 words; a pattern is 3 bits, 384 of them 36 words.

!w = tensor<576x1536x!llm.q<i4, 2:4, 64:f16>, #llm.layout<packed>>
!t = tensor<576x1536x!llm.q<i4, 2:4, 64:f16>, #llm.layout<tiled<rows = 8>>>

llm.source @pruned {path = "smollm2.pruned.safetensors", format = "safetensors"}

// CHECK-LABEL: func.func @down(
func.func @down(%x: tensor<?x1536xf32>, %h: tensor<?x576xf32>) -> tensor<?x576xf32> {
  %codes = llm.weight @pruned["blk.0.ffn_down.weight.codes"] : tensor<576x96xi32>
  %patterns = llm.weight @pruned["blk.0.ffn_down.weight.patterns"] : tensor<576x36xi32>
  %scales = llm.weight @pruned["blk.0.ffn_down.weight.scales"] : tensor<576x24xf16>
  // CHECK: llm.assemble %{{.*}} scales(%{{.*}} : tensor<576x24xf16>) patterns(%{{.*}} : tensor<576x36xi32>) : tensor<576x96xi32> -> tensor<576x1536x!llm.q<i4, 2:4, 64:f16>, #packed>
  %w = llm.assemble %codes scales(%scales : tensor<576x24xf16>) patterns(%patterns : tensor<576x36xi32>)
      : tensor<576x96xi32> -> !w
  // CHECK-NEXT: llm.relayout %{{.*}} : tensor<576x1536x!llm.q<i4, 2:4, 64:f16>, #packed> -> tensor<576x1536x!llm.q<i4, 2:4, 64:f16>, #tiled>
  %t = llm.relayout %w : !w -> !t
  // CHECK-NEXT: %[[D:.*]] = llm.linear
  %dense = llm.linear %x, %t residual(%h) : tensor<?x1536xf32>, !t -> tensor<?x576xf32>
  %values = llm.weight @pruned["blk.0.ffn_down.weight.outliers"] : tensor<576x8xf16>
  %index = llm.weight @pruned["blk.0.ffn_down.weight.columns"] : tensor<576x8xi32>
  // CHECK: llm.sparse_linear %{{.*}}, %{{.*}}, %{{.*}} residual(%[[D]])
  %y = llm.sparse_linear %x, %values, %index residual(%dense)
      : tensor<?x1536xf32>, tensor<576x8xf16>, tensor<576x8xi32> -> tensor<?x576xf32>
  return %y : tensor<?x576xf32>
}
