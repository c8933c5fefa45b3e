// RUN: llm-opt %s --canonicalize | FileCheck %s

// Elementwise ops that change nothing.
// CHECK-LABEL: func.func @neutral(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
func.func @neutral(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]]
  %y = llm.scale %x by 1.0 : tensor<?x8xf32>
  %z = llm.hadamard %y block(1) : tensor<?x8xf32>
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @constants(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
  %zero = llm.weight dense<0.0> : tensor<4x8xf32>
  %one = llm.weight dense<1.0> : tensor<4x1xf32>
  %ones = llm.weight dense<1.0> : tensor<8xf32>
  %a = llm.add %x, %zero : tensor<4x8xf32>
  %b = llm.add %zero, %x : tensor<4x8xf32>
  %c = llm.multiply %x, %one : tensor<4x8xf32>, tensor<4x1xf32>
  %d = llm.scale_axis %x, %ones axis 1 : tensor<4x8xf32>, tensor<8xf32>
  return %a, %b, %c, %d : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @constants_kept(
func.func @constants_kept(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: llm.add
  // CHECK: llm.multiply
  %one = llm.weight dense<1.0> : tensor<4x8xf32>
  %two = llm.weight dense<2.0> : tensor<4x1xf32>
  %a = llm.add %x, %one : tensor<4x8xf32>
  %b = llm.multiply %x, %two : tensor<4x8xf32>, tensor<4x1xf32>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @scales(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
func.func @scales(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = llm.scale %[[X]] by 3.0
  // 0.1 * 0.1 would round: two roundings must not become one.
  // CHECK-NEXT: %[[B:.*]] = llm.scale %[[X]] by 0.1
  // CHECK-NEXT: %[[C:.*]] = llm.scale %[[B]] by 0.1
  // CHECK-NEXT: return %[[A]], %[[C]]
  %0 = llm.scale %x by 2.0 : tensor<?x8xf32>
  %1 = llm.scale %0 by 1.5 : tensor<?x8xf32>
  %2 = llm.scale %x by 0.1 : tensor<?x8xf32>
  %3 = llm.scale %2 by 0.1 : tensor<?x8xf32>
  return %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @relu(
func.func @relu(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = llm.activation relu
  // CHECK-NEXT: %[[B:.*]] = llm.activation silu
  // CHECK-NEXT: %[[C:.*]] = llm.activation silu %[[B]]
  // CHECK-NEXT: return %[[A]], %[[C]]
  %0 = llm.activation relu %x : tensor<?x8xf32>
  %1 = llm.activation relu %0 : tensor<?x8xf32>
  %2 = llm.activation silu %x : tensor<?x8xf32>
  %3 = llm.activation silu %2 : tensor<?x8xf32>
  return %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @quantize_dequantize(
// CHECK-SAME: %[[Q:.*]]: tensor<4x32x!Q8_0_t>
func.func @quantize_dequantize(%q: tensor<4x32x!llm.q<i8, 32:f16>>)
    -> (tensor<4x32x!llm.q<i8, 32:f16>>, tensor<4x32x!llm.q<i8, 32:f16>>, tensor<4x32x!llm.q<i4, 32:f16>>) {
  // CHECK-NEXT: %[[X:.*]] = llm.dequantize %[[Q]]
  // CHECK-NEXT: %[[C:.*]] = llm.quantize %[[X]] clip(0.5)
  // CHECK-NEXT: %[[O:.*]] = llm.quantize %[[X]]
  // CHECK-NEXT: return %[[Q]], %[[C]], %[[O]]
  %x = llm.dequantize %q : tensor<4x32x!llm.q<i8, 32:f16>> -> tensor<4x32xf32>
  %same = llm.quantize %x : tensor<4x32xf32> -> tensor<4x32x!llm.q<i8, 32:f16>>
  %clipped = llm.quantize %x clip(0.5) : tensor<4x32xf32> -> tensor<4x32x!llm.q<i8, 32:f16>>
  %other = llm.quantize %x : tensor<4x32xf32> -> tensor<4x32x!llm.q<i4, 32:f16>>
  return %same, %clipped, %other
      : tensor<4x32x!llm.q<i8, 32:f16>>, tensor<4x32x!llm.q<i8, 32:f16>>, tensor<4x32x!llm.q<i4, 32:f16>>
}

// CHECK-LABEL: func.func @slices(
// CHECK-SAME: %[[X:.*]]: tensor<?x8x4xf32>
func.func @slices(%x: tensor<?x8x4xf32>) -> (tensor<?x8x4xf32>, tensor<?x2x4xf32>, tensor<?x2x2xf32>) {
  // CHECK-NEXT: %[[A:.*]] = llm.slice %[[X]] 3 to 5 axis 1
  // CHECK-NEXT: %[[B:.*]] = llm.slice %[[X]] 2 to 4 axis 1
  // CHECK-NEXT: %[[C:.*]] = llm.slice %[[B]] 0 to 2 axis 2
  // CHECK-NEXT: return %[[X]], %[[A]], %[[C]]
  %all = llm.slice %x 0 to 8 axis 1 : tensor<?x8x4xf32>
  %0 = llm.slice %x 2 to 7 axis 1 : tensor<?x8x4xf32>
  %1 = llm.slice %0 1 to 3 axis 1 : tensor<?x5x4xf32>
  %2 = llm.slice %x 2 to 4 axis 1 : tensor<?x8x4xf32>
  %3 = llm.slice %2 0 to 2 axis 2 : tensor<?x2x4xf32>
  return %all, %1, %3 : tensor<?x8x4xf32>, tensor<?x2x4xf32>, tensor<?x2x2xf32>
}

// CHECK-LABEL: func.func @slice_of_concat(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<6x8xf32>
func.func @slice_of_concat(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<3x8xf32>, tensor<2x8xf32>) {
  // CHECK-NEXT: %[[AB:.*]] = llm.concat %[[A]], %[[B]]
  // CHECK-NEXT: %[[S:.*]] = llm.slice %[[B]] 1 to 4 axis 0
  // CHECK-NEXT: %[[T:.*]] = llm.slice %[[AB]] 3 to 5 axis 0
  // CHECK-NEXT: return %[[B]], %[[S]], %[[T]]
  %ab = llm.concat %a, %b axis 0 : tensor<4x8xf32>, tensor<6x8xf32>
  %0 = llm.slice %ab 4 to 10 axis 0 : tensor<10x8xf32>
  %1 = llm.slice %ab 5 to 8 axis 0 : tensor<10x8xf32>
  %2 = llm.slice %ab 3 to 5 axis 0 : tensor<10x8xf32>
  return %0, %1, %2 : tensor<6x8xf32>, tensor<3x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: func.func @concats(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<6x8xf32>
func.func @concats(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>) -> (tensor<4x8xf32>, tensor<14x8xf32>, tensor<5x8xf32>, tensor<6x8xf32>) {
  // CHECK-NEXT: %[[C:.*]] = llm.concat %[[A]], %[[B]], %[[A]] axis 0
  // CHECK-NEXT: %[[S:.*]] = llm.slice %[[B]] 1 to 6 axis 0
  // CHECK-NEXT: return %[[A]], %[[C]], %[[S]], %[[B]]
  %one = llm.concat %a axis 0 : tensor<4x8xf32>
  %ba = llm.concat %b, %a axis 0 : tensor<6x8xf32>, tensor<4x8xf32>
  %aba = llm.concat %a, %ba axis 0 : tensor<4x8xf32>, tensor<10x8xf32>
  %0 = llm.slice %b 0 to 1 axis 0 : tensor<6x8xf32>
  %1 = llm.slice %b 1 to 3 axis 0 : tensor<6x8xf32>
  %2 = llm.slice %b 3 to 6 axis 0 : tensor<6x8xf32>
  %tail = llm.concat %1, %2 axis 0 : tensor<2x8xf32>, tensor<3x8xf32>
  %whole = llm.concat %0, %1, %2 axis 0 : tensor<1x8xf32>, tensor<2x8xf32>, tensor<3x8xf32>
  return %one, %aba, %tail, %whole : tensor<4x8xf32>, tensor<14x8xf32>, tensor<5x8xf32>, tensor<6x8xf32>
}

// CHECK-LABEL: func.func @gathers(
// CHECK-SAME: %[[X:.*]]: tensor<?x3xf32>
func.func @gathers(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x2xf32>) {
  // CHECK-DAG: %[[A:.*]] = llm.gather %[[X]], %{{.*}} axis 1 : tensor<?x3xf32>, tensor<3xi32>
  // CHECK-DAG: %[[B:.*]] = llm.gather %[[X]], %{{.*}} axis 1 : tensor<?x3xf32>, tensor<2xi32>
  // CHECK: return %[[X]], %[[A]], %[[B]]
  %all = llm.weight dense<[0, 1, 2]> : tensor<3xi32>
  %order = llm.weight dense<[0, 2, 1]> : tensor<3xi32>
  %some = llm.weight dense<[0, 1]> : tensor<2xi32>
  %0 = llm.gather %x, %all axis 1 : tensor<?x3xf32>, tensor<3xi32>
  %1 = llm.gather %x, %order axis 1 : tensor<?x3xf32>, tensor<3xi32>
  %2 = llm.gather %x, %some axis 1 : tensor<?x3xf32>, tensor<2xi32>
  return %0, %1, %2 : tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x2xf32>
}

// CHECK-LABEL: func.func @shapes(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
func.func @shapes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<24xf32>, tensor<2x3x4xf32>) {
  // CHECK-NEXT: %[[T:.*]] = llm.transpose %[[X]] [2, 0, 1]
  // CHECK-NEXT: %[[R:.*]] = llm.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<24xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[T]], %[[R]], %[[X]]
  %0 = llm.transpose %x [0, 1, 2] : tensor<2x3x4xf32>
  %1 = llm.transpose %x [1, 2, 0] : tensor<2x3x4xf32>
  %2 = llm.transpose %1 [2, 0, 1] : tensor<3x4x2xf32>
  %3 = llm.transpose %1 [1, 2, 0] : tensor<3x4x2xf32>
  %4 = llm.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %5 = llm.reshape %4 : tensor<6x4xf32> -> tensor<24xf32>
  %6 = llm.reshape %5 : tensor<24xf32> -> tensor<2x3x4xf32>
  return %0, %2, %3, %5, %6 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<24xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @relayouts(
// CHECK-SAME: %[[X:.*]]: tensor<8x32x!Q8_0_t, #gguf>
func.func @relayouts(%x: tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>)
    -> (tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>, tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 4>>>) {
  // CHECK-NEXT: %[[T:.*]] = llm.relayout %[[X]] : tensor<8x32x!Q8_0_t, #gguf> -> tensor<8x32x!Q8_0_t, #tiled>
  // CHECK-NEXT: return %[[X]], %[[T]]
  %0 = llm.relayout %x : tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 8>>>
  %1 = llm.relayout %0 : tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 8>>> -> tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
  %2 = llm.relayout %0 : tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 8>>> -> tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 4>>>
  return %1, %2 : tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>, tensor<8x32x!llm.q<i8, 32:f16>, #llm.layout<tiled<rows = 4>>>
}

// CHECK-LABEL: func.func @hadamards(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>
func.func @hadamards(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  // With signs, the same transform twice is not the identity.
  // CHECK-NEXT: %[[A:.*]] = llm.hadamard %[[X]] block(64) signs [5]
  // CHECK-NEXT: %[[B:.*]] = llm.hadamard %[[A]] block(64) signs [5]
  // CHECK-NEXT: return %[[X]], %[[X]], %[[B]]
  %0 = llm.hadamard %x block(32) : tensor<?x64xf32>
  %1 = llm.hadamard %0 block(32) : tensor<?x64xf32>
  %2 = llm.hadamard %x block(64) signs [5] : tensor<?x64xf32>
  %3 = llm.hadamard %2 block(64) signs [5] inverse : tensor<?x64xf32>
  %4 = llm.hadamard %2 block(64) signs [5] : tensor<?x64xf32>
  return %1, %3, %4 : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}

// Operands and attributes that say nothing.
// CHECK-LABEL: func.func @defaults(
func.func @defaults(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>, %ids: tensor<2xi32>, %h: tensor<2x2x8xf32>)
    -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>) {
  // CHECK-DAG: llm.rms_norm %{{.*}} eps(1.0e-05) : tensor<2x8xf32>
  // CHECK-DAG: llm.layer_norm %{{.*}} eps(1.0e-05) : tensor<2x8xf32>
  // CHECK-DAG: llm.linear %{{.*}}, %{{.*}} : tensor<2x8xf32>
  // CHECK-DAG: llm.gated_linear silu %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>
  // CHECK-DAG: llm.embedding %{{.*}}, %{{.*}} : tensor<4x8xf32>
  // CHECK-DAG: llm.rope %{{.*}} at %{{.*}} base(10000.0) : tensor<2x2x8xf32>
  // A gamma over a whole row of heads says what the mean is taken over.
  // CHECK-DAG: llm.rms_norm %{{.*}} gamma(%{{.*}} : tensor<16xf32>)
  %ones = llm.weight dense<1.0> : tensor<8xf32>
  %row = llm.weight dense<1.0> : tensor<16xf32>
  %zeros = llm.weight dense<0.0> : tensor<8xf32>
  %bias = llm.weight dense<-0.0> : tensor<4xf32>
  %residual = llm.weight dense<0.0> : tensor<2x4xf32>
  %0 = llm.rms_norm %x gamma(%ones : tensor<8xf32>) eps(1.0e-5) count(8) : tensor<2x8xf32>
  %1 = llm.layer_norm %x gamma(%ones : tensor<8xf32>) beta(%zeros : tensor<8xf32>) eps(1.0e-5) : tensor<2x8xf32>
  %2 = llm.linear %x, %w gamma(%ones : tensor<8xf32>) bias(%bias : tensor<4xf32>) residual(%residual)
      : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
  %3 = llm.gated_linear silu %x, %w, %w gamma(%ones : tensor<8xf32>)
      : tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
  %4 = llm.embedding %ids, %w scale(1.0) : tensor<4x8xf32> -> tensor<2x8xf32>
  %5 = llm.rope %h at %ids base(10000.0) dims(8) scale(1.0) amplitude(1.0) : tensor<2x2x8xf32>
  %6 = llm.rms_norm %h gamma(%row : tensor<16xf32>) eps(1.0e-5) : tensor<2x2x8xf32>
  return %0, %1, %2, %3, %4, %5, %6
      : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>
}

// CHECK-LABEL: func.func @sparse_residual(
func.func @sparse_residual(%x: tensor<2x8xf32>, %v: tensor<4x2xf32>, %i: tensor<4x2xi32>) -> tensor<2x4xf32> {
  // CHECK: llm.sparse_linear %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>
  %zero = llm.weight dense<0.0> : tensor<2x4xf32>
  %y = llm.sparse_linear %x, %v, %i residual(%zero) : tensor<2x8xf32>, tensor<4x2xf32>, tensor<4x2xi32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A layer that does nothing goes; what it passes through stays.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[O:.*]]: tensor<?x8xf32>
func.func @layers(%x: tensor<?x8xf32>, %outside: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[O]]
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x8xf32>) {
    llm.yield %h : tensor<?x8xf32>
  }
  %z = llm.layer 1 "decoder" (%h = %y : tensor<?x8xf32>) {
    llm.yield %outside : tensor<?x8xf32>
  }
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}
