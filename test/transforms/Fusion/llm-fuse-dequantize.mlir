// RUN: llm-opt --llm-fuse-dequantize --split-input-file %s | FileCheck %s
// RUN: llm-opt --llm-fuse-dequantize=fuse-shared=true --split-input-file %s | FileCheck %s --check-prefix=SHARED
// RUN: llm-opt --llm-fuse-dequantize --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!q = tensor<64x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<?x32xf32>, %q: !q) -> tensor<?x64xf32> {
  // CHECK-NOT: llm.dequantize
  // CHECK: llm.linear %arg0, %arg1 : tensor<?x32xf32>, tensor<64x32x!{{.*}}> -> tensor<?x64xf32>
  // REMARK: [Passed] llm-fuse-dequantize | Category:llm | Remark="reads a quantised weight"
  %w = llm.dequantize %q : !q -> tensor<64x32xf32>
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

!q = tensor<64x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>

// CHECK-LABEL: @gated
func.func @gated(%x: tensor<?x32xf32>, %g: !q, %u: !q) -> tensor<?x64xf32> {
  // CHECK-NEXT: llm.gated_linear silu %arg0, %arg1, %arg2
  %gate = llm.dequantize %g : !q -> tensor<64x32xf32>
  %up = llm.dequantize %u : !q -> tensor<64x32xf32>
  %y = llm.gated_linear silu %x, %gate, %up : tensor<?x32xf32>, tensor<64x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

!q = tensor<64x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>

// CHECK-LABEL: @embedding
func.func @embedding(%ids: tensor<?xi32>, %q: !q) -> tensor<?x32xf32> {
  // CHECK-NEXT: llm.embedding %arg0, %arg1
  %table = llm.dequantize %q : !q -> tensor<64x32xf32>
  %x = llm.embedding %ids, %table : tensor<64x32xf32> -> tensor<?x32xf32>
  return %x : tensor<?x32xf32>
}

// -----

!q = tensor<4x64x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>

// CHECK-LABEL: @experts
func.func @experts(%x: tensor<?x32xf32>, %ids: tensor<?x2xi32>, %q: !q) -> tensor<?x2x64xf32> {
  // CHECK-NEXT: llm.expert_linear %arg0, %arg1, %arg2
  %w = llm.dequantize %q : !q -> tensor<4x64x32xf32>
  %y = llm.expert_linear %x, %ids, %w : tensor<?x32xf32>, tensor<?x2xi32>, tensor<4x64x32xf32> -> tensor<?x2x64xf32>
  return %y : tensor<?x2x64xf32>
}

// -----

// What chooses rows of a weight chooses them before they are dequantised.
!q = tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>

// CHECK-LABEL: @sink
func.func @sink(%x: tensor<?x32xf32>, %a: !q, %b: !q) -> tensor<?x96xf32> {
  // CHECK: %[[A:.*]] = llm.slice %arg1 0 to 32 axis 0
  // CHECK: %[[C:.*]] = llm.concat %[[A]], %arg2 axis 0
  // CHECK: %[[K:.*]] = llm.slice %[[C]] 32 to 64 axis 1
  // CHECK: llm.linear %arg0, %[[K]]
  %0 = llm.dequantize %a : !q -> tensor<64x64xf32>
  %1 = llm.dequantize %b : !q -> tensor<64x64xf32>
  %2 = llm.slice %0 0 to 32 axis 0 : tensor<64x64xf32>
  %3 = llm.concat %2, %1 axis 0 : tensor<32x64xf32>, tensor<64x64xf32>
  %4 = llm.slice %3 32 to 64 axis 1 : tensor<96x64xf32>
  %y = llm.linear %x, %4 : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// A slice that cuts groups needs the numbers themselves.
!q = tensor<64x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>

// CHECK-LABEL: @cut_group
func.func @cut_group(%x: tensor<?x16xf32>, %q: !q) -> tensor<?x64xf32> {
  // CHECK: %[[W:.*]] = llm.dequantize %arg1
  // CHECK: %[[S:.*]] = llm.slice %[[W]] 16 to 32 axis 1
  // CHECK: llm.linear %arg0, %[[S]]
  %0 = llm.dequantize %q : !q -> tensor<64x64xf32>
  %1 = llm.slice %0 16 to 32 axis 1 : tensor<64x64xf32>
  %y = llm.linear %x, %1 : tensor<?x16xf32>, tensor<64x16xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Formats that differ cannot be one tensor.
!a = tensor<32x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
!b = tensor<32x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>

// CHECK-LABEL: @mixed_concat
func.func @mixed_concat(%x: tensor<?x32xf32>, %a: !a, %b: !b) -> tensor<?x64xf32> {
  // CHECK-COUNT-2: llm.dequantize
  // CHECK: llm.concat
  %0 = llm.dequantize %a : !a -> tensor<32x32xf32>
  %1 = llm.dequantize %b : !b -> tensor<32x32xf32>
  %2 = llm.concat %0, %1 axis 0 : tensor<32x32xf32>, tensor<32x32xf32>
  %y = llm.linear %x, %2 : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

!q = tensor<64x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>

// CHECK-LABEL: @shared
// SHARED-LABEL: @shared
func.func @shared(%ids: tensor<?xi32>, %q: !q) -> tensor<?x64xf32> {
  // CHECK: llm.dequantize
  // REMARK: [Missed] llm-fuse-dequantize | Category:llm | Remark="weight has other users"
  // SHARED-NOT: llm.dequantize
  // SHARED: llm.linear {{.*}}, %arg1
  %w = llm.dequantize %q : !q -> tensor<64x32xf32>
  %x = llm.embedding %ids, %w : tensor<64x32xf32> -> tensor<?x32xf32>
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

!q = tensor<64x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>

// CHECK-LABEL: @rounded
func.func @rounded(%x: tensor<?x32xf32>, %q: !q) -> tensor<?x64xf32> {
  // CHECK: llm.dequantize
  // REMARK: [Missed] llm-fuse-dequantize | Category:llm | Remark="weight is dequantised to a type that rounds"
  %w = llm.dequantize %q : !q -> tensor<64x32xf16>
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
