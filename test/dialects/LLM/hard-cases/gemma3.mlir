// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// Gemma 3: norms before and after each block, norms of queries and keys, layers with a window of 512 beside layers
// without, each kind with caches and a RoPE base of its own, a scaled and tied embedding. From Hugging Face, whose
// gammas are stored less one.

!wq = tensor<1024x640xbf16>
!wkv = tensor<256x640xbf16>
!wo = tensor<640x1024xbf16>
!wf = tensor<2048x640xbf16>
!wd = tensor<640x2048xbf16>
!table = tensor<262144x640xbf16>
!local = !llm.kv<1x256, f16, f16, 512, window = 512>
!global = !llm.kv<1x256, f16, f16, 8192>

llm.source @model {path = "gemma3/model.safetensors", format = "safetensors"}
// CHECK: llm.kv_cache @local : 15 x ![[LOCAL:kv[0-9]*]]
// CHECK: llm.kv_cache @global : 3 x ![[GLOBAL:kv[0-9]*]]
llm.kv_cache @local : 15 x !local
llm.kv_cache @global : 3 x !global

// CHECK-LABEL: func.func @forward(
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x262144xf32> {
  %one = llm.weight dense<1.0> : tensor<640xf32>
  %table = llm.weight @model["model.embed_tokens.weight"] : !table
  // CHECK: llm.embedding %{{.*}}, %{{.*}} scale(25.25) : tensor<262144x640xbf16> -> tensor<?x640xf32>
  %x = llm.embedding %ids, %table scale(25.25) : !table -> tensor<?x640xf32>
  // CHECK: llm.layer 0 "decoder"
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x640xf32>) {
    %g0 = llm.weight @model["model.layers.0.input_layernorm.weight"] : tensor<640xf32>
    %in = llm.add %g0, %one : tensor<640xf32>
    %n = llm.rms_norm %h gamma(%in : tensor<640xf32>) eps(1.0e-6) : tensor<?x640xf32>
    %wq = llm.weight @model["model.layers.0.self_attn.q_proj.weight"] : !wq
    %wk = llm.weight @model["model.layers.0.self_attn.k_proj.weight"] : !wkv
    %wv = llm.weight @model["model.layers.0.self_attn.v_proj.weight"] : !wkv
    %wo = llm.weight @model["model.layers.0.self_attn.o_proj.weight"] : !wo
    %q = llm.linear %n, %wq : tensor<?x640xf32>, !wq -> tensor<?x4x256xf32>
    %k = llm.linear %n, %wk : tensor<?x640xf32>, !wkv -> tensor<?x1x256xf32>
    %v = llm.linear %n, %wv : tensor<?x640xf32>, !wkv -> tensor<?x1x256xf32>
    %gq = llm.weight @model["model.layers.0.self_attn.q_norm.weight"] : tensor<256xf32>
    %gk = llm.weight @model["model.layers.0.self_attn.k_norm.weight"] : tensor<256xf32>
    %qn = llm.rms_norm %q gamma(%gq : tensor<256xf32>) eps(1.0e-6) : tensor<?x4x256xf32>
    %kn = llm.rms_norm %k gamma(%gk : tensor<256xf32>) eps(1.0e-6) : tensor<?x1x256xf32>
    %qr = llm.rope %qn at %positions base(10000.0) : tensor<?x4x256xf32>
    %kr = llm.rope %kn at %positions base(10000.0) : tensor<?x1x256xf32>
    %kv = llm.kv @local[0] : !local
    // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.0625) window(512) : tensor<?x4x256xf32>, ![[LOCAL]]
    llm.kv_append %kv, %kr, %v at %positions : !local, tensor<?x1x256xf32>, tensor<?x1x256xf32>
    %a = llm.attention %qr, %kv at %positions scale(0.0625) window(512) : tensor<?x4x256xf32>, !local
    %o = llm.linear %a, %wo : tensor<?x4x256xf32>, !wo -> tensor<?x640xf32>
    // CHECK: %[[POST:.*]] = llm.rms_norm
    // CHECK-NEXT: llm.add %h, %[[POST]]
    %g1 = llm.weight @model["model.layers.0.post_attention_layernorm.weight"] : tensor<640xf32>
    %post = llm.rms_norm %o gamma(%g1 : tensor<640xf32>) eps(1.0e-6) : tensor<?x640xf32>
    %r = llm.add %h, %post : tensor<?x640xf32>
    %g2 = llm.weight @model["model.layers.0.pre_feedforward_layernorm.weight"] : tensor<640xf32>
    %m = llm.rms_norm %r gamma(%g2 : tensor<640xf32>) eps(1.0e-6) : tensor<?x640xf32>
    %wg = llm.weight @model["model.layers.0.mlp.gate_proj.weight"] : !wf
    %wu = llm.weight @model["model.layers.0.mlp.up_proj.weight"] : !wf
    %wd = llm.weight @model["model.layers.0.mlp.down_proj.weight"] : !wd
    %gate = llm.linear %m, %wg : tensor<?x640xf32>, !wf -> tensor<?x2048xf32>
    %up = llm.linear %m, %wu : tensor<?x640xf32>, !wf -> tensor<?x2048xf32>
    %f = llm.gated_activation gelu_tanh %gate, %up : tensor<?x2048xf32>
    %d = llm.linear %f, %wd : tensor<?x2048xf32>, !wd -> tensor<?x640xf32>
    %g3 = llm.weight @model["model.layers.0.post_feedforward_layernorm.weight"] : tensor<640xf32>
    %p = llm.rms_norm %d gamma(%g3 : tensor<640xf32>) eps(1.0e-6) : tensor<?x640xf32>
    %s = llm.add %r, %p : tensor<?x640xf32>
    llm.yield %s : tensor<?x640xf32>
  }
  // What differs in a layer without a window.
  // CHECK: llm.layer 5 "attention"
  %z = llm.layer 5 "attention" (%h = %y : tensor<?x640xf32>) {
    %wq = llm.weight @model["model.layers.5.self_attn.q_proj.weight"] : !wq
    %wk = llm.weight @model["model.layers.5.self_attn.k_proj.weight"] : !wkv
    %wo = llm.weight @model["model.layers.5.self_attn.o_proj.weight"] : !wo
    %q = llm.linear %h, %wq : tensor<?x640xf32>, !wq -> tensor<?x4x256xf32>
    %k = llm.linear %h, %wk : tensor<?x640xf32>, !wkv -> tensor<?x1x256xf32>
    %qr = llm.rope %q at %positions base(1000000.0) : tensor<?x4x256xf32>
    %kr = llm.rope %k at %positions base(1000000.0) : tensor<?x1x256xf32>
    %kv = llm.kv @global[0] : !global
    llm.kv_append %kv, %kr, %k at %positions : !global, tensor<?x1x256xf32>, tensor<?x1x256xf32>
    // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.0625) : tensor<?x4x256xf32>, ![[GLOBAL]]
    %a = llm.attention %qr, %kv at %positions scale(0.0625) : tensor<?x4x256xf32>, !global
    %o = llm.linear %a, %wo residual(%h) : tensor<?x4x256xf32>, !wo -> tensor<?x640xf32>
    llm.yield %o : tensor<?x640xf32>
  }
  %last = llm.select_rows %z, %rows : tensor<?x640xf32>, tensor<?xi32>
  %logits = llm.linear %last, %table : tensor<?x640xf32>, !table -> tensor<?x262144xf32>
  return %logits : tensor<?x262144xf32>
}
