// RUN: llm-opt --plan-build-kernels %s | FileCheck %s

// CHECK-LABEL: plan.target @lavapipe
plan.target @lavapipe {
  // CHECK: plan.kernel @norm "rms_factor" {eps = 1.000000e-05 : f64, width = 576 : i64} {
  // CHECK-NEXT: gpu.module @kernels {
  // CHECK-NEXT: gpu.func @main(%{{.*}}: memref<?xf32, #spirv.storage_class<StorageBuffer>>
  plan.kernel @norm "rms_factor" {eps = 1.0e-5, width = 576}
  // What has code keeps it.
  // CHECK: plan.kernel @built "rms_factor" {} {
  // CHECK-NEXT: gpu.module @mine {
  plan.kernel @built "rms_factor" {} {
    gpu.module @mine {
    }
  }
}
