// RUN: llm-opt --llm-clean-up --split-input-file %s | FileCheck %s

llm.source @m {path = "m.gguf", format = "gguf"}

// CHECK-LABEL: @equal_weights
func.func @equal_weights() -> (tensor<8x4xf16>, tensor<8x4xf16>) {
  // CHECK-NEXT: %[[W:.*]] = llm.weight @m["w"]
  // CHECK-NEXT: return %[[W]], %[[W]]
  %a = llm.weight @m["w"] : tensor<8x4xf16>
  %b = llm.weight @m["w"] : tensor<8x4xf16>
  return %a, %b : tensor<8x4xf16>, tensor<8x4xf16>
}

// -----

// CHECK-LABEL: @slices
func.func @slices(%x: tensor<?x96xf32>, %w: tensor<64x32xf16>)
    -> (tensor<?x96xf32>, tensor<?x8xf32>, tensor<16x16xf16>) {
  // CHECK-NEXT: %[[A:.*]] = llm.slice %arg0 20 to 28 axis 1
  // CHECK-NEXT: %[[R:.*]] = llm.slice %arg1 0 to 16 axis 0
  // CHECK-NEXT: %[[C:.*]] = llm.slice %[[R]] 8 to 24 axis 1
  // CHECK-NEXT: return %arg0, %[[A]], %[[C]]
  %all = llm.slice %x 0 to 96 axis 1 : tensor<?x96xf32>
  %0 = llm.slice %x 16 to 48 axis 1 : tensor<?x96xf32>
  %1 = llm.slice %0 4 to 12 axis 1 : tensor<?x32xf32>
  %2 = llm.slice %w 0 to 16 axis 0 : tensor<64x32xf16>
  %3 = llm.slice %2 8 to 24 axis 1 : tensor<16x32xf16>
  return %all, %1, %3 : tensor<?x96xf32>, tensor<?x8xf32>, tensor<16x16xf16>
}

// -----

// CHECK-LABEL: @concats
func.func @concats(%a: tensor<64x32xf16>, %b: tensor<32x32xf16>)
    -> (tensor<32x32xf16>, tensor<8x32xf16>, tensor<160x32xf16>, tensor<48x32xf16>) {
  // CHECK-DAG: %[[P:.*]] = llm.slice %arg1 8 to 16 axis 0 : tensor<32x32xf16>
  // CHECK-DAG: %[[F:.*]] = llm.concat %arg0, %arg0, %arg1 axis 0
  // CHECK-DAG: %[[C:.*]] = llm.concat %arg0, %arg1 axis 0
  // A slice over the border stays.
  // CHECK-DAG: %[[S:.*]] = llm.slice %[[C]] 32 to 80 axis 0
  // CHECK: return %arg1, %[[P]], %[[F]], %[[S]]
  %c = llm.concat %a, %b axis 0 : tensor<64x32xf16>, tensor<32x32xf16>
  %0 = llm.slice %c 64 to 96 axis 0 : tensor<96x32xf16>
  %1 = llm.slice %c 72 to 80 axis 0 : tensor<96x32xf16>
  %one = llm.concat %a axis 0 : tensor<64x32xf16>
  %2 = llm.concat %one, %c axis 0 : tensor<64x32xf16>, tensor<96x32xf16>
  %3 = llm.slice %c 32 to 80 axis 0 : tensor<96x32xf16>
  return %0, %1, %2, %3 : tensor<32x32xf16>, tensor<8x32xf16>, tensor<160x32xf16>, tensor<48x32xf16>
}

// -----

// CHECK-LABEL: @shapes
func.func @shapes(%w: tensor<64x32xf16>)
    -> (tensor<64x32xf16>, tensor<4x16x32xf16>, tensor<64x32xf16>, tensor<16x4x32xf16>) {
  // CHECK-DAG: %[[R:.*]] = llm.reshape %arg0 : tensor<64x32xf16> -> tensor<4x16x32xf16>
  // CHECK-DAG: %[[T:.*]] = llm.transpose %[[R]] [1, 0, 2]
  // CHECK: return %arg0, %[[R]], %arg0, %[[T]]
  %0 = llm.reshape %w : tensor<64x32xf16> -> tensor<8x8x32xf16>
  %1 = llm.reshape %0 : tensor<8x8x32xf16> -> tensor<64x32xf16>
  %2 = llm.reshape %0 : tensor<8x8x32xf16> -> tensor<4x16x32xf16>
  %3 = llm.transpose %w [1, 0] : tensor<64x32xf16>
  %4 = llm.transpose %3 [1, 0] : tensor<32x64xf16>
  %5 = llm.transpose %2 [2, 1, 0] : tensor<4x16x32xf16>
  %6 = llm.transpose %5 [1, 2, 0] : tensor<32x16x4xf16>
  return %1, %2, %4, %6 : tensor<64x32xf16>, tensor<4x16x32xf16>, tensor<64x32xf16>, tensor<16x4x32xf16>
}

// -----

// CHECK-LABEL: @defaults
func.func @defaults(%x: tensor<?x32xf32>, %h: tensor<?x2x16xf32>, %p: tensor<?xi32>)
    -> (tensor<?x32xf32>, tensor<?xf32>, tensor<?x32xf32>, tensor<?x2x16xf32>) {
  // CHECK: llm.rms_norm %arg0 eps(1.0e-05) : tensor
  // CHECK: llm.rms_scale %arg0 eps(1.0e-05) : tensor
  // CHECK: llm.layer_norm %arg0 eps(1.0e-05) count(40) : tensor
  // CHECK: llm.rope %arg1 at %arg2 base(10000.0) : tensor
  %n = llm.rms_norm %x eps(1.0e-5) count(32) : tensor<?x32xf32>
  %s = llm.rms_scale %x eps(1.0e-5) count(32) : tensor<?x32xf32>
  %l = llm.layer_norm %x eps(1.0e-5) count(40) : tensor<?x32xf32>
  %r = llm.rope %h at %p base(10000.0) dims(16) scale(1.0) amplitude(1.0) : tensor<?x2x16xf32>
  return %n, %s, %l, %r : tensor<?x32xf32>, tensor<?xf32>, tensor<?x32xf32>, tensor<?x2x16xf32>
}

// -----

// CHECK-LABEL: @scales
func.func @scales(%ids: tensor<?xi32>, %t: tensor<64x32xf16>, %x: tensor<?x32xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: %[[E:.*]] = llm.embedding %arg0, %arg1 scale(12.0)
  // CHECK: %[[S:.*]] = llm.scale %arg2 by 2.0
  // CHECK: return %[[E]], %[[S]], %arg2
  %e = llm.embedding %ids, %t : tensor<64x32xf16> -> tensor<?x32xf32>
  %0 = llm.scale %e by 12.0 : tensor<?x32xf32>
  %1 = llm.scale %x by 4.0 : tensor<?x32xf32>
  %2 = llm.scale %1 by 0.5 : tensor<?x32xf32>
  %3 = llm.scale %x by 1.0 : tensor<?x32xf32>
  return %0, %2, %3 : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// An embedding that something else reads unscaled stays apart from its scale.
// CHECK-LABEL: @shared_embedding
func.func @shared_embedding(%ids: tensor<?xi32>, %t: tensor<64x32xf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: llm.embedding %arg0, %arg1 : tensor
  // CHECK: llm.scale
  %e = llm.embedding %ids, %t : tensor<64x32xf16> -> tensor<?x32xf32>
  %0 = llm.scale %e by 12.0 : tensor<?x32xf32>
  return %0, %e : tensor<?x32xf32>, tensor<?x32xf32>
}
