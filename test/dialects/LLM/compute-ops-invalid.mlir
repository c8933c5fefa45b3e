// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @embedding_c1(%ids: tensor<?xi32>, %w: tensor<16x8xf32>) {
  // expected-error@+1 {{expects a table VxD and a result TxD, but got 16x8 and ?x9}}
  %x = llm.embedding %ids, %w : tensor<16x8xf32> -> tensor<?x9xf32>
  return
}

// -----

func.func @embedding_rows(%ids: tensor<4xi32>, %w: tensor<16x8xf32>) {
  // expected-error@+1 {{failed to verify that 'ids' has one i32 a row of 'result'}}
  %x = "llm.embedding"(%ids, %w) : (tensor<4xi32>, tensor<16x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @rms_norm_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects the shape of the input ?x8, but got ?x9}}
  %y = llm.rms_norm %x eps(1.0e-5) : tensor<?x8xf32> -> tensor<?x9xf32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<?x8xf32>, %g: tensor<9xf32>) {
  // expected-error@+1 {{expects a gamma of 8 elements, but got 9}}
  %y = llm.rms_norm %x gamma(%g : tensor<9xf32>) eps(1.0e-5) : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c3_eps(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects an eps that is not negative, but got -1}}
  %y = llm.rms_norm %x eps(-1.0) : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c3_count(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects a positive count, but got 0}}
  %y = llm.rms_norm %x eps(1.0) count(0) : tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects the shape of the input ?x8, but got ?x2x4}}
  %y = llm.layer_norm %x eps(1.0e-5) : tensor<?x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<?x8xf32>, %b: tensor<9xf32>) {
  // expected-error@+1 {{expects a beta of 8 elements, but got 9}}
  %y = llm.layer_norm %x beta(%b : tensor<9xf32>) eps(1.0e-5) : tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_c3(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects an eps that is not negative, but got nan}}
  %y = llm.layer_norm %x eps(0x7FC00000) : tensor<?x8xf32>
  return
}

// -----

func.func @rms_scale_c1(%x: tensor<?x2x8xf32>) {
  // expected-error@+1 {{expects an input TxD, but got ?x2x8}}
  %y = llm.rms_scale %x eps(1.0e-5) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rms_scale_c2(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects a positive count, but got -2}}
  %y = llm.rms_scale %x eps(1.0e-5) count(-2) : tensor<?x8xf32>
  return
}

// -----

func.func @linear_c1(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects a static weight NxK or HxNxK, but got 8}}
  %y = llm.linear %x, %w : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x1xf32>
  return
}

// -----

func.func @linear_c2(%x: tensor<?x9xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expects rows of 8 elements, but got 'tensor<?x9xf32>'}}
  %y = llm.linear %x, %w : tensor<?x9xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c2_heads(%x: tensor<?x3x8xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error@+1 {{expects rows of 8 elements a head, but got 'tensor<?x3x8xf32>'}}
  %y = llm.linear %x, %w : tensor<?x3x8xf32>, tensor<2x4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @linear_c3(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a result of 4 elements a row, but got 'tensor<?x2x3xf32>'}}
  %y = llm.linear %x, %w : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x2x3xf32>
  return
}

// -----

