// RUN: llm-opt --llm-fuse-norm --split-input-file %s | FileCheck %s
// RUN: llm-opt --llm-fuse-norm=max-users=1 --split-input-file %s | FileCheck %s --check-prefix=ONE
// RUN: llm-opt --llm-fuse-norm --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @fuse
func.func @fuse(%x: tensor<?x32xf32>, %g: tensor<32xf32>, %w: tensor<64x32xf16>, %b: tensor<64xf32>)
    -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[R:.*]] = llm.rms_scale %arg0 eps(1.0e-05) : tensor<?x32xf32>
  // CHECK-NEXT: llm.linear %arg0, %arg2 gamma(%arg1 : tensor<32xf32>) row_scale(%[[R]]) bias(%arg3 : tensor<64xf32>) :
  // REMARK: [Passed] llm-fuse-norm | Category:llm | Remark="norm folded into the product"
  %n = llm.rms_norm %x gamma(%g : tensor<32xf32>) eps(1.0e-5) : tensor<?x32xf32>
  %y = llm.linear %n, %w bias(%b : tensor<64xf32>) : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// One factor serves all users; the width that counts goes with it.
// CHECK-LABEL: @several
// ONE-LABEL: @several
func.func @several(%x: tensor<?x32xf32>, %w: tensor<64x32xf16>, %u: tensor<64x32xf16>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NEXT: %[[R:.*]] = llm.rms_scale %arg0 eps(1.0e-06) count(48) : tensor<?x32xf32>
  // CHECK-NEXT: llm.linear %arg0, %arg1 row_scale(%[[R]]) :
  // CHECK-NEXT: llm.gated_linear silu %arg0, %arg1, %arg2 row_scale(%[[R]]) :
  // ONE: llm.rms_norm
  %n = llm.rms_norm %x eps(1.0e-6) count(48) : tensor<?x32xf32>
  %y = llm.linear %n, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %z = llm.gated_linear silu %n, %w, %u
      : tensor<?x32xf32>, tensor<64x32xf16>, tensor<64x32xf16> -> tensor<?x64xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @other_user
func.func @other_user(%x: tensor<?x32xf32>, %w: tensor<32x32xf16>) -> tensor<?x32xf32> {
  // CHECK: llm.rms_norm
  // REMARK: [Missed] llm-fuse-norm | Category:llm | Remark="a user of the norm is not a product without a norm"
  %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x32xf32>
  %y = llm.linear %n, %w residual(%n) : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: @folded_already
func.func @folded_already(%x: tensor<?x32xf32>, %w: tensor<32x32xf16>, %g: tensor<32xf32>) -> tensor<?x32xf32> {
  // CHECK: llm.rms_norm
  // REMARK: [Missed] llm-fuse-norm | Category:llm | Remark="a user of the norm is not a product without a norm"
  %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x32xf32>
  %y = llm.linear %n, %w gamma(%g : tensor<32xf32>) : tensor<?x32xf32>, tensor<32x32xf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: @quantised
func.func @quantised(%x: tensor<?x32xf32>, %w: tensor<64x32x!llm.q<i8, *:f32>>) -> tensor<?x64xf32> {
  // CHECK: llm.rms_norm
  // REMARK: [Missed] llm-fuse-norm | Category:llm | Remark="the norm quantises its result"
  %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x32xf32> -> tensor<?x32x!llm.q<i8, *:f32>>
  %y = llm.linear %n, %w : tensor<?x32x!llm.q<i8, *:f32>>, tensor<64x32x!llm.q<i8, *:f32>> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @heads
func.func @heads(%x: tensor<?x4x8xf32>, %w: tensor<64x32xf16>) -> tensor<?x64xf32> {
  // CHECK: llm.rms_norm
  // REMARK: [Missed] llm-fuse-norm | Category:llm | Remark="the norm is of each head"
  %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x4x8xf32>
  %y = llm.linear %n, %w : tensor<?x4x8xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// ONE-LABEL: @two_products
func.func @two_products(%x: tensor<?x32xf32>, %w: tensor<64x32xf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // ONE: llm.rms_norm
  %n = llm.rms_norm %x eps(1.0e-5) : tensor<?x32xf32>
  %y = llm.linear %n, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %z = llm.linear %n, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}
