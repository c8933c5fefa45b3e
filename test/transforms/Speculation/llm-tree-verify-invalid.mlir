// RUN: llm-opt --llm-tree-verify --split-input-file --verify-diagnostics %s

// expected-error @below {{expects a function @forward(ids, positions, rows) -> logits, but got none}}
module {
}

// -----

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
func.func @forward(%q: tensor<?x2x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x2x32xf32> {
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  // expected-error @below {{expects a causal mask to verify trees with, but got another}}
  %y = llm.attention %q, %kv at %positions scale(0.125) mask full : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 64>
  return %y : tensor<?x2x32xf32>
}

// -----

llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
func.func @forward(%k: tensor<?x1x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x1x32xf32> {
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  // expected-error @below {{expects slots that are the positions, but got slots or a base of their own}}
  llm.kv_append %kv, %k, %k at %positions slots(%rows) : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  return %k : tensor<?x1x32xf32>
}
