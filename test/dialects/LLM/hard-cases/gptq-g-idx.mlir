// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// GPTQ with activation order: g_idx[k] names the group of column k, so groups are not contiguous. Sorted by group
// they are; the activations are gathered into the same order. Nothing is requantised and no order sits in the text.

// CHECK: #gptq = #llm.layout<gptq>
!w = tensor<576x576x!llm.q<u4, 64:f16 zero u4>, #llm.layout<gptq>>

llm.source @model {path = "model.safetensors", format = "safetensors"}

// CHECK-LABEL: func.func @o_proj(
func.func @o_proj(%x: tensor<?x576xf32>, %h: tensor<?x576xf32>) -> tensor<?x576xf32> {
  %codes = llm.weight @model["model.layers.0.self_attn.o_proj.qweight"] : tensor<72x576xi32>
  %scales = llm.weight @model["model.layers.0.self_attn.o_proj.scales"] : tensor<9x576xf16>
  %zeros = llm.weight @model["model.layers.0.self_attn.o_proj.qzeros"] : tensor<9x72xi32>
  %groups = llm.weight @model["model.layers.0.self_attn.o_proj.g_idx"] : tensor<576xi32>
  // CHECK: %[[ORDER:.*]] = llm.argsort %{{.*}} : tensor<576xi32>
  // CHECK-NEXT: %[[W:.*]] = llm.assemble %{{.*}} scales(%{{.*}} : tensor<9x576xf16>) zeros(%{{.*}} : tensor<9x72xi32>) order(%[[ORDER]] : tensor<576xi32>) : tensor<72x576xi32> -> tensor<576x576x!llm.q<u4, 64:f16 zero u4>, #gptq>
  // CHECK-NEXT: %[[X:.*]] = llm.gather %{{.*}}, %[[ORDER]] axis 1 : tensor<?x576xf32>, tensor<576xi32>
  // CHECK-NEXT: llm.linear %[[X]], %[[W]] residual(
  %order = llm.argsort %groups : tensor<576xi32>
  %w = llm.assemble %codes scales(%scales : tensor<9x576xf16>) zeros(%zeros : tensor<9x72xi32>)
      order(%order : tensor<576xi32>) : tensor<72x576xi32> -> !w
  %xo = llm.gather %x, %order axis 1 : tensor<?x576xf32>, tensor<576xi32>
  %y = llm.linear %xo, %w residual(%h) : tensor<?x576xf32>, !w -> tensor<?x576xf32>
  return %y : tensor<?x576xf32>
}
