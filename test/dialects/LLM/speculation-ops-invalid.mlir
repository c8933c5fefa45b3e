// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @sample_c1(%l: tensor<1x2x8xf32>, %s: tensor<8xi32>, %h: tensor<64xi32>, %p: tensor<1xi32>) {
  // expected-error@+1 {{expects logits TxV, but got 1x2x8}}
  %t = llm.sample %l, %s, %h at %p : tensor<1x2x8xf32>, tensor<64xi32>
  return
}

// -----

func.func @sample_parameters(%l: tensor<1x8xf32>, %s: tensor<7xi32>, %h: tensor<64xi32>, %p: tensor<1xi32>) {
  // expected-error@+1 {{operand #1 must be tensor<8xi32>, but got 'tensor<7xi32>'}}
  %t = "llm.sample"(%l, %s, %h, %p) : (tensor<1x8xf32>, tensor<7xi32>, tensor<64xi32>, tensor<1xi32>) -> tensor<1xi32>
  return
}

// -----

func.func @tree_mask_c1(%p: tensor<65xi32>) {
  // expected-error@+1 {{expects at most 64 nodes, but got 65}}
  %m, %d = llm.tree_mask %p : tensor<65xi32>
  return
}

// -----

func.func @tree_mask_c2() {
  %p = llm.weight dense<[-1, 0, 2]> : tensor<3xi32>
  // expected-error@+1 {{expects the parent of node 2 to come before it, but got 2}}
  %m, %d = llm.tree_mask %p : tensor<3xi32>
  return
}

// -----

func.func @tree_mask_c2_constant() {
  %p = arith.constant dense<[-1, -2]> : tensor<2xi32>
  // expected-error@+1 {{expects the parent of node 1 to come before it, but got -2}}
  %m, %d = llm.tree_mask %p : tensor<2xi32>
  return
}

// -----

func.func @tree_verify_c1(%l: tensor<65x8xf32>, %t: tensor<65xi32>, %s: tensor<8xi32>, %h: tensor<64xi32>, %b: tensor<1xi32>) {
  // expected-error@+1 {{expects logits TxV of at most 64 nodes, but got 65x8}}
  %a, %c, %n = llm.tree_verify %l, %t, %t, %s, %h base %b : tensor<65x8xf32>, tensor<64xi32>
  return
}
