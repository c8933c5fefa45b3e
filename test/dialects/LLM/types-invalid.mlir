// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects iN, uN, trit, f4E2M1, f8E4M3, f8E5M2, cb<…> or grid<…>, but got x4}}
func.func private @q_code(!llm.q<x4>)

// -----

// expected-error@+1 {{expects a code of 2 to 8 bits, but got 9}}
func.func private @q_c1_bits(!llm.q<i9>)

// -----

// expected-error@+1 {{expects an offset below 16, but got 16}}
func.func private @q_c1_offset(!llm.q<u4-16>)

// -----

// expected-error@+1 {{expects a named codebook of 1 to 8 bits, but got 'mine' of 9}}
func.func private @q_c2_codebook(!llm.q<cb<mine, 9>>)

// -----

// expected-error@+1 {{expects a known grid (iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m), but got 'mine'}}
func.func private @q_c2_grid(!llm.q<grid<mine, 8>>)

// -----

// expected-error@+1 {{expects 8 elements an index of iq2_xs, but got 4}}
func.func private @q_c2_dim(!llm.q<grid<iq2_xs, 4>>)

// -----

// expected-error@+1 {{expects 0 < N < M <= 32, but got 4:4}}
func.func private @q_c3_pattern(!llm.q<i4, 4:4>)

// -----

// expected-error@+1 {{expects a code without a table for N:M, but got 'nf4'}}
func.func private @q_c3_table(!llm.q<cb<nf4, 4>, 2:4>)

// -----

// expected-error@+1 {{expects one N:M, before the scales and of small numbers, but got 2:4}}
func.func private @q_c3_place(!llm.q<i4, 64:f16, 2:4>)

// -----

// expected-error@+1 {{expects * outermost, but got another level after it}}
func.func private @q_c4_row(!llm.q<i4, *:f16, 256:f16>)

// -----

// expected-error@+1 {{expects a group that is a multiple of 32, but got 48}}
func.func private @q_c4_group(!llm.q<i4, 32:u4, 48:f16>)

// -----

// expected-error@+1 {{expects a group that is a multiple of 4, but got 30}}
func.func private @q_c4_pattern(!llm.q<i4, 2:4, 30:f16>)

// -----

// expected-error@+1 {{expects a scale, minimum or zero point of 2 to 16 bits, but got 17}}
func.func private @q_c5_scale(!llm.q<u4, 32:u17>)

// -----

// expected-error@+1 {{expects a scale, minimum or zero point of 2 to 16 bits, but got 1}}
func.func private @q_c5_zero(!llm.q<u4, 32:f16 zero u1>)

// -----

// expected-error@+1 {{expects f16, bf16, f32, e8m0, ue4m3, uN or iN, but got f64}}
func.func private @q_scale(!llm.q<u4, 32:f64>)

// -----

// expected-error@+1 {{expects positive heads, widths and capacity, but got 3, 64, 64 and 0}}
func.func private @kv_c1(!llm.kv<3x64, f16, f16, 0>)

// -----

// expected-error@+1 {{expects heads x width, but got 1 dimensions}}
func.func private @kv_dims(!llm.kv<3, f16, f16, 2048>)

// -----

// expected-error@+1 {{expects keys and values of f32, f16, bf16 or !llm.q, but got 'i8'}}
func.func private @kv_c2(!llm.kv<3x64, f16, i8, 2048>)

// -----

// expected-error@+1 {{expects a prefix of at most the key's 64 elements, but got 65}}
func.func private @kv_c3(!llm.kv<1x64, f16, prefix<65>, 2048>)

// -----

// expected-error@+1 {{expects window and sinks not to be negative, but got -1 and 0}}
func.func private @kv_c4_window(!llm.kv<1x64, f16, f16, 2048, window = -1>)

// -----

// expected-error@+1 {{expects a window beside sinks, but got 4 sinks alone}}
func.func private @kv_c4_sinks(!llm.kv<1x64, f16, f16, 2048, sinks = 4>)

// -----

// expected-error@+1 {{expects window or sinks, but got other}}
func.func private @kv_option(!llm.kv<1x64, f16, f16, 2048, other = 4>)

// -----

// expected-error@+1 {{expects an !llm.q element type for the layout gguf, but got 'f32'}}
func.func private @layout_c1(tensor<4xf32, #llm.layout<gguf>>)

// -----

// expected-error@+1 {{expects an !llm.q element type for the layout tiled, but got 'i8'}}
func.func private @layout_c1_tiled(tensor<4xi8, #llm.layout<tiled<rows = 8>>>)

// -----

// expected-error@+1 {{expects a tile of 1 to 64 rows, but got 65}}
func.func private @layout_c2_rows(tensor<4xf32, #llm.layout<tiled<rows = 65>>>)

// -----

// expected-error@+1 {{expects words of 32, 64 or 128 bits, but got 16}}
func.func private @layout_c2_word(tensor<4xf32, #llm.layout<tiled<rows = 8, word = 16>>>)

// -----

// expected-error@+1 {{expects gguf, gptq, awq, packed or tiled, but got other}}
func.func private @layout_kind(tensor<4xf32, #llm.layout<other>>)

// -----

// expected-error@+1 {{expects a positive size and local, but got 0 and 4}}
func.func private @blocks_c1_size() attributes {a = #llm.blocks<size = 0, local = 4>}

// -----

// expected-error@+1 {{expects first and stride not to be negative, but got 0 and -1}}
func.func private @blocks_c1_stride() attributes {a = #llm.blocks<size = 64, local = 4, stride = -1>}
