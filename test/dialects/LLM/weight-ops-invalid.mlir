// RUN: llm-opt %s --split-input-file --verify-diagnostics
func.func @weight_c1_neither() {
  // expected-error@+1 {{expects a source and a key, or an inline value, but got neither}}
  %w = "llm.weight"() : () -> tensor<2xf32>
  return
}

// -----

llm.source @model
func.func @weight_c1_both() {
  // expected-error@+1 {{expects a source and a key, or an inline value, but got both}}
  %w = "llm.weight"() <{source = @model, key = "k", value = dense<0.0> : tensor<2xf32>}> : () -> tensor<2xf32>
  return
}

// -----
func.func @weight_c2() {
  // expected-error@+1 {{expects an llm.source, but got @model}}
  %w = llm.weight @model["k"] : tensor<2xf32>
  return
}

// -----
func.func @weight_c3_type() {
  // expected-error@+1 {{expects an inline value of type 'tensor<2xf16>', but got 'tensor<2xf32>'}}
  %w = llm.weight dense<0.0> : tensor<2xf32> as tensor<2xf16>
  return
}

// -----
func.func @weight_c3_blob() {
  // expected-error@+1 {{expects 18 bytes for 'tensor<1x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>', but got 17}}
  %w = llm.weight dense<0> : tensor<17xi8> as tensor<1x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
  return
}

// -----

llm.source @model
func.func @weight_c4() {
  // expected-error@+1 {{expects a static shape, but got ?x2}}
  %w = llm.weight @model["k"] : tensor<?x2xf32>
  return
}

// -----
func.func @slice_c1(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects an axis below the rank 2, but got 2}}
  %y = llm.slice %x 0 to 1 axis 2 : tensor<4x8xf32>
  return
}

// -----
func.func @slice_c2_order(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects 0 <= begin < end <= 8, but got 5 to 5}}
  %y = llm.slice %x 5 to 5 axis 1 : tensor<4x8xf32>
  return
}

// -----
func.func @slice_c2_end(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects 0 <= begin < end <= 4, but got 0 to 5}}
  %y = llm.slice %x 0 to 5 axis 0 : tensor<4x8xf32>
  return
}

// -----
func.func @slice_c3(%x: tensor<4x96x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects a cut at multiples of 32, but got 0 to 48}}
  %y = llm.slice %x 0 to 48 axis 1 : tensor<4x96x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @slice_type(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{'llm.slice' op inferred type(s) 'tensor<4x3xf32>' are incompatible with return type(s) of operation 'tensor<4x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = "llm.slice"(%x) <{begin = 0 : i64, end = 3 : i64, axis = 1 : i64}> : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----
func.func @concat_c1() {
  // expected-error@+1 {{expects at least one input, but got none}}
  %y = "llm.concat"() <{axis = 0 : i64}> : () -> tensor<4xf32>
  return
}

// -----
func.func @concat_c2(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects an axis below the rank 2, but got -1}}
  %y = llm.concat %x, %x axis -1 : tensor<4x8xf32>, tensor<4x8xf32>
  return
}

// -----
func.func @concat_c3(%x: tensor<4x8xf32>, %y: tensor<4x7xf32>) {
  // expected-error@+1 {{expects inputs that differ along axis 0 alone, but got 'tensor<4x8xf32>' and 'tensor<4x7xf32>'}}
  %z = llm.concat %x, %y axis 0 : tensor<4x8xf32>, tensor<4x7xf32>
  return
}

// -----
func.func @concat_c3_rank(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{expects inputs that differ along axis 0 alone, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  %z = llm.concat %x, %y axis 0 : tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----
func.func @concat_c4(%x: tensor<4x48x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects inputs of whole groups of 32, but got 48}}
  %z = llm.concat %x, %x axis 1 : tensor<4x48x!llm.q<i8, 32:f16>>, tensor<4x48x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @gather_c1(%x: tensor<4x8xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{expects an axis below the rank 2, but got 3}}
  %z = llm.gather %x, %i axis 3 : tensor<4x8xf32>, tensor<3xi32>
  return
}

// -----
func.func @gather_c2(%x: tensor<4x32x!llm.q<i8, 32:f16>>, %i: tensor<3xi32>) {
  // expected-error@+1 {{expects a tensor without groups along axis 1, but got '!llm.q<i8, 32:f16>'}}
  %z = llm.gather %x, %i axis 1 : tensor<4x32x!llm.q<i8, 32:f16>>, tensor<3xi32>
  return
}

