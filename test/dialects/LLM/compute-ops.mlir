// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK-LABEL: func.func @embedding(
func.func @embedding(%ids: tensor<?xi32>, %table: tensor<49152x576x!llm.q<i8, 32:f16>>) {
  // CHECK: llm.embedding %{{.*}}, %{{.*}} : tensor<49152x576x!Q8_0_t> -> tensor<?x576xf32>
  %x = llm.embedding %ids, %table : tensor<49152x576x!llm.q<i8, 32:f16>> -> tensor<?x576xf32>
  // CHECK: llm.embedding %{{.*}}, %{{.*}} scale(33.9411) : tensor<49152x576x!Q8_0_t> -> tensor<?x576xf32>
  %y = llm.embedding %ids, %table scale(33.9411) : tensor<49152x576x!llm.q<i8, 32:f16>> -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @rms_norm(
func.func @rms_norm(%x: tensor<?x576xf32>, %g: tensor<576xf32>) {
  // CHECK: llm.rms_norm %{{.*}} gamma(%{{.*}} : tensor<576xf32>) eps(1.0e-05) : tensor<?x576xf32>{{$}}
  %n = llm.rms_norm %x gamma(%g : tensor<576xf32>) eps(1.0e-5) : tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @rms_norm_quantised(
func.func @rms_norm_quantised(%x: tensor<?x512xf32>, %k: tensor<?x9x64xf32>, %g: tensor<64xf32>, %w: tensor<576xf32>) {
  // CHECK: llm.rms_norm %{{.*}} eps(1.0e-05) count(576) : tensor<?x512xf32> -> tensor<?x512x!llm.q<i8, *:f32>>
  %q = llm.rms_norm %x eps(1.0e-5) count(576) : tensor<?x512xf32> -> tensor<?x512x!llm.q<i8, *:f32>>
  // Over each head, and over a whole row of heads.
  // CHECK: llm.rms_norm %{{.*}} gamma(%{{.*}} : tensor<64xf32>) eps(1.0e-06) : tensor<?x9x64xf32>
  %h = llm.rms_norm %k gamma(%g : tensor<64xf32>) eps(1.0e-6) : tensor<?x9x64xf32>
  // CHECK: llm.rms_norm %{{.*}} gamma(%{{.*}} : tensor<576xf32>) eps(1.0e-06) : tensor<?x9x64xf32>
  %r = llm.rms_norm %k gamma(%w : tensor<576xf32>) eps(1.0e-6) : tensor<?x9x64xf32>
  return
}

// CHECK-LABEL: func.func @layer_norm(
func.func @layer_norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>) {
  // CHECK: llm.layer_norm %{{.*}} gamma(%{{.*}} : tensor<64xf32>) beta(%{{.*}} : tensor<64xf32>) eps(1.0e-05) : tensor<?x64xf32>
  %n = llm.layer_norm %x gamma(%g : tensor<64xf32>) beta(%b : tensor<64xf32>) eps(1.0e-5) : tensor<?x64xf32>
  // CHECK: llm.layer_norm %{{.*}} eps(0.0) count(80) : tensor<?x64xf32> -> tensor<?x64x!llm.q<i8, *:f32>>
  %m = llm.layer_norm %x eps(0.0) count(80) : tensor<?x64xf32> -> tensor<?x64x!llm.q<i8, *:f32>>
  return
}

// CHECK-LABEL: func.func @rms_scale(
func.func @rms_scale(%x: tensor<?x576xf32>, %g: tensor<576xf32>, %w: tensor<576x576xf16>) {
  // CHECK: llm.rms_scale %{{.*}} eps(1.0e-05) : tensor<?x576xf32>
  %r = llm.rms_scale %x eps(1.0e-5) : tensor<?x576xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} gamma(%{{.*}} : tensor<576xf32>) row_scale(%{{.*}}) : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x9x64xf32>
  %q = llm.linear %x, %w gamma(%g : tensor<576xf32>) row_scale(%r)
      : tensor<?x576xf32>, tensor<576x576xf16> -> tensor<?x9x64xf32>
  // CHECK: llm.rms_scale %{{.*}} eps(1.0e-05) count(600) : tensor<?x576xf32>
  %s = llm.rms_scale %x eps(1.0e-5) count(600) : tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @linear(
func.func @linear(%x: tensor<?x576xf32>, %w: tensor<192x576xf16>, %a: tensor<?x9x64xf32>, %o: tensor<576x576xf16>,
                  %b: tensor<576xf32>, %h: tensor<?x576xf32>) {
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<192x576xf16> -> tensor<?x3x64xf32>
  %y = llm.linear %x, %w : tensor<?x576xf32>, tensor<192x576xf16> -> tensor<?x3x64xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<576xf32>) residual(%{{.*}}) : tensor<?x9x64xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
  %z = llm.linear %a, %o bias(%b : tensor<576xf32>) residual(%h)
      : tensor<?x9x64xf32>, tensor<576x576xf16> -> tensor<?x576xf32>
  return
}

// One product a head; products of quantised operands.
// CHECK-LABEL: func.func @linear_more(
func.func @linear_more(%x: tensor<?x16x128xf32>, %w: tensor<16x512x128xf16>, %b: tensor<8192xf32>,
                       %q: tensor<4x64x!llm.q<i8, *:f32>>, %v: tensor<8x64x!llm.q<i4, 32:f16>>) {
  // CHECK: llm.linear %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<8192xf32>) : tensor<?x16x128xf32>, tensor<16x512x128xf16> -> tensor<?x16x512xf32>
  %y = llm.linear %x, %w bias(%b : tensor<8192xf32>)
      : tensor<?x16x128xf32>, tensor<16x512x128xf16> -> tensor<?x16x512xf32>
  // CHECK: llm.linear %{{.*}}, %{{.*}} : tensor<4x64x!llm.q<i8, *:f32>>, tensor<8x64x!llm.q<i4, 32:f16>> -> tensor<4x8xf32>
  %z = llm.linear %q, %v : tensor<4x64x!llm.q<i8, *:f32>>, tensor<8x64x!llm.q<i4, 32:f16>> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @gated_linear(
func.func @gated_linear(%x: tensor<?x576xf32>, %gate: tensor<1536x576xf16>, %up: tensor<1536x576xf16>,
                        %g: tensor<576xf32>, %r: tensor<?xf32>) {
  // CHECK: llm.gated_linear silu %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<1536x576xf16>, tensor<1536x576xf16> -> tensor<?x1536xf32>
  %y = llm.gated_linear silu %x, %gate, %up
      : tensor<?x576xf32>, tensor<1536x576xf16>, tensor<1536x576xf16> -> tensor<?x1536xf32>
  // CHECK: llm.gated_linear gelu_tanh %{{.*}}, %{{.*}}, %{{.*}} gamma(%{{.*}} : tensor<576xf32>) row_scale(%{{.*}}) : tensor<?x576xf32>, {{.*}} -> tensor<?x1536x!llm.q<i8, *:f32>>
  %z = llm.gated_linear gelu_tanh %x, %gate, %up gamma(%g : tensor<576xf32>) row_scale(%r)
      : tensor<?x576xf32>, tensor<1536x576xf16>, tensor<1536x576xf16> -> tensor<?x1536x!llm.q<i8, *:f32>>
  return
}

// CHECK-LABEL: func.func @sparse_linear(
func.func @sparse_linear(%x: tensor<?x576xf32>, %v: tensor<64x8xf16>, %i: tensor<64x8xi32>, %d: tensor<?x64xf32>) {
  // CHECK: llm.sparse_linear %{{.*}}, %{{.*}}, %{{.*}} residual(%{{.*}}) : tensor<?x576xf32>, tensor<64x8xf16>, tensor<64x8xi32> -> tensor<?x64xf32>
  %y = llm.sparse_linear %x, %v, %i residual(%d)
      : tensor<?x576xf32>, tensor<64x8xf16>, tensor<64x8xi32> -> tensor<?x64xf32>
  // CHECK: llm.sparse_linear %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x576xf32>
  %z = llm.sparse_linear %x, %v, %i : tensor<?x576xf32>, tensor<64x8xf16>, tensor<64x8xi32> -> tensor<?x64xf32>
  return
}

// CHECK-LABEL: func.func @rope(
func.func @rope(%x: tensor<?x9x64xf32>, %y: tensor<?x3x64xf32>, %positions: tensor<?xi32>, %f: tensor<24xf32>,
                %l: tensor<2x32xf32>) {
  // CHECK: llm.rope %{{.*}} at %{{.*}} base(10000.0) : tensor<?x9x64xf32>
  %q = llm.rope %x at %positions base(10000.0) : tensor<?x9x64xf32>
  // CHECK: llm.rope %{{.*}} at %{{.*}} frequencies(%{{.*}} : tensor<24xf32>) dims(48) interleaved : tensor<?x3x64xf32>
  %k = llm.rope %y at %positions frequencies(%f : tensor<24xf32>) dims(48) interleaved : tensor<?x3x64xf32>
  // CHECK: llm.rope %{{.*}} at %{{.*}} base(1.0e+06) scale(0.125) amplitude(1.25) : tensor<?x3x64xf32>
  %s = llm.rope %y at %positions base(1000000.0) scale(0.125) amplitude(1.25) : tensor<?x3x64xf32>
  // CHECK: llm.rope %{{.*}} at %{{.*}} frequencies(%{{.*}} : tensor<2x32xf32>) amplitude(1.1902381) long_from(4096) : tensor<?x3x64xf32>
  %t = llm.rope %y at %positions frequencies(%l : tensor<2x32xf32>) amplitude(1.1902381) long_from(4096) : tensor<?x3x64xf32>
  return
}

// CHECK-LABEL: func.func @hadamard(
func.func @hadamard(%x: tensor<?x576xf32>, %k: tensor<?x3x64xf32>) {
  // CHECK: llm.hadamard %{{.*}} block(64) : tensor<?x576xf32>
  %y = llm.hadamard %x block(64) : tensor<?x576xf32>
  // CHECK: llm.hadamard %{{.*}} block(32) signs [-7] inverse : tensor<?x3x64xf32>
  %z = llm.hadamard %k block(32) signs [-7] inverse : tensor<?x3x64xf32>
  return
}
