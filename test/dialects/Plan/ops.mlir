// Every operation prints as it was written, also after a second round.
// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt --mlir-print-op-generic %s | llm-opt | FileCheck %s

// CHECK-LABEL: plan.tensor @blk.0.attn_q.weight layout "tiled<rows=8>" bytes 16 at 4096 {
// CHECK-NEXT:    %[[W:.*]] = arith.constant dense<1.000000e+00> : tensor<2x2xf32>
// CHECK-NEXT:    plan.yield %[[W]] : tensor<2x2xf32>
plan.tensor @blk.0.attn_q.weight layout "tiled<rows=8>" bytes 16 at 4096 {
  %0 = arith.constant dense<1.0> : tensor<2x2xf32>
  plan.yield %0 : tensor<2x2xf32>
}

// CHECK: plan.tensor @unplaced layout "raw" bytes 2000 {
plan.tensor @unplaced layout "raw" bytes 2000 {
  %0 = arith.constant dense<1.0> : tensor<500xf32>
  plan.yield %0 : tensor<500xf32>
}

// CHECK: plan.target @first profile "lavapipe" {
plan.target @first profile "lavapipe" {
  // CHECK-NEXT: plan.buffer weights @weights bytes 96468992 at 0
  plan.buffer weights @weights bytes 96468992 at 0
  // CHECK-NEXT: plan.buffer kv @cache bytes 4096
  plan.buffer kv @cache bytes 4096
  // CHECK-NEXT: plan.buffer control @control bytes 256
  plan.buffer control @control bytes 256
  // CHECK-NEXT: plan.buffer history @history bytes 8448
  plan.buffer history @history bytes 8448
  // CHECK-NEXT: plan.buffer logits @logits bytes 196608
  plan.buffer logits @logits bytes 196608
  // CHECK-NEXT: plan.kv_cache @kv in @cache at 0 bytes 4096 {capacity = 8 : i64, head_size = 32 : i64, heads = 2 : i64, key_type = "f16", layers = 2 : i64, plane_offsets = array<i64: 0, 1024>, slot_bytes = array<i64: 128, 128>, value_type = "f16"}
  plan.kv_cache @kv in @cache at 0 bytes 4096
    {layers = 2 : i64, heads = 2 : i64, head_size = 32 : i64, capacity = 8 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0, 1024>, slot_bytes = array<i64: 128, 128>}

  // A key, before it is built.
  // CHECK-NEXT: plan.kernel @linear_t1 "linear" {k = 2 : i64}
  plan.kernel @linear_t1 "linear" {k = 2 : i64}
  // With its IR.
  // CHECK-NEXT: plan.kernel @scale "elementwise" {} entry "main" access [1, 2] workgroup [8, 1, 1] {
  // CHECK-NEXT:   gpu.module @code {
  plan.kernel @scale "elementwise" {} entry "main" access [1, 2] workgroup [8, 1, 1] {
    gpu.module @code {
    }
  }
  // With the words of its binary.
  // CHECK: plan.kernel @attention "attention" {heads = 3 : i64} entry "main" access [1, 3, 2] workgroup [64, 1, 1] features ["subgroup_shuffle"] spirv dense<[119734787, 66304]> : tensor<2xi32> attributes {shared_bytes = 1024 : i32, subgroup_size = 8 : i32}
  plan.kernel @attention "attention" {heads = 3 : i64} entry "main" access [1, 3, 2] workgroup [64, 1, 1]
    features ["subgroup_shuffle"] spirv dense<[119734787, 66304]> : tensor<2xi32>
    attributes {shared_bytes = 1024 : i32, subgroup_size = 8 : i32}

  // CHECK: plan.program @sample_1 sample width 1 {
  plan.program @sample_1 sample width 1 {
    // CHECK-NEXT: %[[X:.*]] = plan.scratch "hidden" bytes 2304
    %x = plan.scratch "hidden" bytes 2304
    // CHECK-NEXT: %[[W:.*]] = plan.weight @blk.0.attn_q.weight at 0 bytes 16
    %w = plan.weight @blk.0.attn_q.weight at 0 bytes 16
    // CHECK-NEXT: %[[KV:.*]] = plan.view @cache at 2048 bytes 2048
    %kv = plan.view @cache at 2048 bytes 2048
    // CHECK-NEXT: %[[V:.*]] = plan.slice %[[KV]] at 1024 bytes 512
    %v = plan.slice %kv at 1024 bytes 512
    // CHECK-NEXT: %[[C:.*]] = plan.scratch "counts" bytes 12
    %c = plan.scratch "counts" bytes 12
    // CHECK-NEXT: plan.dispatch @linear_t1(in %[[W]], out %[[X]], inout %[[C]]) groups [18, 1, 1] "layer 0 q" {macs = 4 : i64, touched = 16 : i64}
    plan.dispatch @linear_t1(in %w, out %x, inout %c) groups [18, 1, 1] "layer 0 q" {macs = 4 : i64, touched = 16 : i64}
    // CHECK-NEXT: plan.barrier indirect
    plan.barrier indirect
    // CHECK-NEXT: plan.dispatch @attention(in %[[X]], inout %[[V]], out %[[X]]) groups [8, 2, 1] indirect %[[C]] push [3, 4]
    plan.dispatch @attention(in %x, inout %v, out %x) groups [8, 2, 1] indirect %c push [3, 4]
    // CHECK-NEXT: plan.barrier{{$}}
    plan.barrier
    // CHECK-NEXT: plan.dispatch @linear_t1(in %[[W]], out %[[X]], inout %[[C]]) groups [9, 1, 1] base [9, 0, 0] {nanoseconds = 7 : i64}
    plan.dispatch @linear_t1(in %w, out %x, inout %c) groups [9, 1, 1] base [9, 0, 0] {nanoseconds = 7 : i64}
    // CHECK-NEXT: plan.barrier submit
    plan.barrier submit
    // CHECK-NEXT: plan.barrier indirect submit
    plan.barrier indirect submit
  }
  // CHECK: plan.program @append_16 append width 16 {
  // CHECK-NEXT: }
  plan.program @append_16 append width 16 {
  }
}
