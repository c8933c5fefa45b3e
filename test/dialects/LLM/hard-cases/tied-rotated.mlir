// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// SmolLM2 with tied embedding, its residual stream rotated. The norms' gammas and the rotation are folded into the
// weights of the layers (a file of new weights); embedding and head stay one table, so the stream is rotated once
// after the embedding and back once before the final norm, online. 576 = 9 * 64.

// CHECK-DAG: !Q4_1_t = !llm.q<u4, 32:f16+f16>
// CHECK-DAG: !kv = !llm.kv<3x64, f16, f16, 2048>
!table = tensor<49152x576x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
!square = tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8>>>
!narrow = tensor<192x576x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8>>>
!wide = tensor<1536x576x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8>>>
!down = tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8>>>
!kv = !llm.kv<3x64, f16, f16, 2048>

llm.source @model {path = "smollm2.gguf", format = "gguf"}
llm.source @rotated {path = "smollm2.rotated.safetensors", format = "safetensors"}
llm.tokenizer @tokenizer {source = @model}
llm.kv_cache @kv : 30 x !kv

// CHECK-LABEL: func.func @forward(
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x49152xf32> {
  // CHECK: %[[TABLE:.*]] = llm.weight @model["token_embd.weight"] : tensor<49152x576x!Q8_0_t, #gguf>
  // CHECK-NEXT: %[[E:.*]] = llm.embedding %{{.*}}, %[[TABLE]]
  // CHECK-NEXT: %[[X:.*]] = llm.hadamard %[[E]] block(64) : tensor<?x576xf32>
  // CHECK-NEXT: llm.layer 0 "decoder" (%h = %[[X]] : tensor<?x576xf32>) {
  %table = llm.weight @model["token_embd.weight"] : !table
  %e = llm.embedding %ids, %table : !table -> tensor<?x576xf32>
  %x = llm.hadamard %e block(64) : tensor<?x576xf32>
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x576xf32>) {
    %wq = llm.weight @rotated["blk.0.attn_q.weight"] : !square
    %wk = llm.weight @rotated["blk.0.attn_k.weight"] : !narrow
    %wv = llm.weight @rotated["blk.0.attn_v.weight"] : !narrow
    %wo = llm.weight @rotated["blk.0.attn_output.weight"] : !square
    %n = llm.rms_norm %h eps(1.0e-5) : tensor<?x576xf32>
    %q = llm.linear %n, %wq : tensor<?x576xf32>, !square -> tensor<?x9x64xf32>
    %k = llm.linear %n, %wk : tensor<?x576xf32>, !narrow -> tensor<?x3x64xf32>
    %v = llm.linear %n, %wv : tensor<?x576xf32>, !narrow -> tensor<?x3x64xf32>
    %qr = llm.rope %q at %positions base(10000.0) interleaved : tensor<?x9x64xf32>
    %kr = llm.rope %k at %positions base(10000.0) interleaved : tensor<?x3x64xf32>
    %kv = llm.kv @kv[0] : !kv
    llm.kv_append %kv, %kr, %v at %positions : !kv, tensor<?x3x64xf32>, tensor<?x3x64xf32>
    %a = llm.attention %qr, %kv at %positions scale(0.125) : tensor<?x9x64xf32>, !kv
    %r = llm.linear %a, %wo residual(%h) : tensor<?x9x64xf32>, !square -> tensor<?x576xf32>
    %wg = llm.weight @rotated["blk.0.ffn_gate.weight"] : !wide
    %wu = llm.weight @rotated["blk.0.ffn_up.weight"] : !wide
    %wd = llm.weight @rotated["blk.0.ffn_down.weight"] : !down
    // The second norm, folded into the products that read it.
    %s = llm.rms_scale %r eps(1.0e-5) : tensor<?x576xf32>
    %f = llm.gated_linear silu %r, %wg, %wu row_scale(%s) : tensor<?x576xf32>, !wide, !wide -> tensor<?x1536xf32>
    %d = llm.linear %f, %wd residual(%r) : tensor<?x1536xf32>, !down -> tensor<?x576xf32>
    llm.yield %d : tensor<?x576xf32>
  }
  // CHECK: %[[S:.*]] = llm.select_rows
  // CHECK-NEXT: %[[B:.*]] = llm.hadamard %[[S]] block(64) : tensor<?x576xf32>
  // CHECK: llm.rms_norm %[[B]] gamma(
  // CHECK: llm.linear %{{.*}}, %[[TABLE]]
  %z = llm.select_rows %y, %rows : tensor<?x576xf32>, tensor<?xi32>
  %back = llm.hadamard %z block(64) : tensor<?x576xf32>
  %g = llm.weight @model["output_norm.weight"] : tensor<576xf32>
  %n = llm.rms_norm %back gamma(%g : tensor<576xf32>) eps(1.0e-5) : tensor<?x576xf32>
  %logits = llm.linear %n, %table : tensor<?x576xf32>, !table -> tensor<?x49152xf32>
  return %logits : tensor<?x49152xf32>
}
