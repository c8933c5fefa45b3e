// RUN: llm-opt %s --canonicalize --cse | FileCheck %s

// Effects belong to the users of a handle: what writes a cache stays, what only reads one goes when nobody
// wants the result, and no two reads are merged across a write.
llm.source @model {path = "x.gguf", format = "gguf"}
llm.kv_cache @kv : 2 x !llm.kv<1x4, f16, f16, 64>

// CHECK-LABEL: func.func @dead(
func.func @dead(%q: tensor<?x1x4xf32>, %p: tensor<?xi32>) {
  // CHECK-NEXT: return
  %kv = llm.kv @kv[0] : !llm.kv<1x4, f16, f16, 64>
  %a = llm.attention %q, %kv at %p scale(1.0) : tensor<?x1x4xf32>, !llm.kv<1x4, f16, f16, 64>
  %w = llm.weight @model["k"] : tensor<4xf32>
  %n = llm.rms_norm %q gamma(%w : tensor<4xf32>) eps(0.0) : tensor<?x1x4xf32>
  return
}

// CHECK-LABEL: func.func @writes(
func.func @writes(%k: tensor<?x1x4xf32>, %p: tensor<?xi32>, %b: tensor<1xi32>, %s: tensor<4xi32>) {
  // CHECK-NEXT: %[[KV:.*]] = llm.kv @kv[0]
  // CHECK-NEXT: llm.kv_append %[[KV]]
  // CHECK-NEXT: llm.kv_compact %[[KV]]
  // CHECK-NEXT: llm.kv_evict %[[KV]]
  %kv = llm.kv @kv[0] : !llm.kv<1x4, f16, f16, 64>
  %again = llm.kv @kv[0] : !llm.kv<1x4, f16, f16, 64>
  llm.kv_append %kv, %k, %k at %p : !llm.kv<1x4, f16, f16, 64>, tensor<?x1x4xf32>, tensor<?x1x4xf32>
  llm.kv_compact %again base %b accepted %s count %b : !llm.kv<1x4, f16, f16, 64>, tensor<4xi32>
  llm.kv_evict %kv keep %s : !llm.kv<1x4, f16, f16, 64>, tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @reads(
func.func @reads(%q: tensor<?x1x4xf32>, %p: tensor<?xi32>)
    -> (tensor<?x1x4xf32>, tensor<?x1x4xf32>, tensor<?x1x4xf32>) {
  // CHECK: %[[A:.*]] = llm.attention
  // CHECK-NEXT: llm.kv_append
  // CHECK-NEXT: %[[B:.*]] = llm.attention
  // CHECK-NEXT: return %[[A]], %[[A]], %[[B]]
  %kv = llm.kv @kv[0] : !llm.kv<1x4, f16, f16, 64>
  %0 = llm.attention %q, %kv at %p scale(1.0) : tensor<?x1x4xf32>, !llm.kv<1x4, f16, f16, 64>
  %1 = llm.attention %q, %kv at %p scale(1.0) : tensor<?x1x4xf32>, !llm.kv<1x4, f16, f16, 64>
  llm.kv_append %kv, %q, %q at %p : !llm.kv<1x4, f16, f16, 64>, tensor<?x1x4xf32>, tensor<?x1x4xf32>
  %2 = llm.attention %q, %kv at %p scale(1.0) : tensor<?x1x4xf32>, !llm.kv<1x4, f16, f16, 64>
  return %0, %1, %2 : tensor<?x1x4xf32>, tensor<?x1x4xf32>, tensor<?x1x4xf32>
}

// A layer has the effects of what it holds.
// CHECK-LABEL: func.func @layers(
func.func @layers(%x: tensor<?x1x4xf32>, %p: tensor<?xi32>) {
  // CHECK-NEXT: llm.layer 1 "attention"
  // CHECK-NEXT:   llm.kv @kv[1]
  // CHECK-NEXT:   llm.kv_append
  // CHECK-NOT: llm.layer
  %y = llm.layer 0 "attention" (%h = %x : tensor<?x1x4xf32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x4, f16, f16, 64>
    %a = llm.attention %h, %kv at %p scale(1.0) : tensor<?x1x4xf32>, !llm.kv<1x4, f16, f16, 64>
    llm.yield %a : tensor<?x1x4xf32>
  }
  %z = llm.layer 1 "attention" (%h = %x : tensor<?x1x4xf32>) {
    %kv = llm.kv @kv[1] : !llm.kv<1x4, f16, f16, 64>
    llm.kv_append %kv, %h, %h at %p : !llm.kv<1x4, f16, f16, 64>, tensor<?x1x4xf32>, tensor<?x1x4xf32>
    llm.yield %h : tensor<?x1x4xf32>
  }
  return
}
