// RUN: not llm-compile %s -o %t.mlir --emit=llm --pass-pipeline='builtin.module(llm-quantize-weights{bits=4})' 2>&1 | FileCheck %s
// RUN: not ls %t.safetensors

// A weight that is not a number is named with its place.
// CHECK: expects finite numbers in "inline", but row 31, column 0 is not a number
func.func @forward(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x32xf32>) {
    %a = llm.weight dense<1.0> : tensor<31x32xf32>
    %b = llm.weight dense<0x7FC00000> : tensor<1x32xf32>
    %w = llm.concat %a, %b axis 0 : tensor<31x32xf32>, tensor<1x32xf32>
    %z = llm.linear %h, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  return %y : tensor<?x32xf32>
}