// -----
func.func @offset_c1(%x: tensor<8xf32>) {
  // expected-error @+1 {{'llm.offset' op expects a result of the input's shape, but got 'tensor<4xf32>' for 'tensor<8xf32>'}}
  %z = llm.offset %x by 1.0 : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @offset_c2(%x: tensor<8xbf16>) {
  // expected-error @+1 {{'llm.offset' op expects a result of f32, but got 'tensor<8xbf16>'}}
  %z = llm.offset %x by 1.0 : tensor<8xbf16> -> tensor<8xbf16>
  return
}

// -----

func.func @scale_axis_c1(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{expects an axis below the rank 2, but got 2}}
  %z = llm.scale_axis %x, %s axis 2 : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----
func.func @scale_axis_c2(%x: tensor<4x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{expects one factor a slice, but got 8 for 4}}
  %z = llm.scale_axis %x, %s axis 0 : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----
func.func @transpose_c1(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a permutation of 2 dimensions, but got [0, 0]}}
  %z = llm.transpose %x [0, 0] : tensor<4x8xf32>
  return
}

// -----
func.func @transpose_c2(%x: tensor<4x32x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects the last dimension of a quantised tensor to stay last, but got [1, 0]}}
  %z = llm.transpose %x [1, 0] : tensor<4x32x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @reshape_c1(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects static shapes of as many elements, but got 4x8 and 4x9}}
  %z = llm.reshape %x : tensor<4x8xf32> -> tensor<4x9xf32>
  return
}

// -----
func.func @reshape_c1_dynamic(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{expects static shapes of as many elements, but got ?x8 and ?x2x5}}
  %z = llm.reshape %x : tensor<?x8xf32> -> tensor<?x2x5xf32>
  return
}

// -----
func.func @reshape_c2(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects the same element type and layout, but got 'tensor<4x8xf32>' and 'tensor<32xf16>'}}
  %z = llm.reshape %x : tensor<4x8xf32> -> tensor<32xf16>
  return
}

// -----
func.func @reshape_c3(%x: tensor<4x32x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects a quantised tensor to keep its last dimension, but got 4x32 and 2x64}}
  %z = llm.reshape %x : tensor<4x32x!llm.q<i8, 32:f16>> -> tensor<2x64x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @assemble_c1(%c: tensor<32x32xi8>, %s: tensor<32x1xf16>) {
  // expected-error@+1 {{expects a result in layout gptq, awq or packed, but got 'tensor<32x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>'}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) : tensor<32x32xi8> -> tensor<32x32x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
  return
}

