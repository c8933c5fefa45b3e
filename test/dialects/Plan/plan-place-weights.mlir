// RUN: llm-opt --plan-place-weights %s | FileCheck %s
// RUN: llm-opt --plan-place-weights --remarks-filter=plan --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s

// REMARK: 3 tensors in 13312 bytes
// In order of use; what no program uses is dropped.
// CHECK-NOT: @unused
// CHECK: plan.tensor @second layout "raw" bytes 12000 at 1024
// CHECK: plan.tensor @first layout "raw" bytes 1000 at 0
// CHECK: plan.tensor @third layout "raw" bytes 256 at 13056
plan.tensor @unused layout "raw" bytes 1000 {
  %0 = arith.constant dense<1.0> : tensor<250xf32>
  plan.yield %0 : tensor<250xf32>
}
plan.tensor @second layout "raw" bytes 12000 {
  %0 = arith.constant dense<1.0> : tensor<3000xf32>
  plan.yield %0 : tensor<3000xf32>
}
plan.tensor @first layout "raw" bytes 1000 {
  %0 = arith.constant dense<1.0> : tensor<250xf32>
  plan.yield %0 : tensor<250xf32>
}
plan.tensor @third layout "raw" bytes 256 {
  %0 = arith.constant dense<1.0> : tensor<64xf32>
  plan.yield %0 : tensor<64xf32>
}

// CHECK: plan.target @both
// CHECK-NEXT: plan.buffer weights @weights bytes 16384 at 0
plan.target @both {
  plan.kernel @f "f" {}
  plan.program @append_1 append width 1 {
    %0 = plan.weight @first at 0 bytes 1000
    %1 = plan.weight @second at 0 bytes 12000
    plan.dispatch @f(in %0, in %1) groups [1, 1, 1]
  }
}
// The span of the last alone starts at its page.
// CHECK: plan.target @one
// CHECK-NEXT: plan.buffer weights @weights bytes 4096 at 12288
plan.target @one {
  plan.buffer weights @weights bytes 4096
  plan.kernel @f "f" {}
  plan.program @append_1 append width 1 {
    %0 = plan.weight @third at 0 bytes 256
    plan.dispatch @f(in %0) groups [1, 1, 1]
  }
}
// CHECK: plan.target @none
// CHECK-NOT: plan.buffer
plan.target @none {
}
