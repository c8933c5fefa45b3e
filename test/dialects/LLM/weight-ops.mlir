// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

llm.source @model {path = "smollm2.gguf", format = "gguf"}

// CHECK-LABEL: func.func @weight(
func.func @weight() {
  // CHECK: llm.weight @model["blk.0.attn_q.weight"] : tensor<576x576x!Q4_1_t, #gguf>
  %w = llm.weight @model["blk.0.attn_q.weight"] : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
  // CHECK: llm.weight dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %c = llm.weight dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: llm.weight dense<0> : tensor<18xi8> as tensor<1x32x!Q4_0_t, #gguf>
  %q = llm.weight dense<0> : tensor<18xi8> as tensor<1x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
  // A row that ends inside a block takes the whole block.
  // CHECK: llm.weight dense<0> : tensor<72xi8> as tensor<2x33x!Q4_0_t, #gguf>
  %t = llm.weight dense<0> : tensor<72xi8> as tensor<2x33x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
  // CHECK: llm.weight @model["k"] {note} : tensor<2xf32>
  %n = llm.weight @model["k"] {note} : tensor<2xf32>
  // CHECK: llm.weight dense<0> : tensor<2xi32> {note}
  %m = llm.weight dense<0> : tensor<2xi32> {note}
  return
}

// CHECK-LABEL: func.func @slice(
func.func @slice(%qkv: tensor<?x15x64xf32>, %w: tensor<4x100x!llm.q<u4, 32:f16+f16>>) -> (tensor<?x9x64xf32>, tensor<4x36x!llm.q<u4, 32:f16+f16>>) {
  // CHECK: llm.slice %{{.*}} 0 to 9 axis 1 : tensor<?x15x64xf32>
  %q = llm.slice %qkv 0 to 9 axis 1 : tensor<?x15x64xf32>
  // CHECK: llm.slice %{{.*}} 64 to 100 axis 1 : tensor<4x100x!Q4_1_t>
  %tail = llm.slice %w 64 to 100 axis 1 : tensor<4x100x!llm.q<u4, 32:f16+f16>>
  // CHECK: return %{{.*}}, %{{.*}} : tensor<?x9x64xf32>, tensor<4x36x!Q4_1_t>
  return %q, %tail : tensor<?x9x64xf32>, tensor<4x36x!llm.q<u4, 32:f16+f16>>
}

// CHECK-LABEL: func.func @concat(
func.func @concat(%q: tensor<576x576xf16>, %k: tensor<192x576xf16>, %v: tensor<192x576xf16>) -> tensor<960x576xf16> {
  // CHECK: llm.concat %{{.*}}, %{{.*}}, %{{.*}} axis 0 : tensor<576x576xf16>, tensor<192x576xf16>, tensor<192x576xf16>
  %qkv = llm.concat %q, %k, %v axis 0 : tensor<576x576xf16>, tensor<192x576xf16>, tensor<192x576xf16>
  // CHECK: return %{{.*}} : tensor<960x576xf16>
  return %qkv : tensor<960x576xf16>
}

// CHECK-LABEL: func.func @gather(
func.func @gather(%x: tensor<?x576xf32>, %order: tensor<576xi32>, %w: tensor<4x64x!llm.q<i8, 32:f16>>, %rows: tensor<3xi32>) -> (tensor<?x576xf32>, tensor<3x64x!llm.q<i8, 32:f16>>) {
  // CHECK: llm.gather %{{.*}}, %{{.*}} axis 1 : tensor<?x576xf32>, tensor<576xi32>
  %y = llm.gather %x, %order axis 1 : tensor<?x576xf32>, tensor<576xi32>
  %v = llm.gather %w, %rows axis 0 : tensor<4x64x!llm.q<i8, 32:f16>>, tensor<3xi32>
  // CHECK: return %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<3x64x!Q8_0_t>
  return %y, %v : tensor<?x576xf32>, tensor<3x64x!llm.q<i8, 32:f16>>
}

// CHECK-LABEL: func.func @offset(
func.func @offset(%w: tensor<576xbf16>) {
  // CHECK: llm.offset %{{.*}} by 1.0 : tensor<576xbf16> -> tensor<576xf32>
  %g = llm.offset %w by 1.0 : tensor<576xbf16> -> tensor<576xf32>
  return
}

// CHECK-LABEL: func.func @scale_axis(
func.func @scale_axis(%w: tensor<576x1536xf32>, %s: tensor<1536xf32>) {
  // CHECK: llm.scale_axis %{{.*}}, %{{.*}} axis 1 : tensor<576x1536xf32>, tensor<1536xf32>
  %v = llm.scale_axis %w, %s axis 1 : tensor<576x1536xf32>, tensor<1536xf32>
  return
}

