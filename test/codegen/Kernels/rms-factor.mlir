// RUN: sprig-test-kernel rms_factor '{width = 576 : i64, eps = 1.0e-5 : f64}' --target=lavapipe | FileCheck %s
// RUN: sprig-test-kernel rms_factor '{width = 576 : i64, eps = 1.0e-5 : f64}' --target=generic \
// RUN:   | FileCheck %s --check-prefix=SHARED
// RUN: sprig-test-kernel rms_factor '{width = 576 : i64, eps = 1.0e-5 : f64}' --emit=interface --width=7 \
// RUN:   | FileCheck %s --check-prefix=FACE

// The squares are added in a loop, then across the eight lanes of a subgroup; the first lane stores.
// CHECK-LABEL: gpu.func @main
// CHECK-SAME: workgroup_size = [8, 1, 1]
// CHECK: scf.for
// CHECK: spirv.GL.Fma
// CHECK-COUNT-3: spirv.GroupNonUniformShuffleXor
// CHECK-NOT: spirv.GroupNonUniformShuffleXor
// CHECK: scf.if
// CHECK: spirv.GL.Sqrt
// CHECK: memref.store

// Where the subgroup is unknown the lanes meet in shared memory.
// SHARED-LABEL: gpu.func @main
// SHARED: memref.alloc() : memref<64xf32, #spirv.storage_class<Workgroup>>
// SHARED: gpu.barrier
// SHARED-NOT: GroupNonUniform

// FACE: key: rms_factor 576 of 576 eps
// FACE: workgroup: 8 1 1
// FACE: binding 0: x access 1 bytes 2304 a token
// FACE: binding 1: y access 2 bytes 4 a token
// FACE: groups for 7: 7 1 1
