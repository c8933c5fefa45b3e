// RUN: llm-opt --plan-insert-barriers %s | FileCheck %s
// RUN: llm-opt --plan-insert-barriers --remarks-filter=plan --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s

plan.tensor @w layout "raw" bytes 4096 {
  %0 = arith.constant dense<1.0> : tensor<1024xf32>
  plan.yield %0 : tensor<1024xf32>
}

plan.target @t {
  plan.buffer scratch @scratch bytes 8192
  plan.buffer kv @cache bytes 4096
  plan.kernel @f "f" {}
  plan.kernel @g "g" {}

  // Read after write, write after read, write after write: each waits. Reading together does not.
  // CHECK-LABEL: @append_1
  // REMARK: @append_1: 3 barriers for 5 dispatches
  plan.program @append_1 append width 1 {
    %a = plan.view @scratch at 0 bytes 1024
    %b = plan.view @scratch at 1024 bytes 1024
    %c = plan.view @scratch at 2048 bytes 1024
    // CHECK: plan.dispatch @f(in %{{.*}}, out %{{.*}}) groups [1, 1, 1] "a to b"
    plan.dispatch @f(in %a, out %b) groups [1, 1, 1] "a to b"
    // CHECK-NEXT: plan.dispatch {{.*}} "a to c"
    plan.dispatch @f(in %a, out %c) groups [1, 1, 1] "a to c"
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} "b to a"
    plan.dispatch @f(in %b, out %a) groups [1, 1, 1] "b to a"
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} "c to a"
    plan.dispatch @f(in %c, out %a) groups [1, 1, 1] "c to a"
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} "a to a"
    plan.dispatch @f(in %a, out %a) groups [1, 1, 1] "a to a"
  }

  // Ranges of one buffer that do not overlap are independent, and so are weights; ranges that overlap by a byte are not.
  // CHECK-LABEL: @append_2
  // REMARK: @append_2: 1 barriers for 3 dispatches
  plan.program @append_2 append width 2 {
    %w = plan.weight @w at 0 bytes 4096
    %k = plan.view @cache at 0 bytes 1024
    %v = plan.view @cache at 1024 bytes 1024
    %all = plan.view @cache at 0 bytes 1025
    // CHECK: plan.dispatch {{.*}} "k"
    plan.dispatch @f(in %w, out %k) groups [1, 1, 1] "k"
    // CHECK-NEXT: plan.dispatch {{.*}} "v"
    plan.dispatch @f(in %w, out %v) groups [1, 1, 1] "v"
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} "all"
    plan.dispatch @g(in %w, in %all) groups [1, 1, 1] "all"
  }

  // One barrier serves all that wait, those that were there before go, and workgroup counts ask for their own kind.
  // CHECK-LABEL: @sample_1
  // REMARK: @sample_1: 2 barriers for 4 dispatches
  plan.program @sample_1 sample width 1 {
    %a = plan.scratch "a" bytes 1024
    %b = plan.scratch "b" bytes 1024
    %c = plan.scratch "counts" bytes 12
    // CHECK: plan.dispatch {{.*}} "a"
    // CHECK-NEXT: plan.dispatch {{.*}} "counts"
    // CHECK-NEXT: plan.barrier indirect
    // CHECK-NEXT: plan.dispatch {{.*}} "counted"
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} "last"
    // CHECK-NEXT: }
    plan.barrier
    plan.dispatch @f(out %a) groups [1, 1, 1] "a"
    plan.barrier
    plan.dispatch @f(out %c) groups [1, 1, 1] "counts"
    plan.dispatch @g(in %a, out %b) groups [8, 1, 1] indirect %c "counted"
    plan.barrier indirect
    plan.dispatch @g(in %a, in %b) groups [8, 1, 1] indirect %c "last"
    plan.barrier
  }
}
