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