// CHECK-LABEL: func.func @transpose(
func.func @transpose(%w: tensor<64x192xf32>) -> tensor<192x64xf32> {
  // CHECK: llm.transpose %{{.*}} [1, 0] : tensor<64x192xf32>
  %t = llm.transpose %w [1, 0] : tensor<64x192xf32>
  // CHECK: return %{{.*}} : tensor<192x64xf32>
  return %t : tensor<192x64xf32>
}

// CHECK-LABEL: func.func @reshape(
func.func @reshape(%w: tensor<1024x512xf16>) {
  // CHECK: llm.reshape %{{.*}} : tensor<1024x512xf16> -> tensor<16x64x512xf16>
  %h = llm.reshape %w : tensor<1024x512xf16> -> tensor<16x64x512xf16>
  return
}

// CHECK-LABEL: func.func @argsort(
func.func @argsort(%groups: tensor<576xi32>) {
  // CHECK: llm.argsort %{{.*}} : tensor<576xi32>
  %order = llm.argsort %groups : tensor<576xi32>
  return
}

// CHECK-LABEL: func.func @assemble(
func.func @assemble(%codes: tensor<72x576xi32>, %s: tensor<4x576xf16>, %z: tensor<4x72xi32>,
                    %c: tensor<64x24xi8>, %b: tensor<16xf32>, %s1: tensor<64x1xf16>,
                    %p: tensor<64x5xi8>, %o: tensor<48xi32>) {
  // CHECK: llm.assemble %{{.*}} scales(%{{.*}} : tensor<4x576xf16>) zeros(%{{.*}} : tensor<4x72xi32>) : tensor<72x576xi32> -> tensor<576x576x!llm.q<u4, 144:f16 zero u4>, #gptq>
  %w = llm.assemble %codes scales(%s : tensor<4x576xf16>) zeros(%z : tensor<4x72xi32>)
      : tensor<72x576xi32> -> tensor<576x576x!llm.q<u4, 144:f16 zero u4>, #llm.layout<gptq>>
  // CHECK: llm.assemble %{{.*}} scales(%{{.*}} : tensor<64x1xf16>) codebook(%{{.*}} : tensor<16xf32>) : tensor<64x24xi8> -> tensor<64x48x!llm.q<cb<mine, 4>, *:f16>, #packed>
  %v = llm.assemble %c scales(%s1 : tensor<64x1xf16>) codebook(%b : tensor<16xf32>)
      : tensor<64x24xi8> -> tensor<64x48x!llm.q<cb<mine, 4>, *:f16>, #llm.layout<packed>>
  // Six patterns, so 3 bits, 12 times a row; 5 bytes would do for them, and 24 for the codes.
  // CHECK: llm.assemble %{{.*}} scales(%{{.*}} : tensor<64x1xf16>) patterns(%{{.*}} : tensor<64x5xi8>) order(%{{.*}} : tensor<48xi32>) : tensor<64x24xi8> -> tensor<64x48x!llm.q<i8, 2:4, *:f16>, #packed>
  %m = llm.assemble %c scales(%s1 : tensor<64x1xf16>) patterns(%p : tensor<64x5xi8>) order(%o : tensor<48xi32>)
      : tensor<64x24xi8> -> tensor<64x48x!llm.q<i8, 2:4, *:f16>, #llm.layout<packed>>
  return
}

// CHECK-LABEL: func.func @quantize(
func.func @quantize(%x: tensor<?x576xf32>) {
  // CHECK: llm.quantize %{{.*}} : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
  %q = llm.quantize %x : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, *:f32>>
  // CHECK: llm.quantize %{{.*}} clip(0.9) : tensor<?x576xf32> -> tensor<?x576x!Q8_0_t>
  %c = llm.quantize %x clip(0.9) : tensor<?x576xf32> -> tensor<?x576x!llm.q<i8, 32:f16>>
  return
}

// CHECK-LABEL: func.func @dequantize(
func.func @dequantize(%q: tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>) {
  // CHECK: llm.dequantize %{{.*}} : tensor<576x576x!Q4_1_t, #gguf> -> tensor<576x576xf32>
  %w = llm.dequantize %q : tensor<576x576x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<576x576xf32>
  return
}

// CHECK-LABEL: func.func @relayout(
func.func @relayout(%q: tensor<8x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>) {
  // CHECK: llm.relayout %{{.*}} : tensor<8x32x!Q4_0_t, #gguf> -> tensor<8x32x!Q4_0_t, #tiled>
  %t = llm.relayout %q : tensor<8x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
      -> tensor<8x32x!llm.q<u4-8, 32:f16>, #llm.layout<tiled<rows = 8, word = 32>>>
  return
}