func.func @linear_c4(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expects as many rows as the input's 2, but got 3}}
  %y = llm.linear %x, %w : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @linear_c5(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %g: tensor<4xf32>) {
  // expected-error@+1 {{expects a gamma of 8 elements, but got 4}}
  %y = llm.linear %x, %w gamma(%g : tensor<4xf32>) : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c6(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects a bias of 4 elements, but got 8}}
  %y = llm.linear %x, %w bias(%b : tensor<8xf32>) : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c7(%x: tensor<?x8x!llm.q<i8, *:f32>>, %w: tensor<4x8xf32>, %r: tensor<?xf32>) {
  // expected-error@+1 {{expects a float input beside gamma or row_scale, but got 'tensor<?x8x!llm.q<i8, *:f32>>'}}
  %y = llm.linear %x, %w row_scale(%r) : tensor<?x8x!llm.q<i8, *:f32>>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_residual(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>, %r: tensor<2x5xf32>) {
  // expected-error@+1 {{failed to verify that 'residual' has the type of the result}}
  %y = "llm.linear"(%x, %w, %r) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 1>}>
      : (tensor<2x8xf32>, tensor<4x8xf32>, tensor<2x5xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gated_linear_c1(%x: tensor<?x8xf32>, %a: tensor<4x8xf32>, %b: tensor<5x8xf32>) {
  // expected-error@+1 {{expects weights of equal static shape FxK, but got 4x8 and 5x8}}
  %y = llm.gated_linear silu %x, %a, %b : tensor<?x8xf32>, tensor<4x8xf32>, tensor<5x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @gated_linear_c2(%x: tensor<?x8xf32>, %a: tensor<4x8xf32>) {
  // expected-error@+1 {{expects an input Tx8 and a result Tx4, but got 'tensor<?x8xf32>' and 'tensor<?x5xf32>'}}
  %y = llm.gated_linear silu %x, %a, %a : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @gated_linear_c3(%x: tensor<?x8xf32>, %a: tensor<4x8xf32>, %g: tensor<9xf32>) {
  // expected-error@+1 {{expects a gamma of 8 elements, but got 9}}
  %y = llm.gated_linear silu %x, %a, %a gamma(%g : tensor<9xf32>)
      : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @gated_linear_c4(%x: tensor<?x8x!llm.q<i8, *:f32>>, %a: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{expects a float input beside gamma or row_scale, but got 'tensor<?x8x!llm.q<i8, *:f32>>'}}
  %y = llm.gated_linear silu %x, %a, %a gamma(%g : tensor<8xf32>)
      : tensor<?x8x!llm.q<i8, *:f32>>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @sparse_linear_c1(%x: tensor<?x8xf32>, %v: tensor<4x2xf32>, %i: tensor<4x3xi32>) {
  // expected-error@+1 {{expects values and index of equal static shape NxP, but got 4x2 and 4x3}}
  %y = llm.sparse_linear %x, %v, %i : tensor<?x8xf32>, tensor<4x2xf32>, tensor<4x3xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @sparse_linear_c2(%x: tensor<?x8xf32>, %v: tensor<4x2xf32>, %i: tensor<4x2xi32>) {
  // expected-error@+1 {{expects an input TxK and a result Tx4, but got 'tensor<?x8xf32>' and 'tensor<?x5xf32>'}}
  %y = llm.sparse_linear %x, %v, %i : tensor<?x8xf32>, tensor<4x2xf32>, tensor<4x2xi32> -> tensor<?x5xf32>
  return
}

// -----

func.func @rope_c1(%x: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects an input TxHxE, but got ?x8}}
  %y = llm.rope %x at %p base(10000.0) : tensor<?x8xf32>
  return
}

// -----

func.func @rope_c2_odd(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects an even number of dims from 2 to 8, but got 5}}
  %y = llm.rope %x at %p base(10000.0) dims(5) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c2_large(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects an even number of dims from 2 to 8, but got 10}}
  %y = llm.rope %x at %p base(10000.0) dims(10) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c3_neither(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a base or frequencies, but got neither}}
  %y = llm.rope %x at %p : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c3_both(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>, %f: tensor<4xf32>) {
  // expected-error@+1 {{expects a base or frequencies, but got both}}
  %y = llm.rope %x at %p base(10000.0) frequencies(%f : tensor<4xf32>) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c3_base(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a positive base, but got 0}}
  %y = llm.rope %x at %p base(0.0) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c4(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>, %f: tensor<8xf32>) {
  // expected-error@+1 {{expects 4 frequencies, but got 8}}
  %y = llm.rope %x at %p frequencies(%f : tensor<8xf32>) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c4_long(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>, %f: tensor<4xf32>) {
  // expected-error@+1 {{expects 2x4 frequencies, but got 4}}
  %y = llm.rope %x at %p frequencies(%f : tensor<4xf32>) long_from(64) : tensor<?x2x8xf32>
  return
}

// -----

func.func @rope_c4_base(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects frequencies beside long_from, but got none}}
  %y = llm.rope %x at %p base(10000.0) long_from(64) : tensor<?x2x8xf32>
  return
}

// -----

func.func @hadamard_c1_power(%x: tensor<?x96xf32>) {
  // expected-error@+1 {{expects a block that is a power of two and divides 96, but got 48}}
  %y = llm.hadamard %x block(48) : tensor<?x96xf32>
  return
}

// -----

func.func @hadamard_c1_divides(%x: tensor<?x96xf32>) {
  // expected-error@+1 {{expects a block that is a power of two and divides 96, but got 64}}
  %y = llm.hadamard %x block(64) : tensor<?x96xf32>
  return
}

// -----

func.func @hadamard_c2(%x: tensor<?x96xf32>) {
  // expected-error@+1 {{expects 2 words of signs, but got 1}}
  %y = llm.hadamard %x block(32) signs [5] : tensor<?x96xf32>
  return
}
