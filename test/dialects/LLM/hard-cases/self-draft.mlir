// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// A draft made of the model itself by skipping layers, and the step that verifies its tree. Draft and target name
// the same weights and the same caches: the draft reads the target's prefix, and the target writes over what the
// draft appended. Layer 1 is skipped: its result is its input.

!w = tensor<64x64xf16>
!head = tensor<512x64xf16>
!kv = !llm.kv<1x64, f16, f16, 256>

llm.source @model {path = "tiny.gguf", format = "gguf"}
llm.kv_cache @kv : 2 x !kv

// CHECK-LABEL: func.func @draft(
// CHECK: llm.layer 0 "attention"
// CHECK: llm.kv @kv[0]
// CHECK-NOT: llm.layer 1
func.func @draft(%ids: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x512xf32> {
  %table = llm.weight @model["token_embd.weight"] : !head
  %x = llm.embedding %ids, %table : !head -> tensor<?x64xf32>
  %y = llm.layer 0 "attention" (%h = %x : tensor<?x64xf32>) {
    %w = llm.weight @model["blk.0.attn_q.weight"] : !w
    %q = llm.linear %h, %w : tensor<?x64xf32>, !w -> tensor<?x1x64xf32>
    %kv = llm.kv @kv[0] : !kv
    llm.kv_append %kv, %q, %q at %positions : !kv, tensor<?x1x64xf32>, tensor<?x1x64xf32>
    %a = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x64xf32>, !kv
    %o = llm.linear %a, %w residual(%h) : tensor<?x1x64xf32>, !w -> tensor<?x64xf32>
    llm.yield %o : tensor<?x64xf32>
  }
  %logits = llm.linear %y, %table : tensor<?x64xf32>, !head -> tensor<?x512xf32>
  return %logits : tensor<?x512xf32>
}

// CHECK-LABEL: func.func @verify(
func.func @verify(%ids: tensor<8xi32>, %parents: tensor<8xi32>, %base: tensor<1xi32>, %parameters: tensor<8xi32>,
                  %history: tensor<256xi32>) -> (tensor<8xi32>, tensor<1xi32>, tensor<1xi32>) {
  // CHECK: %[[MASK:.*]], %[[P:.*]] = llm.tree_mask %[[PARENTS:.*]] base(%[[BASE:.*]]) : tensor<8xi32>
  %mask, %positions = llm.tree_mask %parents base(%base) : tensor<8xi32>
  %table = llm.weight @model["token_embd.weight"] : !head
  %x = llm.embedding %ids, %table : !head -> tensor<8x64xf32>
  %y = llm.layer 0 "attention" (%h = %x : tensor<8x64xf32>) {
    %w = llm.weight @model["blk.0.attn_q.weight"] : !w
    %q = llm.linear %h, %w : tensor<8x64xf32>, !w -> tensor<8x1x64xf32>
    %kv = llm.kv @kv[0] : !kv
    // CHECK: llm.kv_append %[[KV0:.*]], %{{.*}}, %{{.*}} at %[[P]] base(%[[BASE]])
    llm.kv_append %kv, %q, %q at %positions base(%base) : !kv, tensor<8x1x64xf32>, tensor<8x1x64xf32>
    // CHECK: llm.tree_attention %{{.*}}, %[[KV0]] base %[[BASE]] mask %[[MASK]] at %[[P]] scale(0.125)
    %a = llm.tree_attention %q, %kv base %base mask %mask at %positions scale(0.125) : tensor<8x1x64xf32>, !kv
    %o = llm.linear %a, %w residual(%h) : tensor<8x1x64xf32>, !w -> tensor<8x64xf32>
    llm.yield %o : tensor<8x64xf32>
  }
  // CHECK: llm.layer 1 "ffn"
  %z = llm.layer 1 "ffn" (%h = %y : tensor<8x64xf32>) {
    %w = llm.weight @model["blk.1.ffn.weight"] : !w
    %f = llm.activation silu %h : tensor<8x64xf32>
    %o = llm.linear %f, %w residual(%h) : tensor<8x64xf32>, !w -> tensor<8x64xf32>
    llm.yield %o : tensor<8x64xf32>
  }
  %logits = llm.linear %z, %table : tensor<8x64xf32>, !head -> tensor<8x512xf32>
  // CHECK: %[[A:.*]], %[[N:.*]], %[[BONUS:.*]] = llm.tree_verify %{{.*}}, %{{.*}}, %[[PARENTS]], %{{.*}}, %{{.*}} base %[[BASE]] : tensor<8x512xf32>, tensor<256xi32>
  %accepted, %count, %bonus = llm.tree_verify %logits, %ids, %parents, %parameters, %history base %base
      : tensor<8x512xf32>, tensor<256xi32>
  %kv = llm.kv @kv[0] : !kv
  // CHECK: llm.kv_compact %{{.*}} base %[[BASE]] accepted %[[A]] count %[[N]] : !kv, tensor<8xi32>
  llm.kv_compact %kv base %base accepted %accepted count %count : !kv, tensor<8xi32>
  return %accepted, %count, %bonus : tensor<8xi32>, tensor<1xi32>, tensor<1xi32>
}
