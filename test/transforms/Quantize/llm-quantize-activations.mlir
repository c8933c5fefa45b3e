// RUN: llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations))' | FileCheck %s
// RUN: not llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{bits=9}))' 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{group=32 head}))' | FileCheck %s --check-prefix=GROUPS
// RUN: not llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{group=24}))' 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: llm-quantize-activations expects groups of a multiple of 32 numbers, but got 24
// BITS: llm-quantize-activations expects 2 to 8 bits, but got 9

// CHECK-LABEL: @shared
func.func @shared(%x: tensor<?x32xf32>, %w: tensor<32x32xf16>, %v: tensor<32x32xf16>) -> tensor<?x32xf32> {
  // Two products of one input read one quantised input; a folded norm keeps its product in floats.
  // CHECK: llm.layer
  // CHECK: %[[Q:.*]] = llm.quantize %[[H:[a-z0-9]+]] : tensor<?x32xf32> -> tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK-NOT: llm.quantize
  // CHECK: llm.linear %[[Q]], %{{.*}} : tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK: llm.linear %[[Q]], %{{.*}} : tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK: llm.linear %[[H]], %{{.*}} row_scale(
  // CHECK: llm.yield
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x32xf32>) {
    %a = llm.linear %h, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
    %b = llm.linear %h, %v residual(%a) : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
    %r = llm.rms_scale %h eps(1.0e-5) : tensor<?x32xf32>
    %c = llm.linear %h, %v row_scale(%r) residual(%b) : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
    llm.yield %c : tensor<?x32xf32>
  }
  // The head stays.
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x32xf32>
  %z = llm.linear %y, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// A scale for so many numbers where they divide the row.
// GROUPS-LABEL: @groups
// GROUPS: llm.quantize %{{.*}} : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, 32:f32>>
// GROUPS: llm.quantize %{{.*}} : tensor<?x40xf32> -> tensor<?x40x!llm.q<i8, *:f32>>
func.func @groups(%x: tensor<?x96xf32>, %w: tensor<40x96xf16>, %v: tensor<8x40xf16>) -> tensor<?x8xf32> {
  %y = llm.linear %x, %w : tensor<?x96xf32>, tensor<40x96xf16> -> tensor<?x40xf32>
  %z = llm.linear %y, %v : tensor<?x40xf32>, tensor<8x40xf16> -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}
