// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// A LoRA adapter as a side branch: two thin linears whose weights live in a source without a path, a slot that is
// filled at run time. The scale alpha/r sits between them; the base product is the residual of the second.

!w = tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>

llm.source @model {path = "smollm2.gguf", format = "gguf"}
// CHECK: llm.source @adapter{{$}}
llm.source @adapter

// CHECK-LABEL: func.func @query(
func.func @query(%x: tensor<?x576xf32>) -> tensor<?x9x64xf32> {
  %w = llm.weight @model["blk.0.attn_q.weight"] : !w
  // CHECK: %[[A:.*]] = llm.weight @adapter["blk.0.attn_q.weight.lora_a"] : tensor<16x576xf16>
  // CHECK-NEXT: %[[B:.*]] = llm.weight @adapter["blk.0.attn_q.weight.lora_b"] : tensor<576x16xf16>
  %a = llm.weight @adapter["blk.0.attn_q.weight.lora_a"] : tensor<16x576xf16>
  %b = llm.weight @adapter["blk.0.attn_q.weight.lora_b"] : tensor<576x16xf16>
  // CHECK-NEXT: %[[Q:.*]] = llm.linear
  // CHECK-NEXT: %[[D:.*]] = llm.linear %{{.*}}, %[[A]] : tensor<?x576xf32>, tensor<16x576xf16> -> tensor<?x16xf32>
  // CHECK-NEXT: %[[S:.*]] = llm.scale %[[D]] by 2.0 : tensor<?x16xf32>
  // CHECK-NEXT: llm.linear %[[S]], %[[B]] residual(%[[Q]]) : tensor<?x16xf32>, tensor<576x16xf16> -> tensor<?x9x64xf32>
  %q = llm.linear %x, %w : tensor<?x576xf32>, !w -> tensor<?x9x64xf32>
  %d = llm.linear %x, %a : tensor<?x576xf32>, tensor<16x576xf16> -> tensor<?x16xf32>
  %s = llm.scale %d by 2.0 : tensor<?x16xf32>
  %y = llm.linear %s, %b residual(%q) : tensor<?x16xf32>, tensor<576x16xf16> -> tensor<?x9x64xf32>
  return %y : tensor<?x9x64xf32>
}
