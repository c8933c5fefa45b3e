// RUN: llm-opt --canonicalize %s | FileCheck %s

plan.tensor @w layout "raw" bytes 4096 {
  %0 = arith.constant dense<1.0> : tensor<1024xf32>
  plan.yield %0 : tensor<1024xf32>
}

plan.target @t {
  plan.buffer kv @cache bytes 4096
  plan.kernel @f "f" {}
  // CHECK-LABEL: @append_1
  plan.program @append_1 append width 1 {
    // CHECK-DAG: %[[K:.*]] = plan.view @cache at 1536 bytes 256
    // CHECK-DAG: %[[W:.*]] = plan.weight @w at 1280 bytes 16
    // CHECK-DAG: %[[X:.*]] = plan.scratch "x" bytes 2048
    // CHECK-DAG: %[[Y:.*]] = plan.slice %[[X]] at 768 bytes 128
    %0 = plan.view @cache at 1024 bytes 1024
    %1 = plan.slice %0 at 512 bytes 512
    %2 = plan.slice %1 at 0 bytes 256
    %3 = plan.weight @w at 1024 bytes 1024
    %4 = plan.slice %3 at 256 bytes 16
    %x = plan.scratch "x" bytes 2048
    %5 = plan.slice %x at 512 bytes 1024
    %6 = plan.slice %5 at 256 bytes 128
    // CHECK: plan.dispatch @f(in %[[K]], in %[[W]], out %[[Y]])
    plan.dispatch @f(in %2, in %4, out %6) groups [1, 1, 1]
  }
}
