// RUN: llm-opt %s --llm-quantize-kv | FileCheck %s --check-prefixes=CHECK,EIGHT
// RUN: llm-opt %s --llm-quantize-kv="bits=4 group=32" | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: llm-opt %s --llm-quantize-kv="rotate=false" | FileCheck %s --check-prefix=PLAIN
// RUN: llm-opt %s --llm-quantize-kv="attention=8" | FileCheck %s --check-prefix=INTEGERS
// RUN: not llm-opt %s --llm-quantize-kv="bits=4 attention=8" 2>&1 | FileCheck %s --check-prefix=ATTENTION
// RUN: not llm-opt %s --llm-quantize-kv="bits=3" 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not llm-opt %s --llm-quantize-kv="bits=4 group=48" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: llm-opt %s --llm-quantize-kv -o %t.mlir
// RUN: not llm-opt %t.mlir --llm-quantize-kv 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not llm-opt %t.mlir --llm-quantize-kv="bits=4" 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not llm-compile %t.mlir -o %t.out.mlir --emit=llm --kv=16 2>&1 | FileCheck %s --check-prefix=FLOATS
// RUN: llm-compile %s -o %t.out.mlir --emit=llm --kv=16
// AGAIN: 'llm.kv_cache' op expects keys and values of floats to quantise, but @kv is '!llm.kv<2x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 128>' already; start from IR that was made without --kv=8|4 and kv:
// FLOATS: 'llm.kv_cache' op expects keys and values of floats for --kv=16, but @kv is '!llm.kv<2x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 128>'; start from IR that was made without --kv=8|4 and kv:
// BITS: llm-quantize-kv expects 8 or 4 bits, but got 3
// ATTENTION: llm-quantize-kv expects attention in 16 bits, or in 8 over caches of 8, but got 8 over caches of 4
// GROUP: expects heads of a multiple of 48 numbers for groups, but got 64

// EIGHT: !kv = !llm.kv<2x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 128>
// FOUR: !kv = !llm.kv<2x64, !Q4_1_t, !Q4_1_t, 128>
// CHECK: llm.kv_cache @kv : 2 x !kv
// Queries and keys go through one transform.
// CHECK-DAG: %[[K:.*]] = llm.hadamard %{{.*}} block(64) : tensor<?x2x64xf32>
// CHECK-DAG: %[[Q:.*]] = llm.hadamard %{{.*}} block(64) : tensor<?x4x64xf32>
// CHECK: llm.kv_append %{{.*}}, %[[K]], {{.*}} : !kv,
// CHECK: llm.attention %[[Q]], {{.*}}, !kv
// CHECK-NOT: integers
// PLAIN-NOT: llm.hadamard
// INTEGERS: llm.attention %{{.*}} scale(0.125) integers : tensor<?x4x64xf32>, !kv
llm.kv_cache @kv : 2 x !llm.kv<2x64, f16, f16, 128>
func.func @f(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>) -> tensor<?x4x64xf32> {
  %kv = llm.kv @kv[1] : !llm.kv<2x64, f16, f16, 128>
  llm.kv_append %kv, %k, %v at %p : !llm.kv<2x64, f16, f16, 128>, tensor<?x2x64xf32>, tensor<?x2x64xf32>
  %y = llm.attention %q, %kv at %p scale(0.125) : tensor<?x4x64xf32>, !llm.kv<2x64, f16, f16, 128>
  return %y : tensor<?x4x64xf32>
}
