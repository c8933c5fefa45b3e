// RUN: sprig-test-kernel linear '{format = "Q4_1", n = 64 : i64, k = 64 : i64, tokens = 16 : i64}' --target=matrix | FileCheck %s
// RUN: sprig-test-kernel linear '{format = "Q4_1", n = 64 : i64, k = 64 : i64, tokens = 16 : i64}' --target=matrix -o %t.spv
// RUN: mlir-translate --no-implicit-module --deserialize-spirv %t.spv | FileCheck %s --check-prefix=SPIRV
// RUN: sprig-test-kernel linear '{format = "Q4_1", n = 64 : i64, k = 64 : i64, tokens = 6 : i64}' --target=matrix \
// RUN:   | FileCheck %s --check-prefix=NARROW

// Weights of 64 rows and x of 16 tokens in shared memory as f16, in lines of 40; four matrices of sums, each of which
// meets two halves of a chunk.
// CHECK-LABEL: gpu.func @main
// CHECK-COUNT-4: gpu.subgroup_mma_constant_matrix {{.*}} : !gpu.mma_matrix<16x16xf32, "COp">
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: gpu.barrier
// CHECK: %[[X:.+]] = gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 40 : index} : memref<640xf16, {{.*}}"AOp">
// CHECK: %[[W:.+]] = gpu.subgroup_mma_load_matrix {{.*}} {leadDimension = 40 : index, transpose} : {{.*}}"BOp">
// CHECK: gpu.subgroup_mma_compute %[[X]], %[[W]]
// CHECK-COUNT-7: gpu.subgroup_mma_compute
// CHECK-NOT: gpu.subgroup_mma_compute
// CHECK-COUNT-4: gpu.subgroup_mma_store_matrix
// CHECK: gpu.barrier
// CHECK: memref.store

// What MLIR reads back and verifies: the Vulkan memory model, and shared memory that other lanes see.
// SPIRV: spirv.module Logical Vulkan requires #spirv.vce<v1.6, [
// SPIRV-SAME: CooperativeMatrixKHR
// SPIRV-SAME: VulkanMemoryModel
// SPIRV: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory|MakeAvailable|MakeVisible>
// SPIRV: spirv.Store "Workgroup" {{.*}} ["NonPrivatePointer"] : f16
// SPIRV: spirv.KHR.CooperativeMatrixLoad {{.*}}, <NonPrivatePointer> : !spirv.ptr<f16, Workgroup>
// SPIRV: spirv.KHR.CooperativeMatrixMulAdd

// Few tokens are computed as on other targets.
// NARROW-NOT: mma
// NARROW: memref.store
