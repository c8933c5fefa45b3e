// RUN: llm-opt --llm-fuse-qkv --split-input-file %s | FileCheck %s
// RUN: llm-opt --llm-fuse-qkv=min-rows=32 --split-input-file %s | FileCheck %s --check-prefix=LARGE
// RUN: llm-opt --llm-fuse-qkv=min-rows=32 --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE-REMARK
// RUN: llm-opt --llm-fuse-qkv --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!kv = !llm.kv<2x16, f16, f16, 64>
llm.source @m {path = "m.gguf", format = "gguf"}
llm.kv_cache @kv : !kv

// The weights of key and value are made where the joined product needs them.
// CHECK-LABEL: @fuse
func.func @fuse(%x: tensor<?x32xf32>, %p: tensor<?xi32>) -> tensor<?x4x16xf32> {
  // CHECK: %[[Q:.*]] = llm.weight @m["q"]
  // CHECK: %[[K:.*]] = llm.weight @m["k"]
  // CHECK: %[[V:.*]] = llm.weight @m["v"]
  // CHECK: %[[W:.*]] = llm.concat %[[Q]], %[[K]], %[[V]] axis 0 : tensor<64x32xf16>, tensor<32x32xf16>, tensor<32x32xf16>
  // CHECK: %[[Y:.*]] = llm.linear %arg0, %[[W]] : tensor<?x32xf32>, tensor<128x32xf16> -> tensor<?x8x16xf32>
  // CHECK: %[[QS:.*]] = llm.slice %[[Y]] 0 to 4 axis 1
  // CHECK: %[[KS:.*]] = llm.slice %[[Y]] 4 to 6 axis 1
  // CHECK: %[[VS:.*]] = llm.slice %[[Y]] 6 to 8 axis 1
  // CHECK: %[[QR:.*]] = llm.rope %[[QS]]
  // CHECK: %[[KR:.*]] = llm.rope %[[KS]]
  // CHECK: llm.kv_append %{{.*}}, %[[KR]], %[[VS]]
  // CHECK: llm.attention %[[QR]]
  // REMARK: [Passed] llm-fuse-qkv | Category:llm | Remark="query, key and value products joined"
  %wq = llm.weight @m["q"] : tensor<64x32xf16>
  %q = llm.linear %x, %wq : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x4x16xf32>
  %wk = llm.weight @m["k"] : tensor<32x32xf16>
  %k = llm.linear %x, %wk : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %wv = llm.weight @m["v"] : tensor<32x32xf16>
  %v = llm.linear %x, %wv : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %qr = llm.rope %q at %p base(10000.0) : tensor<?x4x16xf32>
  %kr = llm.rope %k at %p base(10000.0) : tensor<?x2x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %kr, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %qr, %h at %p scale(0.25) : tensor<?x4x16xf32>, !kv
  return %y : tensor<?x4x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// Whatever the order of the products, queries come first. Biases and folded norms go along.
// CHECK-LABEL: @order
// LARGE-LABEL: @order
func.func @order(%x: tensor<?x32xf32>, %p: tensor<?xi32>, %g: tensor<32xf32>, %r: tensor<?xf32>,
                 %w: tensor<32x32xf16>, %b: tensor<32xf32>, %wq: tensor<64x32xf16>, %bq: tensor<64xf32>)
    -> tensor<?x4x16xf32> {
  // CHECK: %[[W:.*]] = llm.concat %arg6, %arg4, %arg4 axis 0
  // CHECK: %[[B:.*]] = llm.concat %arg7, %arg5, %arg5 axis 0
  // CHECK: llm.linear %arg0, %[[W]] gamma(%arg2 : tensor<32xf32>) row_scale(%arg3) bias(%[[B]] : tensor<128xf32>)
  // LARGE-NOT: llm.concat
  // LARGE-REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="every product has min-rows rows of weights or more"
  %v = llm.linear %x, %w gamma(%g : tensor<32xf32>) row_scale(%r) bias(%b : tensor<32xf32>)
      : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w gamma(%g : tensor<32xf32>) row_scale(%r) bias(%b : tensor<32xf32>)
      : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %q = llm.linear %x, %wq gamma(%g : tensor<32xf32>) row_scale(%r) bias(%bq : tensor<64xf32>)
      : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x4x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x4x16xf32>, !kv
  return %y : tensor<?x4x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// CHECK-LABEL: @different_rows
func.func @different_rows(%x: tensor<?x32xf32>, %z: tensor<?x32xf32>, %p: tensor<?xi32>, %w: tensor<32x32xf16>)
    -> tensor<?x2x16xf32> {
  // CHECK-COUNT-3: llm.linear
  // REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="query, key and value are not products of the same rows"
  %q = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %v = llm.linear %z, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// One tensor has one format.
// CHECK-LABEL: @different_formats
func.func @different_formats(%x: tensor<?x32xf32>, %p: tensor<?xi32>, %w: tensor<32x32xf16>, %u: tensor<32x32xbf16>)
    -> tensor<?x2x16xf32> {
  // CHECK-COUNT-3: llm.linear
  // REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="weights of different types"
  %q = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %v = llm.linear %x, %u : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x2x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

!kv = !llm.kv<2x16x8, f16, f16, 64>
llm.kv_cache @kv : !kv

// CHECK-LABEL: @different_heads
func.func @different_heads(%x: tensor<?x32xf32>, %p: tensor<?xi32>, %w: tensor<32x32xf16>, %u: tensor<16x32xf16>)
    -> tensor<?x2x8xf32> {
  // CHECK-COUNT-3: llm.linear
  // REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="heads of different sizes"
  %q = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %v = llm.linear %x, %u : tensor<?x32xf32>, tensor<16x32xf16> -> tensor<?x2x8xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x8xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x8xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// CHECK-LABEL: @one_bias
func.func @one_bias(%x: tensor<?x32xf32>, %p: tensor<?xi32>, %w: tensor<32x32xf16>, %b: tensor<32xf32>)
    -> tensor<?x2x16xf32> {
  // CHECK-COUNT-3: llm.linear
  // REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="some products have a bias and some have none"
  %q = llm.linear %x, %w bias(%b : tensor<32xf32>) : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %v = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %k, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %q, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

!kv = !llm.kv<2x16, f16, f16, 64>
llm.kv_cache @kv : !kv

// CHECK-LABEL: @head_norms
func.func @head_norms(%x: tensor<?x32xf32>, %p: tensor<?xi32>, %w: tensor<32x32xf16>, %g: tensor<16xf32>)
    -> tensor<?x2x16xf32> {
  // CHECK-COUNT-3: llm.linear
  // REMARK: [Missed] llm-fuse-qkv | Category:llm | Remark="a norm or a factor of heads reads the product as a whole"
  %q = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %k = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %v = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %qn = llm.rms_norm %q gamma(%g : tensor<16xf32>) eps(1.0e-6) : tensor<?x2x16xf32>
  %kn = llm.rms_norm %k gamma(%g : tensor<16xf32>) eps(1.0e-6) : tensor<?x2x16xf32>
  %h = llm.kv @kv[0] : !kv
  llm.kv_append %h, %kn, %v at %p : !kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>
  %y = llm.attention %qn, %h at %p scale(0.25) : tensor<?x2x16xf32>, !kv
  return %y : tensor<?x2x16xf32>
}

// -----

// Products of one x that end in no attention are not the business of this pass.
// CHECK-LABEL: @no_attention
func.func @no_attention(%x: tensor<?x32xf32>, %w: tensor<32x32xf16>) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>) {
  // CHECK-COUNT-2: llm.linear
  // REMARK-NOT: remark
  %a = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  %b = llm.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x2x16xf32>
  return %a, %b : tensor<?x2x16xf32>, tensor<?x2x16xf32>
}
