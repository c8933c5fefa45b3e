// RUN: sprig-test-kernel linear '{format = "Q4_1", n = 64 : i64, k = 64 : i64}' --target=lavapipe | FileCheck %s
// RUN: sprig-test-kernel linear '{format = "Q4_1", n = 64 : i64, k = 64 : i64}' --target=lavapipe --emit=interface \
// RUN:   | FileCheck %s --check-prefix=FACE
// RUN: sprig-test-kernel linear '{format = "Q8_0", n = 16 : i64, k = 32 : i64, gate = "silu", norm}' \
// RUN:   --target=generic --choose=rows=1 | FileCheck %s --check-prefix=GATED

// Four row tiles a lane: for each block one load of codes and one of scales a row, one load of x for all of them.
// Weights and x are texel views, y a buffer.
// CHECK: spirv.GlobalVariable @texels_0 bind(0, 0) : {{.*}}R32ui>
// CHECK: spirv.GlobalVariable @texels_1 bind(0, 1) : {{.*}}Rgba32ui>
// CHECK: spirv.GlobalVariable @texels_2 bind(0, 2) : {{.*}}Rgba32f>
// CHECK-LABEL: gpu.func @main
// CHECK-SAME: (%[[Y:.+]]: memref<?xf32, {{.*}}> {spirv.interface_var_abi = #spirv.interface_var_abi<(0, 3)>})
// CHECK: %[[W:.+]] = spirv.Load {{.*}}Rgba32ui>
// CHECK: %[[X:.+]] = spirv.Load {{.*}}Rgba32f>
// CHECK: scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK-COUNT-4: spirv.ImageRead %[[W]]
// CHECK-NOT: spirv.ImageRead %[[W]]
// CHECK: spirv.ImageRead %[[X]]
// CHECK-NOT: spirv.ImageRead
// CHECK-COUNT-32: spirv.GroupNonUniformShuffle <Subgroup>
// CHECK: scf.yield
// CHECK-COUNT-4: memref.store {{.*}}, %[[Y]]
// CHECK-NOT: memref.store

// FACE: key: linear Q4_1 n=64 k=64 tokens=1 | x=shuffle rows=4
// FACE: workgroup: 8 1 1
// FACE: binding 0: weight.scales access 1 bytes 512
// FACE: binding 1: weight.codes access 1 bytes 2048
// FACE: binding 2: x access 1 bytes 256 a token
// FACE: binding 3: y access 2 bytes 256 a token
// FACE: groups for 1: 2 1 1

// Both weights of a gated product in one loop, without any subgroup operation; the gate's activation multiplies.
// GATED-LABEL: gpu.func @main
// GATED-NOT: GroupNonUniform
// GATED: scf.for {{.*}} -> (f32, f32)
// GATED: spirv.GL.Exp
// GATED: arith.divf
// GATED: memref.store
