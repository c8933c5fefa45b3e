// RUN: llm-opt --llm-fuse-gated-mlp --split-input-file %s | FileCheck %s
// RUN: llm-opt --llm-fuse-gated-mlp --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @fuse
func.func @fuse(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[Y:.*]] = llm.gated_linear gelu_tanh %arg0, %arg1, %arg2 : tensor<?x32xf32>, tensor<64x32xf16>, tensor<64x32xf16> -> tensor<?x64xf32>
  // CHECK-NEXT: return %[[Y]]
  // REMARK: [Passed] llm-fuse-gated-mlp | Category:llm | Remark="gate and up joined"
  %gate = llm.linear %x, %g : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %y = llm.gated_activation gelu_tanh %gate, %up : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A folded norm goes along.
// CHECK-LABEL: @folded_norm
func.func @folded_norm(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>, %n: tensor<32xf32>,
                       %r: tensor<?xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: llm.gated_linear silu %arg0, %arg1, %arg2 gamma(%arg3 : tensor<32xf32>) row_scale(%arg4)
  %gate = llm.linear %x, %g gamma(%n : tensor<32xf32>) row_scale(%r)
      : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %x, %u gamma(%n : tensor<32xf32>) row_scale(%r)
      : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @other_users
func.func @other_users(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: llm.gated_activation
  // REMARK: [Missed] llm-fuse-gated-mlp | Category:llm | Remark="gate or up has other users"
  %gate = llm.linear %x, %g : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x64xf32>
  return %y, %gate : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @bias
func.func @bias(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>, %b: tensor<64xf32>)
    -> tensor<?x64xf32> {
  // CHECK: llm.gated_activation
  // REMARK: [Missed] llm-fuse-gated-mlp | Category:llm | Remark="gate or up has a bias or a residual"
  %gate = llm.linear %x, %g bias(%b : tensor<64xf32>) : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @different_rows
func.func @different_rows(%x: tensor<?x32xf32>, %z: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>)
    -> tensor<?x64xf32> {
  // CHECK: llm.gated_activation
  // REMARK: [Missed] llm-fuse-gated-mlp | Category:llm | Remark="gate and up read different rows"
  %gate = llm.linear %x, %g : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %z, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @different_formats
func.func @different_formats(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xbf16>) -> tensor<?x64xf32> {
  // CHECK: llm.gated_activation
  // REMARK: [Missed] llm-fuse-gated-mlp | Category:llm | Remark="gate and up have weights of different types"
  %gate = llm.linear %x, %g : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %up = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @heads
func.func @heads(%x: tensor<?x32xf32>, %g: tensor<64x32xf16>, %u: tensor<64x32xf16>) -> tensor<?x4x16xf32> {
  // CHECK: llm.gated_activation
  // REMARK: [Missed] llm-fuse-gated-mlp | Category:llm | Remark="gate and up are products of heads"
  %gate = llm.linear %x, %g : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x4x16xf32>
  %up = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x4x16xf32>
  %y = llm.gated_activation silu %gate, %up : tensor<?x4x16xf32>
  return %y : tensor<?x4x16xf32>
}

// -----

// Gates that are no products are not the business of this pass.
// CHECK-LABEL: @no_product
func.func @no_product(%g: tensor<?x64xf32>, %u: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: llm.gated_activation
  // REMARK-NOT: remark
  %y = llm.gated_activation silu %g, %u : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
