// RUN: llm-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-quantize))' | FileCheck %s
// RUN: llm-opt %s --pass-pipeline='builtin.module(llm-default-pipeline)' | FileCheck %s --check-prefix=WHOLE

// Every pair of quantize and dequantize goes: of an activation behind a norm, and of a weight.
// CHECK-LABEL: func.func @pair
// CHECK: %[[N:.*]] = llm.rms_norm %{{.*}} : {{.*}} -> tensor<?x64x!llm.q<i8, *:f32>>
// CHECK-NOT: llm.quantize
// CHECK: llm.linear %[[N]],
// WHOLE-LABEL: func.func @pair
// WHOLE-NOT: llm.dequantize
// WHOLE-NOT: llm.quantize
// WHOLE: llm.linear {{.*}} : tensor<?x64x!llm.q<i8, *:f32>>, tensor<32x64x!{{.*}}> -> tensor<?x32xf32>
// WHOLE-NOT: llm.dequantize
func.func @pair(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<32x64x!llm.q<i4, 64:f16>>) -> tensor<?x32xf32> {
  %n = llm.rms_norm %x gamma(%g : tensor<64xf32>) eps(1.0e-05) : tensor<?x64xf32>
  %q = llm.quantize %n : tensor<?x64xf32> -> tensor<?x64x!llm.q<i8, *:f32>>
  %d = llm.dequantize %q : tensor<?x64x!llm.q<i8, *:f32>> -> tensor<?x64xf32>
  %f = llm.dequantize %w : tensor<32x64x!llm.q<i4, 64:f16>> -> tensor<32x64xf32>
  %y = llm.linear %d, %f : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// The gated activation that makes the input of the down product.
// CHECK-LABEL: func.func @gate
// CHECK: %[[N:.*]] = llm.rms_norm %{{.*}} -> tensor<?x64x!llm.q<i8, 32:f32>>
// CHECK: %[[A:.*]] = llm.gated_activation silu %{{.*}} -> tensor<?x96x!llm.q<i8, 32:f32>>
// CHECK-NOT: llm.quantize
// CHECK: llm.linear %[[A]],
// WHOLE-LABEL: func.func @gate
// WHOLE-NOT: quantize
// WHOLE: %[[A:.*]] = llm.gated_linear silu %{{.*}} -> tensor<?x96x!llm.q<i8, 32:f32>>
// WHOLE-NOT: quantize
// WHOLE: llm.linear %[[A]], %{{.*}} residual(
// WHOLE-NOT: quantize
// WHOLE: return
func.func @gate(%x: tensor<?x64xf32>, %g: tensor<96x64x!llm.q<i4, 64:f16>>, %u: tensor<96x64x!llm.q<i4, 64:f16>>,
                %d: tensor<64x96x!llm.q<i4, 64:f16>>) -> tensor<?x64xf32> {
  %n = llm.rms_norm %x eps(1.0e-05) : tensor<?x64xf32>
  %q = llm.quantize %n : tensor<?x64xf32> -> tensor<?x64x!llm.q<i8, 32:f32>>
  %a = llm.linear %q, %g : tensor<?x64x!llm.q<i8, 32:f32>>, tensor<96x64x!llm.q<i4, 64:f16>> -> tensor<?x96xf32>
  %b = llm.linear %q, %u : tensor<?x64x!llm.q<i8, 32:f32>>, tensor<96x64x!llm.q<i4, 64:f16>> -> tensor<?x96xf32>
  %c = llm.gated_activation silu %a, %b : tensor<?x96xf32>
  %r = llm.quantize %c : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, 32:f32>>
  %s = llm.dequantize %r : tensor<?x96x!llm.q<i8, 32:f32>> -> tensor<?x96xf32>
  %y = llm.linear %s, %d : tensor<?x96xf32>, tensor<64x96x!llm.q<i4, 64:f16>> -> tensor<?x64xf32>
  %z = llm.add %x, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// A gated linear is one, too; one that is read as it is stays, and so do numbers that are clipped.
// CHECK-LABEL: func.func @gates
// CHECK: llm.gated_linear silu %{{.*}} -> tensor<?x96x!llm.q<i8, *:f32>>
// CHECK: %[[C:.*]] = llm.gated_activation silu %{{.*}} : tensor<?x96xf32>{{$}}
// CHECK: llm.quantize %[[C]]
// CHECK: %[[D:.*]] = llm.gated_activation gelu %{{.*}} : tensor<?x96xf32>{{$}}
// CHECK: llm.quantize %[[D]] clip
func.func @gates(%x: tensor<?x64xf32>, %g: tensor<96x64x!llm.q<i4, 64:f16>>, %a: tensor<?x96xf32>)
    -> (tensor<?x96x!llm.q<i8, *:f32>>, tensor<?x96x!llm.q<i8, *:f32>>, tensor<?x96xf32>, tensor<?x96x!llm.q<i8, *:f32>>) {
  %b = llm.gated_linear silu %x, %g, %g : tensor<?x64xf32>, tensor<96x64x!llm.q<i4, 64:f16>>, tensor<96x64x!llm.q<i4, 64:f16>> -> tensor<?x96xf32>
  %q = llm.quantize %b : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, *:f32>>
  %c = llm.gated_activation silu %a, %a : tensor<?x96xf32>
  %r = llm.quantize %c : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, *:f32>>
  %d = llm.gated_activation gelu %a, %a : tensor<?x96xf32>
  %s = llm.quantize %d clip(0.9) : tensor<?x96xf32> -> tensor<?x96x!llm.q<i8, *:f32>>
  return %q, %r, %c, %s : tensor<?x96x!llm.q<i8, *:f32>>, tensor<?x96x!llm.q<i8, *:f32>>, tensor<?x96xf32>, tensor<?x96x!llm.q<i8, *:f32>>
}

// A norm that is read as it is stays.
// CHECK-LABEL: func.func @shared
// CHECK: %[[N:.*]] = llm.rms_norm
// CHECK: llm.quantize %[[N]]
func.func @shared(%x: tensor<?x64xf32>, %w: tensor<64x64x!llm.q<i4, 64:f16>>) -> tensor<?x64xf32> {
  %n = llm.rms_norm %x eps(1.0e-05) : tensor<?x64xf32>
  %q = llm.quantize %n : tensor<?x64xf32> -> tensor<?x64x!llm.q<i8, *:f32>>
  %y = llm.linear %q, %w residual(%n) : tensor<?x64x!llm.q<i8, *:f32>>, tensor<64x64x!llm.q<i4, 64:f16>> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
