// RUN: llm-opt --llm-fuse-residual --split-input-file %s | FileCheck %s
// RUN: llm-opt --llm-fuse-residual --split-input-file --remarks-filter=llm --remark-format=emitRemark %s \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @right
func.func @right(%x: tensor<?x32xf32>, %h: tensor<?x64xf32>, %w: tensor<64x32xf16>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[Y:.*]] = llm.linear %arg0, %arg2 residual(%arg1) :
  // CHECK-NEXT: return %[[Y]]
  // REMARK: [Passed] llm-fuse-residual | Category:llm | Remark="residual added in the epilogue"
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %z = llm.add %h, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// A residual that is made after the product: the product moves.
// CHECK-LABEL: @later
func.func @later(%x: tensor<?x32xf32>, %h: tensor<?x64xf32>, %w: tensor<64x32xf16>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[S:.*]] = llm.scale %arg1 by 0.5
  // CHECK-NEXT: llm.linear %arg0, %arg2 residual(%[[S]]) :
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %s = llm.scale %h by 0.5 : tensor<?x64xf32>
  %z = llm.add %y, %s : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @experts
func.func @experts(%x: tensor<?x2x32xf32>, %h: tensor<?x64xf32>, %ids: tensor<?x2xi32>, %p: tensor<?x2xf32>,
                   %w: tensor<4x64x32xf16>) -> tensor<?x64xf32> {
  // CHECK-NEXT: llm.expert_linear %arg0, %arg2, %arg4 combine(%arg3 : tensor<?x2xf32>) residual(%arg1 : tensor<?x64xf32>)
  %y = llm.expert_linear %x, %ids, %w combine(%p : tensor<?x2xf32>)
      : tensor<?x2x32xf32>, tensor<?x2xi32>, tensor<4x64x32xf16> -> tensor<?x64xf32>
  %z = llm.add %h, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// A product that adds a residual already takes no second one; a sum of three becomes two products in a chain.
// CHECK-LABEL: @chain
func.func @chain(%x: tensor<?x32xf32>, %h: tensor<?x64xf32>, %w: tensor<64x32xf16>, %u: tensor<64x32xf16>)
    -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[A:.*]] = llm.linear %arg0, %arg2 residual(%arg1) :
  // CHECK-NEXT: llm.linear %arg0, %arg3 residual(%[[A]]) :
  %a = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %b = llm.linear %x, %u : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %0 = llm.add %h, %a : tensor<?x64xf32>
  %1 = llm.add %0, %b : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @shared
func.func @shared(%x: tensor<?x32xf32>, %h: tensor<?x64xf32>, %w: tensor<64x32xf16>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: llm.add
  // REMARK: [Missed] llm-fuse-residual | Category:llm | Remark="the product has other users, or a residual already"
  %y = llm.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf16> -> tensor<?x64xf32>
  %z = llm.add %h, %y : tensor<?x64xf32>
  return %z, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// CHECK-LABEL: @no_product
func.func @no_product(%x: tensor<?x64xf32>, %h: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: llm.add
  // REMARK-NOT: remark
  %z = llm.add %h, %x : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
