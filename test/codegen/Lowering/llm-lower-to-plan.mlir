// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1,4 context=64 logits-widths=1" %s | FileCheck %s
// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe,generic widths=1,4 context=64" %s | FileCheck --check-prefix=BOTH %s
// RUN: llm-opt --plan-pipeline="targets=lavapipe widths=1,4 context=64 kernels=false" %s | FileCheck --check-prefix=PIPELINE %s
// RUN: llm-opt --llm-tree-verify --llm-lower-to-plan="targets=lavapipe widths=1,4 context=64" %s | FileCheck --check-prefix=TREE %s

// A model with everything that lowering treats alike or apart: a fused QKV product, a folded norm, a gated product, an
// embedding that is also the head.

// The description of the model moves on, with the context that was compiled.
// CHECK: module attributes {plan.model = {architecture = "llama", context = 64 : i64, layers = 1 : i64, trained_context = 2048 : i64, vocabulary = 40 : i64}}
module attributes {llm.model = {architecture = "llama", context = 2048, layers = 1}} {
  // CHECK-NEXT: llm.source @model
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  // CHECK-NOT: llm.kv_cache
  // CHECK-NOT: func.func
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 2048>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x64x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %table : tensor<40x64x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x64xf32>
    %h = llm.layer 0 "decoder" (%a = %x : tensor<?x64xf32>) {
      %g = llm.weight @model["blk.0.attn_norm.weight"] : tensor<64xf32>
      %r = llm.rms_scale %a eps(1.0e-5) : tensor<?x64xf32>
      %wq = llm.weight @model["blk.0.attn_q.weight"] : tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %wk = llm.weight @model["blk.0.attn_k.weight"] : tensor<32x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %wv = llm.weight @model["blk.0.attn_v.weight"] : tensor<32x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %w = llm.concat %wq, %wk, %wv axis 0 : tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>, tensor<32x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>, tensor<32x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %qkv = llm.linear %a, %w gamma(%g : tensor<64xf32>) row_scale(%r)
          : tensor<?x64xf32>, tensor<128x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x4x32xf32>
      %q = llm.slice %qkv 0 to 2 axis 1 : tensor<?x4x32xf32>
      %k = llm.slice %qkv 2 to 3 axis 1 : tensor<?x4x32xf32>
      %v = llm.slice %qkv 3 to 4 axis 1 : tensor<?x4x32xf32>
      %qr = llm.rope %q at %positions base(10000.0) : tensor<?x2x32xf32>
      %kr = llm.rope %k at %positions base(10000.0) : tensor<?x1x32xf32>
      %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
      llm.kv_append %kv, %kr, %v at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
      %y = llm.attention %qr, %kv at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 2048>
      %wo = llm.weight @model["blk.0.attn_output.weight"] : tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %b = llm.linear %y, %wo residual(%a)
          : tensor<?x2x32xf32>, tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x64xf32>
      %g2 = llm.weight @model["blk.0.ffn_norm.weight"] : tensor<64xf32>
      %n = llm.rms_norm %b gamma(%g2 : tensor<64xf32>) eps(1.0e-5) : tensor<?x64xf32>
      %gate = llm.weight @model["blk.0.ffn_gate.weight"] : tensor<96x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %up = llm.weight @model["blk.0.ffn_up.weight"] : tensor<96x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %f = llm.gated_linear silu %n, %gate, %up
          : tensor<?x64xf32>, tensor<96x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>, tensor<96x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x96xf32>
      %down = llm.weight @model["blk.0.ffn_down.weight"] : tensor<64x96x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
      %o = llm.linear %f, %down residual(%b)
          : tensor<?x96xf32>, tensor<64x96x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x64xf32>
      llm.yield %o : tensor<?x64xf32>
    }
    %s = llm.select_rows %h, %rows : tensor<?x64xf32>, tensor<?xi32>
    %gl = llm.weight @model["output_norm.weight"] : tensor<64xf32>
    %l = llm.rms_norm %s gamma(%gl : tensor<64xf32>) eps(1.0e-5) : tensor<?x64xf32>
    %logits = llm.linear %l, %table : tensor<?x64xf32>, tensor<40x64x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// CHECK: plan.target @lavapipe {
// The cache is one buffer, keys and values of 64 slots each; a sampled token may lie one step behind the context.
// CHECK-DAG: plan.buffer control @control bytes 256
// CHECK-DAG: plan.buffer history @history bytes 272
// CHECK-DAG: plan.buffer logits @logits bytes 160
// CHECK-DAG: plan.buffer kv @kv_cache bytes 8192
// CHECK: plan.kv_cache @kv in @kv_cache at 0 bytes 8192 {capacity = 64 : i64, head_size = 32 : i64, heads = 1 : i64, key_type = "f16", layers = 1 : i64, plane_offsets = array<i64: 0, 4096>, slot_bytes = array<i64: 64, 64>, value_type = "f16"}
// CHECK-DAG: plan.kernel @[[QKV1:linear_q4_1_128x64_t1_.*]] "linear" {
// CHECK-DAG: plan.kernel @[[QKV4:linear_q4_1_128x64_t4_.*]] "linear" {

// An append program ends with the last append.
// CHECK: plan.program @append_1 append width 1 {
// CHECK: plan.dispatch @embedding{{.*}} "embedding"
// The product finds the factor of the norm that it was given.
// CHECK-NOT: rms_factor
// It rotates and appends what it makes, too.
// CHECK: %[[K:.*]] = plan.view @kv_cache at 0 bytes 4096
// CHECK: %[[V:.*]] = plan.view @kv_cache at 4096 bytes 4096
// CHECK: plan.dispatch @[[QKV1]]({{.*}}out %[[K]], out %[[V]]) groups {{.*}} "layer 0 linear, rope, append" {macs = 8192 : i64, nanoseconds = {{[0-9]+}} : i64, touched = {{[0-9]+}} : i64}
// CHECK-NOT: plan.dispatch

// CHECK: plan.program @sample_1 sample width 1 {
// CHECK: "layer 0 linear, rope, append"
// CHECK: "layer 0 attention"
// CHECK: "layer 0 linear, residual"
// CHECK: "layer 0 norm"
// CHECK: "layer 0 gate, up"
// CHECK: "layer 0 linear, residual"
// One row in, one row out: nothing to select.
// CHECK: plan.dispatch @norm_64{{.*}} groups [1, 1, 1] "norm"
// CHECK: plan.dispatch @linear_q8_0_40x64_t1{{.*}} "head"
// CHECK: plan.dispatch @sample{{.*}}(inout %{{.*}}, inout %{{.*}}, inout %{{.*}}) groups [1, 1, 1] "sample"
// CHECK-NEXT: {{^ *}$}}

// CHECK: plan.program @logits_1 logits width 1 {
// CHECK: "head"
// CHECK-NEXT: {{^ *}$}}

// CHECK: plan.program @append_4 append width 4 {
// CHECK: plan.dispatch @[[QKV4]](
// CHECK: plan.program @sample_4 sample width 4 {
// The norm picks the last row; the head is the kernel of one row.
// CHECK: "layer 0 linear, residual"
// CHECK: "layer 0 linear, residual"
// CHECK: plan.dispatch @norm_64{{.*}} groups [1, 1, 1] "norm"
// CHECK: plan.dispatch @linear_q8_0_40x64_t1{{.*}} "head"
// CHECK: "sample"
// CHECK-NOT: @logits_4

// Both targets share every tensor; the tied table is there once.
// BOTH-COUNT-1: llm.weight @model["token_embd.weight"]
// BOTH: plan.target @lavapipe
// Without subgroups that shuffle, the append is a dispatch of its own.
// BOTH: plan.target @generic
// BOTH: "layer 0 linear"
// BOTH: plan.dispatch @rope_append{{.*}} "layer 0 rope, append"
// BOTH-NOT: plan.tensor

// PIPELINE: plan.tensor @{{.*}} layout "{{.*}}" bytes {{[0-9]+}} at {{[0-9]+}} {
// PIPELINE: plan.buffer weights @weights
// PIPELINE: plan.buffer scratch @scratch
// PIPELINE-NOT: plan.scratch
// PIPELINE: plan.barrier

// A tree's table comes first, its walk and the moves of the cache last. One node is no tree.
// TREE-NOT: plan.program @verify_1
// TREE: plan.program @verify_4 verify width 4 {
// TREE: plan.dispatch @tree_table_64_{{.*}}(inout %{{.*}}, out %[[TREE:.*]]) groups [2, 1, 1] "tree"
// TREE: plan.dispatch @rope_append{{.*}} "layer 0 rope, append"
// TREE: plan.dispatch @attention{{.*}}in %[[TREE]]) groups [1, 4, 1] "layer 0 attention"
// TREE: "head"
// TREE: plan.dispatch @sample_40_{{.*}}in %[[TREE]], out %[[DRAWN:.*]]) groups [4, 1, 1] "sample nodes"
// TREE: plan.dispatch @tree_accept_4_{{.*}}in %[[DRAWN]]) groups [1, 1, 1] "accept"
// TREE: plan.dispatch @kv_compact_1x32_{{.*}} "compact"
// TREE-NOT: plan.dispatch
