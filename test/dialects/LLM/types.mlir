// RUN: llm-opt %s --split-input-file | llm-opt --split-input-file | FileCheck %s

// Every code, and every way to scale one.
// CHECK-LABEL: func.func private @codes
// CHECK-SAME: tensor<32x!llm.q<i2>>, tensor<32x!llm.q<i7, 32:f16>>, tensor<32x!llm.q<u3, 32:f32>>, tensor<32x!llm.q<u4-8, 16:bf16>>
// CHECK-SAME: tensor<32x!llm.q<trit, *:f16>>, tensor<32x!llm.q<f4E2M1, 32:e8m0, *:f32>>, tensor<32x!llm.q<f8E4M3, *:f32>>, tensor<32x!llm.q<f8E5M2, 32:bf16>>
// CHECK-SAME: tensor<32x!llm.q<cb<nf4, 4>, 64:f32>>, tensor<32x!llm.q<cb<mine, 3>>>
func.func private @codes(
    tensor<32x!llm.q<i2>>, tensor<32x!llm.q<i7, 32:f16>>, tensor<32x!llm.q<u3, 32:f32>>, tensor<32x!llm.q<u4-8, 16:bf16>>,
    tensor<32x!llm.q<trit, *:f16>>, tensor<32x!llm.q<f4E2M1, 32:e8m0, *:f32>>, tensor<32x!llm.q<f8E4M3, *:f32>>, tensor<32x!llm.q<f8E5M2, 32:bf16>>,
    tensor<32x!llm.q<cb<nf4, 4>, 64:f32>>, tensor<32x!llm.q<cb<mine, 3>>>)

// -----

// CHECK-LABEL: func.func private @offsets
// CHECK-SAME: !llm.q<u4, 128:f16 zero u4>, !llm.q<u4, 16:u6-u6, 128:f16-f16>, !llm.q<u4, 32:u6+u6, 128:f16+f16>
// CHECK-SAME: !llm.q<i8, 64:f16 zero f16>, !llm.q<u8, 8:u4, 16:u6, 32:i8 zero i8, *:f32+f32>
func.func private @offsets(
    !llm.q<u4, 128:f16 zero u4>, !llm.q<u4, 16:u6 - u6, 128:f16-f16>, !llm.q<u4, 32:u6+u6, 128:f16 + f16>,
    !llm.q<i8, 64 : f16 zero f16>, !llm.q<u8, 8:u4, 16:u6, 32:i8 zero i8, *:f32+f32>)

// -----

// CHECK-LABEL: func.func private @sparse
// CHECK-SAME: !llm.q<i4, 2:4, 64:f16>, !llm.q<i8, 4:8>
func.func private @sparse(!llm.q<i4, 2:4, 64:f16>, !llm.q<i8, 4:8>)

// -----

// CHECK: !kv = !llm.kv<3x64, f16, f16, 2048>
// CHECK-NEXT: !kv1 = !llm.kv<1x576, f16, prefix<512>, 4096>
// CHECK-NEXT: !kv2 = !llm.kv<16x192x128, bf16, f32, 64>
// CHECK-NEXT: !kv3 = !llm.kv<1x256, f16, f16, 4096, window = 512, sinks = 4>
// CHECK-NEXT: !kv4 = !llm.kv<3x64, !llm.q<i8, *:f16>, !Q4_1_t, 8192>
// CHECK: func.func private @caches(!kv, !kv4, !kv1, !kv2, !kv3)
func.func private @caches(
    !llm.kv<3x64, f16, f16, 2048>,
    !llm.kv<3x64, !llm.q<i8, *:f16>, !llm.q<u4, 32:f16+f16>, 8192>,
    !llm.kv<1x576, f16, prefix<512>, 4096>,
    !llm.kv<16x192x128, bf16, f32, 64>,
    !llm.kv<1x256, f16, f16, 4096, window = 512, sinks = 4>)

// -----

// CHECK-LABEL: func.func private @layouts
// CHECK-SAME: tensor<576x1536x!Q4_1_t, #gguf>
// CHECK-SAME: tensor<576x1536x!Q4_1_t, #tiled>
// CHECK-SAME: tensor<576x1536x!Q4_1_t, #tiled1>
// CHECK-SAME: tensor<576x1536x!Q4_1_t, #gptq>, tensor<576x1536x!Q4_1_t, #awq>, tensor<576x1536x!Q4_1_t, #packed>
// CHECK-SAME: tensor<576x1536xf16, #tiled>
func.func private @layouts(
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>,
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 8, word = 32>>>,
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<tiled<rows = 16, word = 64>>>,
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<gptq>>,
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<awq>>,
    tensor<576x1536x!llm.q<u4, 32:f16+f16>, #llm.layout<packed>>,
    tensor<576x1536xf16, #llm.layout<tiled<rows = 8>>>)

// -----

// CHECK-LABEL: func.func private @blocks
// CHECK-SAME: a = #llm.blocks<size = 64, local = 4, first = 1, stride = 8>
// CHECK-SAME: b = #llm.blocks<size = 64, local = 4>
func.func private @blocks() attributes {
  a = #llm.blocks<size = 64, local = 4, first = 1, stride = 8>,
  b = #llm.blocks<size = 64, local = 4>}
