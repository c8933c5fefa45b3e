// RUN: llm-opt --llm-make-evict %s | FileCheck %s
// RUN: llm-opt --llm-make-evict --llm-make-evict %s | FileCheck %s

llm.kv_cache @kv : 2 x !llm.kv<1x32, f16, f16, 2048>

// One eviction a cache, with the rotation of its keys; the second has none.
// CHECK: func.func @forward
// CHECK: func.func @evict(%[[S:.*]]: tensor<1xi32>, %[[D:.*]]: tensor<1xi32>) {
// CHECK: %[[A:.*]] = llm.kv @kv[0]
// CHECK: %[[F:.*]] = llm.weight dense
// CHECK: llm.kv_evict %[[A]] sinks(%[[S]]) drop(%[[D]]) frequencies(%[[F]] : tensor<8xf32>) dims(16) scale(0.5) interleaved hadamard(32) : !kv
// CHECK: %[[B:.*]] = llm.kv @kv[1]
// CHECK: llm.kv_evict %[[B]] sinks(%[[S]]) drop(%[[D]]) : !kv
// CHECK-NEXT: return
// CHECK-NOT: func.func
func.func @forward(%x: tensor<?x1x32xf32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x1x32xf32> {
  %f = llm.weight dense<0.1> : tensor<8xf32>
  %r = llm.rope %x at %positions frequencies(%f : tensor<8xf32>) dims(16) scale(0.5) interleaved : tensor<?x1x32xf32>
  %k = llm.hadamard %r block(32) : tensor<?x1x32xf32>
  %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 2048>
  llm.kv_append %kv, %k, %x at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %kw = llm.kv @kv[1] : !llm.kv<1x32, f16, f16, 2048>
  llm.kv_append %kw, %x, %x at %positions : !llm.kv<1x32, f16, f16, 2048>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
  %y = llm.attention %k, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 2048>
  return %y : tensor<?x1x32xf32>
}
