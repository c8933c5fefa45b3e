// RUN: llm-opt --plan-lower-kernels %s | FileCheck %s
// RUN: llm-opt --pass-pipeline="builtin.module(plan.target(plan-build-kernels),plan-lower-kernels)" %s | FileCheck %s
// RUN: llm-opt --plan-lower-kernels --remarks-filter=codegen --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s
// RUN: llm-opt --plan-lower-kernels %s | llm-opt | FileCheck %s

// REMARK: 3 kernels compiled to {{[0-9]+}} bytes of SPIR-V
// CHECK-LABEL: plan.target @lavapipe
plan.target @lavapipe {
  // CHECK: plan.kernel @norm "rms_factor" {eps = 1.000000e-05 : f64, width = 576 : i64} entry "main" access [1, 2] workgroup [8, 1, 1] features ["subgroup_basic", "subgroup_shuffle"] spirv dense<"0x03022307{{.*}}> : tensor<{{[0-9]+}}xi32> attributes {{{.*}}subgroup_size = 8 : i32}{{$}}
  plan.kernel @norm "rms_factor" {eps = 1.0e-5, width = 576}
  // CHECK: plan.kernel @other "rms_factor" {{.*}} spirv dense
  plan.kernel @other "rms_factor" {eps = 1.0e-6, width = 64}
}

// A target that can do less gets code that asks for less.
// CHECK-LABEL: plan.target @fallback
plan.target @fallback profile "generic" {
  // CHECK: plan.kernel @norm "rms_factor" {{.*}} entry "main" access [1, 2] workgroup [64, 1, 1] spirv dense
  plan.kernel @norm "rms_factor" {eps = 1.0e-5, width = 576}
}