// -----
func.func @assemble_c2(%c: tensor<32x32xi8>) {
  // expected-error@+1 {{expects 1 tensors of scales, but got 0}}
  %z = llm.assemble %c : tensor<32x32xi8> -> tensor<32x32x!llm.q<i8, 32:f16>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c3(%c: tensor<32x32xi8>, %s: tensor<32x1xf16>) {
  // expected-error@+1 {{expects 1 tensors of minima or zero points, but got 0}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) : tensor<32x32xi8> -> tensor<32x32x!llm.q<u8, 32:f16 zero u8>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c4_missing(%c: tensor<32x16xi8>, %s: tensor<32x1xf16>) {
  // expected-error@+1 {{expects a codebook for '!llm.q<cb<mine, 4>, 32:f16>', but got none}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) : tensor<32x16xi8> -> tensor<32x32x!llm.q<cb<mine, 4>, 32:f16>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c4_known(%c: tensor<32x16xi8>, %s: tensor<32x1xf16>, %b: tensor<16xf32>) {
  // expected-error@+1 {{expects no codebook for '!llm.q<cb<nf4, 4>, 32:f16>', but got one}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) codebook(%b : tensor<16xf32>) : tensor<32x16xi8>
      -> tensor<32x32x!llm.q<cb<nf4, 4>, 32:f16>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c4_entries(%c: tensor<32x16xi8>, %s: tensor<32x1xf16>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects 16 entries, but got 8}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) codebook(%b : tensor<8xf32>) : tensor<32x16xi8>
      -> tensor<32x32x!llm.q<cb<mine, 4>, 32:f16>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c5(%c: tensor<32x15xi8>, %s: tensor<32x1xf16>) {
  // expected-error@+1 {{expects codes of shape 32x16, but got 32x15}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) : tensor<32x15xi8> -> tensor<32x32x!llm.q<i4, 32:f16>, #llm.layout<packed>>
  return
}

// -----
func.func @assemble_c6_missing(%c: tensor<32x8xi8>, %s: tensor<32x1xf16>) {
  // expected-error@+1 {{expects patterns for '!llm.q<i4, 2:4, 32:f16>', but got none}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) : tensor<32x8xi8> -> tensor<32x32x!llm.q<i4, 2:4, 32:f16>, #llm.layout<packed>>
  return
}

// -----

func.func @assemble_c6_dense(%c: tensor<32x16xi8>, %s: tensor<32x1xf16>, %p: tensor<32x3xi8>) {
  // expected-error@+1 {{expects no patterns for '!llm.q<i4, 32:f16>', but got some}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) patterns(%p : tensor<32x3xi8>)
      : tensor<32x16xi8> -> tensor<32x32x!llm.q<i4, 32:f16>, #llm.layout<packed>>
  return
}

// -----

func.func @assemble_c6_layout(%c: tensor<2x32xi32>, %s: tensor<1x32xf16>, %p: tensor<32x3xi8>) {
  // expected-error@+1 {{expects the layout packed for N:M, but got gptq}}
  %z = llm.assemble %c scales(%s : tensor<1x32xf16>) patterns(%p : tensor<32x3xi8>)
      : tensor<2x32xi32> -> tensor<32x32x!llm.q<i4, 2:4, 32:f16>, #llm.layout<gptq>>
  return
}

// -----

func.func @assemble_c6_shape(%c: tensor<32x8xi8>, %s: tensor<32x1xf16>, %p: tensor<32x4xi8>) {
  // expected-error@+1 {{expects patterns of shape 32x3, but got 32x4}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) patterns(%p : tensor<32x4xi8>)
      : tensor<32x8xi8> -> tensor<32x32x!llm.q<i4, 2:4, 32:f16>, #llm.layout<packed>>
  return
}

// -----

func.func @assemble_c7(%c: tensor<32x16xi8>, %s: tensor<32x1xf16>, %o: tensor<16xi32>) {
  // expected-error@+1 {{expects an order of 32 columns, but got 16}}
  %z = llm.assemble %c scales(%s : tensor<32x1xf16>) order(%o : tensor<16xi32>)
      : tensor<32x16xi8> -> tensor<32x32x!llm.q<i4, 32:f16>, #llm.layout<packed>>
  return
}

// -----

func.func @quantize_c1(%x: tensor<4x32xf32>) {
  // expected-error@+1 {{expects the shape of the input 4x32, but got 4x64}}
  %z = llm.quantize %x : tensor<4x32xf32> -> tensor<4x64x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @quantize_c2(%x: tensor<4x32xf32>) {
  // expected-error@+1 {{expects a code without a grid or learned codebook, but got '!llm.q<cb<mine, 4>, 32:f16>'}}
  %z = llm.quantize %x : tensor<4x32xf32> -> tensor<4x32x!llm.q<cb<mine, 4>, 32:f16>>
  return
}

// -----
func.func @quantize_c3(%x: tensor<4x32xf32>) {
  // expected-error@+1 {{expects a clip above 0 and at most 1, but got 1.5}}
  %z = llm.quantize %x clip(1.5) : tensor<4x32xf32> -> tensor<4x32x!llm.q<i8, 32:f16>>
  return
}

// -----
func.func @dequantize_c1(%x: tensor<4x32x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects the shape of the input 4x32, but got 32x4}}
  %z = llm.dequantize %x : tensor<4x32x!llm.q<i8, 32:f16>> -> tensor<32x4xf32>
  return
}

// -----
func.func @relayout_c1(%x: tensor<4x32x!llm.q<i8, 32:f16>>) {
  // expected-error@+1 {{expects the shape and element type of the input 'tensor<4x32x!llm.q<i8, 32:f16>>', but got 'tensor<4x32x!llm.q<u4-8, 32:f16>>'}}
  %z = llm.relayout %x : tensor<4x32x!llm.q<i8, 32:f16>> -> tensor<4x32x!llm.q<u4-8, 32:f16>>
  return
}

// -----

func.func @argsort_needs_a_vector(%g: tensor<4x4xi32>) -> tensor<4x4xi32> {
  // expected-error@+1 {{operand #0 must be 1D tensor}}
  %o = llm.argsort %g : tensor<4x4xi32>
  return %o : tensor<4x4xi32>
}
