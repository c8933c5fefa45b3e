// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @activation_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects the shape of the input ?x8, but got ?x9}}
  %y = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x9xf32>
  return
}

// -----

func.func @activation_kind(%x: tensor<?x8xf32>) {
  // expected-error@+2 {{expected one of [relu, relu2, silu, gelu, gelu_tanh, gelu_quick, sigmoid, tanh] for elementwise nonlinearity, got: swish}}
  // expected-error@+1 {{failed to parse LLM_ActivationKindAttr parameter 'value' which is to be a `::mlir::llm::ActivationKind`}}
  %y = llm.activation swish %x : tensor<?x8xf32>
  return
}

// -----

func.func @gated_activation_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects the shape of the input ?x8, but got ?x9}}
  %y = llm.gated_activation silu %x, %x : tensor<?x8xf32> -> tensor<?x9xf32>
  return
}

// -----

func.func @multiply_c1(%x: tensor<?x8xf32>, %y: tensor<?x2xf32>) {
  // expected-error@+1 {{expects a factor of shape ?x8 or with 1 in its last dimension, but got ?x2}}
  %z = llm.multiply %x, %y : tensor<?x8xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @add_type(%x: tensor<?x8xf32>, %y: tensor<?x9xf32>) {
  // expected-error@+1 {{'llm.add' op requires the same type for all operands and results}}
  %z = "llm.add"(%x, %y) : (tensor<?x8xf32>, tensor<?x9xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @scale_number(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects a number such as 0.125, but got "a"}}
  %z = llm.scale %x by "a" : tensor<?x8xf32>
  return
}

// -----

func.func @softcap_c1(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects a positive cap, but got 0}}
  %y = llm.softcap %x at 0.0 : tensor<?x8xf32>
  return
}

// -----

func.func @select_rows_type(%x: tensor<?x8xf32>, %r: tensor<3xi32>) {
  // expected-error@+2 {{'llm.select_rows' op inferred type(s) 'tensor<3x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = "llm.select_rows"(%x, %r) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @route_c1(%x: tensor<?x2x8xf32>) {
  // expected-error@+1 {{expects logits TxX, but got ?x2x8}}
  %i, %w = llm.route %x top 2 : tensor<?x2x8xf32>
  return
}

// -----

func.func @route_c2(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects to choose 1 to 8 experts, but got 9}}
  %i, %w = llm.route %x top 9 : tensor<?x8xf32>
  return
}

// -----

func.func @route_c3(%x: tensor<?x8xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expects a bias of 8 elements, but got 4}}
  %i, %w = llm.route %x top 2 bias(%b : tensor<4xf32>) : tensor<?x8xf32>
  return
}

// -----

func.func @route_c4_alone(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects groups and top_groups together, but got only groups}}
  %i, %w = llm.route %x top 2 groups(4) : tensor<?x8xf32>
  return
}

// -----

func.func @route_c4_divides(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects groups that divide 8, of which some are chosen, but got 1 of 3}}
  %i, %w = llm.route %x top 2 groups(3) top_groups(1) : tensor<?x8xf32>
  return
}

// -----

func.func @route_c4_by_best(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects groups for by_best, but got none}}
  %i, %w = llm.route %x top 2 by_best : tensor<?x8xf32>
  return
}

// -----

func.func @expert_linear_c1(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a static weight XxNxK, but got 4x8}}
  %y = llm.expert_linear %x, %i, %w : tensor<?x8xf32>, tensor<?x2xi32>, tensor<4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c2(%x: tensor<?x8xf32>, %i: tensor<?xi32>, %w: tensor<3x4x8xf32>) {
  // expected-error@+1 {{expects ids Txk, but got ?}}
  %y = llm.expert_linear %x, %i, %w : tensor<?x8xf32>, tensor<?xi32>, tensor<3x4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c3(%x: tensor<?x9xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>) {
  // expected-error@+1 {{expects an input Tx8 or Tx2x8, but got 'tensor<?x9xf32>'}}
  %y = llm.expert_linear %x, %i, %w : tensor<?x9xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c4(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>) {
  // expected-error@+1 {{expects a result ?x2x4, but got ?x4}}
  %y = llm.expert_linear %x, %i, %w : tensor<?x8xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @expert_linear_c5(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>, %p: tensor<?x3xf32>) {
  // expected-error@+1 {{expects weights of shape ?x2, but got ?x3}}
  %y = llm.expert_linear %x, %i, %w combine(%p : tensor<?x3xf32>)
      : tensor<?x8xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @expert_linear_c6(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>, %b: tensor<3x5xf32>) {
  // expected-error@+1 {{expects a bias 3x4, but got 3x5}}
  %y = llm.expert_linear %x, %i, %w bias(%b : tensor<3x5xf32>)
      : tensor<?x8xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c7_combine(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>, %r: tensor<?x2x4xf32>) {
  // expected-error@+1 {{expects combine beside a residual, but got none}}
  %y = llm.expert_linear %x, %i, %w residual(%r : tensor<?x2x4xf32>)
      : tensor<?x8xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @expert_linear_c7_type(%x: tensor<?x8xf32>, %i: tensor<?x2xi32>, %w: tensor<3x4x8xf32>, %p: tensor<?x2xf32>,
                                 %r: tensor<?x5xf32>) {
  // expected-error@+1 {{expects a residual of type 'tensor<?x4xf32>', but got 'tensor<?x5xf32>'}}
  %y = llm.expert_linear %x, %i, %w combine(%p : tensor<?x2xf32>) residual(%r : tensor<?x5xf32>)
      : tensor<?x8xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @cosine_gate_c1(%q: tensor<?x9x64xf32>, %v: tensor<?x640xf32>) {
  // expected-error@+1 {{expects heads TxHxE and rows TxH*E, but got ?x9x64 and ?x640}}
  %y = llm.cosine_gate %q, %q, %v eps(1.0e-5) : tensor<?x9x64xf32>, tensor<?x640xf32>
  return
}

// -----

func.func @cosine_gate_c2(%q: tensor<?x9x64xf32>, %v: tensor<?x576xf32>) {
  // expected-error@+1 {{expects a positive eps, but got 0}}
  %y = llm.cosine_gate %q, %q, %v eps(0.0) : tensor<?x9x64xf32>, tensor<?x576xf32>
  return
}

// -----

func.func @adapter_choice_c1(%p: tensor<?xi32>, %g: tensor<2xf32>) {
  // expected-error@+1 {{expects results Tx1, but got ?x2 and ?x1}}
  %ids, %gain = llm.adapter_choice %p of %g : tensor<?xi32>, tensor<2xf32> -> tensor<?x2xi32>, tensor<?x1xf32>
  return
}

// -----

func.func @adapter_choice_c2(%p: tensor<?xi32>, %g: tensor<0xf32>) {
  // expected-error@+1 {{expects at least one gain, but got 0}}
  %ids, %gain = llm.adapter_choice %p of %g : tensor<?xi32>, tensor<0xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  return
}
