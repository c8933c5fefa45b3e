// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// Multi-head latent attention (DeepSeek-V2): the cache holds one latent of 512 and one rotated key of 64 a token.
// The two halves of kv_b_proj are absorbed: one, transposed, into the queries, the other into the result; both are
// one product a head. Values are a prefix of the keys.

!wq = tensor<3072x2048xbf16>
!wa = tensor<576x2048xbf16>
!wb = tensor<4096x512xbf16>
!wo = tensor<2048x2048xbf16>
!kv = !llm.kv<1x576, f16, prefix<512>, 4096>

llm.source @model {path = "deepseek/model.safetensors", format = "safetensors"}
// CHECK: llm.kv_cache @latent : 27 x !kv
llm.kv_cache @latent : 27 x !kv

// CHECK-LABEL: func.func @attention(
func.func @attention(%x: tensor<?x2048xf32>, %h: tensor<?x2048xf32>, %positions: tensor<?xi32>) -> tensor<?x2048xf32> {
  %wq = llm.weight @model["model.layers.0.self_attn.q_proj.weight"] : !wq
  %wa = llm.weight @model["model.layers.0.self_attn.kv_a_proj_with_mqa.weight"] : !wa
  %g = llm.weight @model["model.layers.0.self_attn.kv_a_layernorm.weight"] : tensor<512xbf16>
  %wb = llm.weight @model["model.layers.0.self_attn.kv_b_proj.weight"] : !wb
  %wo = llm.weight @model["model.layers.0.self_attn.o_proj.weight"] : !wo

  // What a token puts into the cache.
  %c = llm.linear %x, %wa : tensor<?x2048xf32>, !wa -> tensor<?x1x576xf32>
  %c0 = llm.slice %c 0 to 512 axis 2 : tensor<?x1x576xf32>
  %k0 = llm.slice %c 512 to 576 axis 2 : tensor<?x1x576xf32>
  %latent = llm.rms_norm %c0 gamma(%g : tensor<512xbf16>) eps(1.0e-6) : tensor<?x1x512xf32>
  %kr = llm.rope %k0 at %positions base(10000.0) interleaved : tensor<?x1x64xf32>
  %key = llm.concat %latent, %kr axis 2 : tensor<?x1x512xf32>, tensor<?x1x64xf32>
  %kv = llm.kv @latent[0] : !kv
  // CHECK: llm.kv_append %{{.*}}, %{{.*}} at %{{.*}} : !kv, tensor<?x1x576xf32>
  llm.kv_append %kv, %key at %positions : !kv, tensor<?x1x576xf32>

  // The two halves of kv_b_proj, a matrix a head.
  %heads = llm.reshape %wb : !wb -> tensor<16x256x512xbf16>
  %k_half = llm.slice %heads 0 to 128 axis 1 : tensor<16x256x512xbf16>
  // CHECK: llm.transpose %{{.*}} [0, 2, 1] : tensor<16x128x512xbf16>
  %absorb = llm.transpose %k_half [0, 2, 1] : tensor<16x128x512xbf16>
  %v_half = llm.slice %heads 128 to 256 axis 1 : tensor<16x256x512xbf16>

  %q = llm.linear %x, %wq : tensor<?x2048xf32>, !wq -> tensor<?x16x192xf32>
  %q0 = llm.slice %q 0 to 128 axis 2 : tensor<?x16x192xf32>
  %q1 = llm.slice %q 128 to 192 axis 2 : tensor<?x16x192xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x16x128xf32>, tensor<16x512x128xbf16> -> tensor<?x16x512xf32>
  %ql = llm.linear %q0, %absorb : tensor<?x16x128xf32>, tensor<16x512x128xbf16> -> tensor<?x16x512xf32>
  %qr = llm.rope %q1 at %positions base(10000.0) interleaved : tensor<?x16x64xf32>
  %query = llm.concat %ql, %qr axis 2 : tensor<?x16x512xf32>, tensor<?x16x64xf32>
  // CHECK: %[[A:.*]] = llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.07216878) : tensor<?x16x576xf32>, !kv
  // CHECK: llm.linear %[[A]], %{{.*}} : tensor<?x16x512xf32>, tensor<16x128x512xbf16> -> tensor<?x16x128xf32>
  %a = llm.attention %query, %kv at %positions scale(0.07216878365) : tensor<?x16x576xf32>, !kv
  %v = llm.linear %a, %v_half : tensor<?x16x512xf32>, tensor<16x128x512xbf16> -> tensor<?x16x128xf32>
  %y = llm.linear %v, %wo residual(%h) : tensor<?x16x128xf32>, !wo -> tensor<?x2048xf32>
  return %y : tensor<?x2048xf32>
}
