// RUN: llm-opt --llm-make-evict=context=64 --split-input-file --verify-diagnostics %s

// expected-error @below {{expects a function @forward, but got none}}
module {
}

// -----

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %k: tensor<?x1x32xf32>) {
  %table = llm.weight dense<1.0> : tensor<64x32xf32>
  // expected-error @below {{expects positions that reach keys by a rotation alone}}
  %x = llm.embedding %positions, %table : tensor<64x32xf32> -> tensor<?x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  return
}

// -----

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
func.func @forward(%x: tensor<?x1x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) {
  // expected-error @below {{expects a rotation of whole keys}}
  %r = llm.rope %x at %positions base(10000.0) : tensor<?x1x32xf32>
  %k = llm.rms_norm %r eps(1.0e-05) : tensor<?x1x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  return
}

// -----

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 32>
func.func @forward(%x: tensor<?x1x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) {
  %f = llm.weight dense<0.1> : tensor<2x16xf32>
  // expected-error @below {{but they change at position 48 of 64; compile with --context=48}}
  %k = llm.rope %x at %positions frequencies(%f : tensor<2x16xf32>) long_from(48) : tensor<?x1x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 32>
  llm.kv_append %kv, %k, %x at %positions : !llm.kv<1x32, f16, f16, 32>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  return
}
