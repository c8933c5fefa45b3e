// RUN: llm-opt --split-input-file --llm-lower-to-plan="targets=lavapipe" --verify-diagnostics %s

// expected-error @below {{expects a function @forward, but got none}}
module {
}

// -----

module {
  // expected-error @below {{expects (ids, positions, rows: tensor<?xi32>) -> tensor<?xVxf32>, but got}}
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?xi32> {
    return %ids : tensor<?xi32>
  }
}

// -----

// expected-error @below {{expects a context of at least 1 slot, but got 0}}
module {
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x4xf32> {
    %w = llm.weight dense<1.0> : tensor<4x4xf32>
    %x = llm.embedding %ids, %w : tensor<4x4xf32> -> tensor<?x4xf32>
    return %x : tensor<?x4xf32>
  }
}

// -----

module {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x4xf32> {
    %w = llm.weight dense<1.0> : tensor<4x4xf32>
    %x = llm.embedding %ids, %w : tensor<4x4xf32> -> tensor<?x4xf32>
    %v = llm.weight dense<1.0> : tensor<1x4xf32>
    %g = llm.linear %x, %v : tensor<?x4xf32>, tensor<1x4xf32> -> tensor<?x1xf32>
    // expected-error @below {{expects an operation that a kernel covers on target 'lavapipe', but there is none for it; run llm-default-pipeline first, or rewrite it with operations that have one}}
    %y = llm.multiply %x, %g : tensor<?x4xf32>, tensor<?x1xf32>
    return %y : tensor<?x4xf32>
  }
}

// -----

module {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x4xf32> {
    %w = llm.weight dense<1.0> : tensor<4x4xf32>
    // expected-error @below {{expects the token ids or the positions that the function is given, but got ids that are computed}}
    %x = llm.embedding %rows, %w : tensor<4x4xf32> -> tensor<?x4xf32>
    return %x : tensor<?x4xf32>
  }
}

// -----

// A weight that no kernel reads.
module {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  llm.source @m {path = "m.safetensors", format = "safetensors"}
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x4xf32> {
    %w = llm.weight @m["w"] : tensor<4x128x!llm.q<cb<nf4, 4>, 64:f16>>
    %t = llm.weight dense<1.0> : tensor<4x128xf32>
    %x = llm.embedding %ids, %t : tensor<4x128xf32> -> tensor<?x128xf32>
    // expected-error @below {{expects a weight in one of the block formats of GGUF, or in groups with one scale, but got}}
    %y = llm.linear %x, %w : tensor<?x128xf32>, tensor<4x128x!llm.q<cb<nf4, 4>, 64:f16>> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
}

// -----

// Keys and queries must turn alike: one kernel turns both.
module {
  llm.kv_cache @kv : 1 x !llm.kv<2x32, f16, f16, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
    %w = llm.weight dense<1.0> : tensor<4x64xf32>
    %x = llm.embedding %ids, %w : tensor<4x64xf32> -> tensor<?x64xf32>
    %wq = llm.weight dense<1.0> : tensor<64x64xf32>
    %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %kr = llm.rope %q at %positions base(10000.0) : tensor<?x2x32xf32>
    %kv = llm.kv @kv[0] : !llm.kv<2x32, f16, f16, 64>
    // expected-error @below {{expects keys and queries that are rotated alike, but got different rotations}}
    llm.kv_append %kv, %kr, %q at %positions : !llm.kv<2x32, f16, f16, 64>, tensor<?x2x32xf32>, tensor<?x2x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x2x32xf32>, !llm.kv<2x32, f16, f16, 64>
    %z = llm.linear %y, %wq : tensor<?x2x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
    return %z : tensor<?x64xf32>
  }
}

// -----

// Scales that no kernel reads.
module {
  llm.source @model {path = "x.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<2x32, !llm.q<i8, *:f16>, !llm.q<i8, *:f16>, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["t"] : tensor<40x64xf32>
    %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %q = llm.linear %x, %table : tensor<?x64xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    %w = llm.weight @model["w"] : tensor<64x64xf32>
    %k = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    // expected-error @+1 {{expects a cache of f32, f16, 8-bit integers with an f32 scale a head, or 4-bit ones}}
    %kv = llm.kv @kv[0] : !llm.kv<2x32, !llm.q<i8, *:f16>, !llm.q<i8, *:f16>, 64>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<2x32, !llm.q<i8, *:f16>, !llm.q<i8, *:f16>, 64>, tensor<?x2x32xf32>, tensor<?x2x32xf32>
    return %q : tensor<?x40xf32>
  }
}

// -----

// What goes to a cache is transformed by the append, without signs.
module {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x32xf32> {
    %w = llm.weight dense<1.0> : tensor<32x32xf32>
    %x = llm.embedding %ids, %w : tensor<32x32xf32> -> tensor<?x32xf32>
    %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    // expected-error @below {{expects a plain transform of queries and keys, but got signs or an inverse}}
    %h = llm.hadamard %k block(8) signs [5] : tensor<?x1x32xf32>
    %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
    llm.kv_append %kv, %h, %k at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %k, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 64>
    %z = llm.linear %y, %w : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    return %z : tensor<?x32xf32>
  }
}

// -----

// Keys of which no binding spans a split: slots of 8192 heads of 128 in f16.
module {
  llm.kv_cache @kv : 1 x !llm.kv<8192x128, f16, f16, 1024>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x1024xf32> {
    // expected-error @below {{expects 256 slots of the keys of a layer, and all scales, within the 134217728 bytes that a binding spans on target 'lavapipe', but a slot takes 2097152 and the scales 0; compile with a shorter --context}}
    %kv = llm.kv @kv[0] : !llm.kv<8192x128, f16, f16, 1024>
    %w = llm.weight dense<1.0> : tensor<1024x1024xf32>
    %x = llm.embedding %ids, %w : tensor<1024x1024xf32> -> tensor<?x1024xf32>
    %wk = llm.weight dense<1.0> : tensor<1048576x1024xf32>
    %k = llm.linear %x, %wk : tensor<?x1024xf32>, tensor<1048576x1024xf32> -> tensor<?x8192x128xf32>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<8192x128, f16, f16, 1024>, tensor<?x8192x128xf32>, tensor<?x8192x128xf32>
    %s = llm.select_rows %x, %rows : tensor<?x1024xf32>, tensor<?xi32>
    %logits = llm.linear %s, %w : tensor<?x1024xf32>, tensor<1024x1024xf32> -> tensor<?x1024xf32>
    return %logits : tensor<?x1024xf32>
  }
}
