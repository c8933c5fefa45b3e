// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// A mixture of experts: the feed-forward block of Mixtral from Hugging Face, one tensor an expert, stacked by weight
// expressions; two of four experts a token, and a shared expert behind a gate as Qwen2-MoE has it.

!one = tensor<128x64xbf16>
!up = tensor<4x128x64xbf16>
!down = tensor<4x64x128xbf16>

llm.source @model {path = "mixtral/model.safetensors", format = "safetensors"}

// CHECK-LABEL: func.func @experts(
func.func @experts(%x: tensor<?x64xf32>, %h: tensor<?x64xf32>, %wg: !up, %wd: !down) -> tensor<?x64xf32> {
  %e0 = llm.weight @model["model.layers.0.block_sparse_moe.experts.0.w3.weight"] : !one
  %e1 = llm.weight @model["model.layers.0.block_sparse_moe.experts.1.w3.weight"] : !one
  %e2 = llm.weight @model["model.layers.0.block_sparse_moe.experts.2.w3.weight"] : !one
  %e3 = llm.weight @model["model.layers.0.block_sparse_moe.experts.3.w3.weight"] : !one
  // CHECK: %[[ALL:.*]] = llm.concat %{{.*}} axis 0
  // CHECK-NEXT: %[[WU:.*]] = llm.reshape %[[ALL]] : tensor<512x64xbf16> -> tensor<4x128x64xbf16>
  %all = llm.concat %e0, %e1, %e2, %e3 axis 0 : !one, !one, !one, !one
  %wu = llm.reshape %all : tensor<512x64xbf16> -> !up
  %wr = llm.weight @model["model.layers.0.block_sparse_moe.gate.weight"] : tensor<4x64xbf16>
  %scores = llm.linear %x, %wr : tensor<?x64xf32>, tensor<4x64xbf16> -> tensor<?x4xf32>
  // CHECK: %[[IDS:.*]], %[[P:.*]] = llm.route %{{.*}} top 2 normalise : tensor<?x4xf32>
  %ids, %p = llm.route %scores top 2 normalise : tensor<?x4xf32>
  %gate = llm.expert_linear %x, %ids, %wg : tensor<?x64xf32>, tensor<?x2xi32>, !up -> tensor<?x2x128xf32>
  // CHECK: llm.expert_linear %{{.*}}, %[[IDS]], %[[WU]] : {{.*}} -> tensor<?x2x128xf32>
  %up = llm.expert_linear %x, %ids, %wu : tensor<?x64xf32>, tensor<?x2xi32>, !up -> tensor<?x2x128xf32>
  %f = llm.gated_activation silu %gate, %up : tensor<?x2x128xf32>
  // CHECK: llm.expert_linear %{{.*}}, %[[IDS]], %{{.*}} combine(%[[P]] : tensor<?x2xf32>) residual(%{{.*}} : tensor<?x64xf32>)
  %y = llm.expert_linear %f, %ids, %wd combine(%p : tensor<?x2xf32>) residual(%h : tensor<?x64xf32>)
      : tensor<?x2x128xf32>, tensor<?x2xi32>, !down -> tensor<?x64xf32>
  // The shared expert.
  %ws = llm.weight @model["model.layers.0.mlp.shared_expert_gate.weight"] : tensor<1x64xbf16>
  %s = llm.linear %x, %ws : tensor<?x64xf32>, tensor<1x64xbf16> -> tensor<?x1xf32>
  %sg = llm.activation sigmoid %s : tensor<?x1xf32>
  // CHECK: llm.multiply %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x1xf32>
  %shared = llm.multiply %x, %sg : tensor<?x64xf32>, tensor<?x1xf32>
  %z = llm.add %y, %shared : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
