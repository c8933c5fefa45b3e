// RUN: llm-opt %s --llm-lower-to-plan="targets=lavapipe context=64 widths=1,4" --split-input-file --verify-diagnostics | FileCheck %s

// Keys of which one part is the same for all heads, values shorter than keys, and scores that fall with the distance.

!latent = !llm.kv<4x24x16, f16, f16, 64>
llm.kv_cache @kv : !latent

// CHECK-DAG: plan.kernel @join_heads_4x24_{{.*}} "join_heads" {first = 8 : i64, first_shared, heads = 4 : i64, second = 16 : i64}
// CHECK-DAG: "rope_append" {{.*}}dims = 8 : i64{{.*}}head_size = 24 : i64{{.*}}value_size = 16
// CHECK-DAG: "attention" {bias, {{.*}}head_size = 24 : i64{{.*}}value_size = 16
// CHECK: plan.program @append_4 append width 4 {
// CHECK: plan.dispatch @join_heads{{.*}} groups [2, 4, 1] "join heads"
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %w = llm.weight dense<1.0> : tensor<64x64xf32>
  %wq = llm.weight dense<1.0> : tensor<96x64xf32>
  %wr = llm.weight dense<1.0> : tensor<8x64xf32>
  %slopes = llm.weight dense<[0.25, 0.0625, 0.015625, 0.00390625]> : tensor<4xf32>
  %every = llm.weight dense<0> : tensor<4xi32>
  %x = llm.embedding %ids, %w : tensor<64x64xf32> -> tensor<?x64xf32>
  %q = llm.linear %x, %wq : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x4x24xf32>
  %k1 = llm.linear %x, %wr : tensor<?x64xf32>, tensor<8x64xf32> -> tensor<?x1x8xf32>
  %k4 = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x4x16xf32>
  %v = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x4x16xf32>
  %all = llm.gather %k1, %every axis 1 : tensor<?x1x8xf32>, tensor<4xi32>
  %k = llm.concat %all, %k4 axis 2 : tensor<?x4x8xf32>, tensor<?x4x16xf32>
  %qr = llm.rope %q at %positions base(10000.0) dims(8) interleaved : tensor<?x4x24xf32>
  %kr = llm.rope %k at %positions base(10000.0) dims(8) interleaved : tensor<?x4x24xf32>
  %kv = llm.kv @kv[0] : !latent
  llm.kv_append %kv, %kr, %v at %positions : !latent, tensor<?x4x24xf32>, tensor<?x4x16xf32>
  %y = llm.attention %qr, %kv at %positions bias(%slopes : tensor<4xf32>) scale(0.2) : tensor<?x4x24xf32>, !latent
  %s = llm.linear %y, %w : tensor<?x4x16xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %w = llm.weight dense<1.0> : tensor<64x64xf32>
  %order = llm.weight dense<[1, 0]> : tensor<2xi32>
  %x = llm.embedding %ids, %w : tensor<64x64xf32> -> tensor<?x64xf32>
  %h = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x4x16xf32>
  // expected-error@+1 {{expects one head that is repeated for others to be joined to it, for other gathers of activations are not supported on devices, but got 'tensor<?x4x16xf32>' along axis 2}}
  %y = llm.gather %h, %order axis 2 : tensor<?x4x16xf32>, tensor<2xi32>
  %p = llm.weight dense<1.0> : tensor<64x8xf32>
  %s = llm.linear %y, %p : tensor<?x4x2xf32>, tensor<64x8xf32> -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %w = llm.weight dense<1.0> : tensor<64x64xf32>
  %x = llm.embedding %ids, %w : tensor<64x64xf32> -> tensor<?x64xf32>
  // expected-error@+1 {{expects two parts of heads of f32, for other activations are not joined on devices, but got 2 parts of 'tensor<?x128xf32>' along axis 1}}
  %y = llm.concat %x, %x axis 1 : tensor<?x64xf32>, tensor<?x64xf32>
  %p = llm.weight dense<1.0> : tensor<64x128xf32>
  %s = llm.linear %y, %p : tensor<?x128xf32>, tensor<64x128xf32> -> tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}
