// Quantised weights whose rows or groups are no whole units of 32 numbers are read as f32, which a warning says once.
// RUN: llm-opt %s --llm-lower-to-plan='targets=lavapipe widths=1' 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file %t.err
// SAID: warning: 3 products read quantised weights as f32, four bytes a number
// SAID-NOT: warning:
// CHECK-DAG: plan.tensor @[[ROWS:.*]] "tiled<rows=8>"{{.*}}
// CHECK-DAG: llm.dequantize {{.*}} : tensor<8x40x!llm.q<f8E4M3, *:f32>{{.*}}> -> tensor<8x40xf32>
// CHECK-DAG: llm.dequantize {{.*}} : tensor<40x64x!llm.q<i8, 16:f32>{{.*}}> -> tensor<40x64xf32>
// A weight of whole units keeps its codes.
// CHECK-NOT: llm.dequantize {{.*}} : tensor<64x64x!llm.q
module {
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 64>
  llm.source @m {path = "m.safetensors", format = "safetensors"}
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
    %t = llm.weight dense<1.0> : tensor<4x64xf32>
    %x = llm.embedding %ids, %t : tensor<4x64xf32> -> tensor<?x64xf32>
    %c = llm.weight @m["c"] : tensor<64x64xi8>
    %s = llm.weight @m["s"] : tensor<64x1xf32>
    %whole = llm.assemble %c scales(%s : tensor<64x1xf32>) : tensor<64x64xi8> -> tensor<64x64x!llm.q<f8E4M3, *:f32>, #llm.layout<packed>>
    %y = llm.linear %x, %whole : tensor<?x64xf32>, tensor<64x64x!llm.q<f8E4M3, *:f32>, #llm.layout<packed>> -> tensor<?x64xf32>
    %c1 = llm.weight @m["c1"] : tensor<40x64xi8>
    %s1 = llm.weight @m["s1"] : tensor<40x4xf32>
    %groups = llm.assemble %c1 scales(%s1 : tensor<40x4xf32>) : tensor<40x64xi8> -> tensor<40x64x!llm.q<i8, 16:f32>, #llm.layout<packed>>
    %z = llm.gated_linear silu %y, %groups, %groups : tensor<?x64xf32>, tensor<40x64x!llm.q<i8, 16:f32>, #llm.layout<packed>>, tensor<40x64x!llm.q<i8, 16:f32>, #llm.layout<packed>> -> tensor<?x40xf32>
    %c2 = llm.weight @m["c2"] : tensor<8x40xi8>
    %s2 = llm.weight @m["s2"] : tensor<8x1xf32>
    %odd = llm.assemble %c2 scales(%s2 : tensor<8x1xf32>) : tensor<8x40xi8> -> tensor<8x40x!llm.q<f8E4M3, *:f32>, #llm.layout<packed>>
    %r = llm.linear %z, %odd : tensor<?x40xf32>, tensor<8x40x!llm.q<f8E4M3, *:f32>, #llm.layout<packed>> -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
}
