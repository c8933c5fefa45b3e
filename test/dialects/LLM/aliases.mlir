// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s

// Every quantised GGUF format has a type of its own, and is printed under its name.
// CHECK-DAG: !Q4_0_t = !llm.q<u4-8, 32:f16>
// CHECK-DAG: !Q4_1_t = !llm.q<u4, 32:f16+f16>
// CHECK-DAG: !Q5_0_t = !llm.q<u5-16, 32:f16>
// CHECK-DAG: !Q5_1_t = !llm.q<u5, 32:f16+f16>
// CHECK-DAG: !Q8_0_t = !llm.q<i8, 32:f16>
// CHECK-DAG: !Q2_K_t = !llm.q<u2, 16:u4-u4, 256:f16-f16>
// CHECK-DAG: !Q3_K_t = !llm.q<i3, 16:i6, 256:f16>
// CHECK-DAG: !Q4_K_t = !llm.q<u4, 32:u6-u6, 256:f16-f16>
// CHECK-DAG: !Q5_K_t = !llm.q<u5, 32:u6-u6, 256:f16-f16>
// CHECK-DAG: !Q6_K_t = !llm.q<i6, 16:i8, 256:f16>
// CHECK-DAG: !IQ2_XXS_t = !llm.q<grid<iq2_xxs, 8>, 32:u4, 256:f16>
// CHECK-DAG: !IQ2_XS_t = !llm.q<grid<iq2_xs, 8>, 16:u4, 256:f16>
// CHECK-DAG: !IQ3_XXS_t = !llm.q<grid<iq3_xxs, 4>, 32:u4, 256:f16>
// CHECK-DAG: !IQ1_S_t = !llm.q<grid<iq1_s, 8>, 32:u3, 256:f16>
// CHECK-DAG: !IQ4_NL_t = !llm.q<cb<iq4nl, 4>, 32:f16>
// CHECK-DAG: !IQ3_S_t = !llm.q<grid<iq3_s, 4>, 32:u4, 256:f16>
// CHECK-DAG: !IQ2_S_t = !llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>
// CHECK-DAG: !IQ4_XS_t = !llm.q<cb<iq4nl, 4>, 32:i6, 256:f16>
// CHECK-DAG: !IQ1_M_t = !llm.q<grid<iq1_m, 8>, 16:u3, 256:f16>
// CHECK-DAG: !TQ1_0_t = !llm.q<trit, 256:f16>
// CHECK-DAG: !TQ2_0_t = !llm.q<u2-1, 256:f16>
// CHECK-DAG: !MXFP4_t = !llm.q<f4E2M1, 32:e8m0>
// CHECK-DAG: !NVFP4_t = !llm.q<f4E2M1, 16:ue4m3>
// CHECK: tensor<256x!Q4_0_t>, tensor<256x!Q4_1_t>
func.func private @gguf(
    tensor<256x!llm.q<u4-8, 32:f16>>, tensor<256x!llm.q<u4, 32:f16+f16>>, tensor<256x!llm.q<u5-16, 32:f16>>,
    tensor<256x!llm.q<u5, 32:f16+f16>>, tensor<256x!llm.q<i8, 32:f16>>,
    tensor<256x!llm.q<u2, 16:u4-u4, 256:f16-f16>>, tensor<256x!llm.q<i3, 16:i6, 256:f16>>,
    tensor<256x!llm.q<u4, 32:u6-u6, 256:f16-f16>>, tensor<256x!llm.q<u5, 32:u6-u6, 256:f16-f16>>,
    tensor<256x!llm.q<i6, 16:i8, 256:f16>>, tensor<256x!llm.q<grid<iq2_xxs, 8>, 32:u4, 256:f16>>,
    tensor<256x!llm.q<grid<iq2_xs, 8>, 16:u4, 256:f16>>, tensor<256x!llm.q<grid<iq3_xxs, 4>, 32:u4, 256:f16>>,
    tensor<256x!llm.q<grid<iq1_s, 8>, 32:u3, 256:f16>>, tensor<256x!llm.q<cb<iq4nl, 4>, 32:f16>>,
    tensor<256x!llm.q<grid<iq3_s, 4>, 32:u4, 256:f16>>, tensor<256x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>>,
    tensor<256x!llm.q<cb<iq4nl, 4>, 32:i6, 256:f16>>, tensor<256x!llm.q<grid<iq1_m, 8>, 16:u3, 256:f16>>,
    tensor<256x!llm.q<trit, 256:f16>>, tensor<256x!llm.q<u2-1, 256:f16>>,
    tensor<256x!llm.q<f4E2M1, 32:e8m0>>, tensor<256x!llm.q<f4E2M1, 16:ue4m3>>)
