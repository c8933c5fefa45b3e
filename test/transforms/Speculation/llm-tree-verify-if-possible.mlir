// RUN: llm-opt --llm-tree-verify=if-possible %s | FileCheck %s
// RUN: llm-opt --llm-tree-verify=if-possible --remarks-filter=llm --remark-format=emitRemark %s -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// CHECK-NOT: @verify
// REMARK: no trees: expects a causal mask to verify
llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
func.func @forward(%q: tensor<?x2x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x2x32xf32> {
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
  %y = llm.attention %q, %kv at %positions scale(0.125) mask full : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 64>
  return %y : tensor<?x2x32xf32>
}
