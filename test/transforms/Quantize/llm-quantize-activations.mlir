// RUN: llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations))' | FileCheck %s
// RUN: not llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{bits=9}))' 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{group=32 head}))' | FileCheck %s --check-prefix=GROUPS
// RUN: not llm-opt %s -pass-pipeline='builtin.module(func.func(llm-quantize-activations{group=24}))' 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: llm-quantize-activations expects groups of a multiple of 32 numbers, but got 24
// BITS: llm-quantize-activations expects 2 to 8 bits, but got 9

// CHECK-LABEL: @shared
func.func @shared(%x: tensor<?x32xf32>, %w: tensor<32x32x!llm.q<i8, 32:f16>>, %v: tensor<32x32x!llm.q<i8, 32:f16>>) -> tensor<?x32xf32> {
  // Two products of one input read one quantised input; a folded norm keeps its product in floats.
  // CHECK: llm.layer
  // CHECK: %[[Q:.*]] = llm.quantize %[[H:[a-z0-9]+]] : tensor<?x32xf32> -> tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK-NOT: llm.quantize
  // CHECK: llm.linear %[[Q]], %{{.*}} : tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK: llm.linear %[[Q]], %{{.*}} : tensor<?x32x!llm.q<i8, *:f32>>
  // CHECK: llm.linear %[[H]], %{{.*}} row_scale(
  // CHECK: llm.yield
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x32xf32>) {
    %a = llm.linear %h, %w : tensor<?x32xf32>, tensor<32x32x!llm.q<i8, 32:f16>> -> tensor<?x32xf32>
    %b = llm.linear %h, %v residual(%a) : tensor<?x32xf32>, tensor<32x32x!llm.q<i8, 32:f16>> -> tensor<?x32xf32>
    %r = llm.rms_scale %h eps(1.0e-5) : tensor<?x32xf32>
    %c = llm.linear %h, %v row_scale(%r) residual(%b) : tensor<?x32xf32>, tensor<32x32x!llm.q<i8, 32:f16>> -> tensor<?x32xf32>
    llm.yield %c : tensor<?x32xf32>
  }
  // The head stays.
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x32xf32>
  %z = llm.linear %y, %w : tensor<?x32xf32>, tensor<32x32x!llm.q<i8, 32:f16>> -> tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// A scale for so many numbers, or for a whole row of no more; a head of another width has one of its own.
// GROUPS-LABEL: @groups
// GROUPS: llm.quantize %{{.*}} : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, 32:f32>>
// GROUPS: llm.quantize %{{.*}} : tensor<?x2x40xf32> -> tensor<?x2x40x!llm.q<i8, *:f32>>
// GROUPS: llm.quantize %{{.*}} : tensor<?x32xf32> -> tensor<?x32x!llm.q<i8, *:f32>>
func.func @groups(%x: tensor<?x96xf32>, %w: tensor<80x96x!llm.q<i8, 32:f16>>, %v: tensor<32x80x!llm.q<i8, 16:f16>>, %u: tensor<8x32x!llm.q<i8, 32:f16>>) -> tensor<?x8xf32> {
  %y = llm.linear %x, %w : tensor<?x96xf32>, tensor<80x96x!llm.q<i8, 32:f16>> -> tensor<?x2x40xf32>
  %z = llm.linear %y, %v : tensor<?x2x40xf32>, tensor<32x80x!llm.q<i8, 16:f16>> -> tensor<?x32xf32>
  %a = llm.linear %z, %u : tensor<?x32xf32>, tensor<8x32x!llm.q<i8, 32:f16>> -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}

// A weight of floats, or of floats in a book or in 8 bits, keeps its product; GGUF's integers are as good as any.
// CHECK-LABEL: @others
// CHECK: %[[Q:.*]] = llm.quantize %[[H:[a-z0-9]+]] : tensor<?x256xf32> -> tensor<?x256x!llm.q<i8, *:f32>>
// CHECK: llm.linear %[[Q]], %{{.*}} -> tensor<?x1xf32>
// CHECK: llm.linear %[[H]], %{{.*}} -> tensor<?x2xf32>
// CHECK: llm.linear %[[H]], %{{.*}} -> tensor<?x3xf32>
// CHECK: llm.linear %[[H]], %{{.*}} -> tensor<?x4xf32>
// CHECK: llm.linear %[[Q]], %{{.*}} -> tensor<?x5xf32>
func.func @others(%x: tensor<?x256xf32>, %k: tensor<1x256x!llm.q<u4, 32:u6-u6, 256:f16-f16>>, %f: tensor<2x256xf32>,
                  %b: tensor<3x256x!llm.q<cb<nf4, 4>, 64:f32>>, %e: tensor<4x256x!llm.q<f8E4M3, *:f32>>,
                  %n: tensor<5x256x!llm.q<cb<iq4nl, 4>, 32:f16>>) -> tensor<?x256xf32> {
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x256xf32>) {
    %0 = llm.linear %h, %k : tensor<?x256xf32>, tensor<1x256x!llm.q<u4, 32:u6-u6, 256:f16-f16>> -> tensor<?x1xf32>
    %1 = llm.linear %h, %f : tensor<?x256xf32>, tensor<2x256xf32> -> tensor<?x2xf32>
    %2 = llm.linear %h, %b : tensor<?x256xf32>, tensor<3x256x!llm.q<cb<nf4, 4>, 64:f32>> -> tensor<?x3xf32>
    %3 = llm.linear %h, %e : tensor<?x256xf32>, tensor<4x256x!llm.q<f8E4M3, *:f32>> -> tensor<?x4xf32>
    %4 = llm.linear %h, %n : tensor<?x256xf32>, tensor<5x256x!llm.q<cb<iq4nl, 4>, 32:f16>> -> tensor<?x5xf32>
    llm.yield %h : tensor<?x256xf32>
  }
  return %y : tensor<?x256xf32>
}
