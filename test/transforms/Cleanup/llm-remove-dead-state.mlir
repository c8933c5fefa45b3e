// RUN: llm-opt --llm-remove-dead-state --split-input-file %s | FileCheck %s --implicit-check-not=@unused
// RUN: llm-opt --llm-remove-dead-state --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!kv = !llm.kv<2x16, f16, f16, 64>
llm.source @m {path = "m.gguf", format = "gguf"}
llm.source @words {path = "w.gguf", format = "gguf"}
llm.source @unused_file {path = "u.gguf", format = "gguf"}
llm.tokenizer @tokenizer {source = @words}
llm.kv_cache @kv : 3 x !kv
llm.kv_cache @unused_cache : 2 x !kv

// Cache 0 is written and never read, cache 2 is read by an attention whose result is dropped.
// CHECK: llm.source @m
// CHECK: llm.source @words
// CHECK: llm.kv_cache @kv : !
// CHECK-LABEL: @dead
// CHECK-NEXT: %[[H:.*]] = llm.kv @kv[0]
// CHECK-NEXT: %[[W:.*]] = llm.weight @m["k1"]
// CHECK-NEXT: %[[K:.*]] = llm.linear %arg0, %[[W]]
// CHECK-NEXT: llm.kv_append %[[H]], %[[K]], %[[K]]
// CHECK-NEXT: %[[Y:.*]] = llm.attention %arg1, %[[H]]
// CHECK-NEXT: return %[[Y]]
// REMARK-DAG: [Passed] llm-remove-dead-state | Category:llm | Remark="writes a cache that nobody reads"
// REMARK-DAG: [Passed] llm-remove-dead-state | Category:llm | Remark="2 of 3 caches are unused"
// REMARK-DAG: [Passed] llm-remove-dead-state | Category:llm | Remark="2 of 2 caches are unused"
// REMARK-DAG: [Passed] llm-remove-dead-state | Category:llm | Remark="the source is unused"
func.func @dead(%x: tensor<?x32xf32>, %q: tensor<?x2x16xf32>, %p: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %h0 = llm.kv @kv[0] : !kv
  %h1 = llm.kv @kv[1] : !kv
  %h2 = llm.kv @kv[2] : !kv
  %w0 = llm.weight @m["k0"] : tensor<32x32xf16>
  %k0 = llm.linear %x, %w0 : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  llm.kv_append %h0, %k0, %k0 at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %w1 = llm.weight @m["k1"] : tensor<32x32xf16>
  %k1 = llm.linear %x, %w1 : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  llm.kv_append %h1, %k1, %k1 at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  llm.kv_append %h2, %k1, %k1 at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h1 at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  %dropped = llm.attention %q, %h2 at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// Who takes a handle may read the cache.
// CHECK: llm.kv_cache @kv : !
func.func private @reader(!kv)
// CHECK-LABEL: @escapes
func.func @escapes(%k: tensor<?x2x16xf32>, %p: tensor<?xi32>) {
  // CHECK: llm.kv_append
  // REMARK: [Missed] llm-remove-dead-state | Category:llm | Remark="the handle of a cache leaves the ops of the dialect"
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %k at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  call @reader(%h) : (!kv) -> ()
  return
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : 2 x !kv

// A layer that was skipped (its caches written by nobody) leaves no gap, in whatever order the others are used.
// CHECK: llm.kv_cache @kv : !
// CHECK-LABEL: @gap
func.func @gap(%q: tensor<?x2x16xf32>, %p: tensor<?xi32>) -> tensor<?x2x16xf32> {
  // CHECK-NEXT: llm.kv @kv[0]
  %h = llm.kv @kv[1] : !kv
  llm.kv_append %h, %q, %q at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : 3 x !kv

// The only reader of cache 0 feeds cache 1, which nobody reads: the tail of a model whose head was cut off.
// CHECK: llm.kv_cache @kv : !
// CHECK-LABEL: @chain
func.func @chain(%q: tensor<?x2x16xf32>, %p: tensor<?xi32>) -> tensor<?x2x16xf32> {
  // CHECK-NEXT: %[[H:.*]] = llm.kv @kv[0]
  // CHECK-NEXT: llm.kv_append %[[H]], %arg0, %arg0
  // CHECK-NEXT: %[[Y:.*]] = llm.attention %arg0, %[[H]]
  // CHECK-NEXT: return %[[Y]]
  %h0 = llm.kv @kv[0] : !kv
  llm.kv_append %h0, %q, %q at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y0 = llm.attention %q, %h0 at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  %h1 = llm.kv @kv[1] : !kv
  llm.kv_append %h1, %y0, %y0 at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %h2 = llm.kv @kv[2] : !kv
  llm.kv_append %h2, %q, %q at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y2 = llm.attention %q, %h2 at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y2 : tensor<?x2x16xf32>
}
