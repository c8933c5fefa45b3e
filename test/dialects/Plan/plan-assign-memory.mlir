// RUN: llm-opt --split-input-file --plan-assign-memory %s | FileCheck %s
// RUN: llm-opt --split-input-file --plan-assign-memory --remarks-filter=plan --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s

// A chain needs two places; the largest program sizes the buffer.
// CHECK-LABEL: plan.target @chain
// CHECK-NEXT: plan.buffer scratch @scratch bytes 3072
// REMARK: @append_1: scratch peak 2048 bytes for 4 values, at least 2048 are alive at one time
// REMARK: @append_2: scratch peak 3072 bytes for 2 values, at least 3072 are alive at one time
plan.target @chain {
  plan.kernel @f "f" {}
  // CHECK: @append_1
  plan.program @append_1 append width 1 {
    // CHECK-NEXT: %[[A:.*]] = plan.view @scratch at 0 bytes 1024
    // CHECK-NEXT: %[[B:.*]] = plan.view @scratch at 1024 bytes 1000
    // CHECK-NEXT: %[[C:.*]] = plan.view @scratch at 0 bytes 1024
    // CHECK-NEXT: %[[D:.*]] = plan.view @scratch at 1024 bytes 4
    %a = plan.scratch "a" bytes 1024
    %b = plan.scratch "b" bytes 1000
    %c = plan.scratch "c" bytes 1024
    %d = plan.scratch "d" bytes 4
    // CHECK-NEXT: plan.dispatch @f(out %[[A]])
    plan.dispatch @f(out %a) groups [1, 1, 1]
    plan.dispatch @f(in %a, out %b) groups [1, 1, 1]
    plan.dispatch @f(in %b, out %c) groups [1, 1, 1]
    plan.dispatch @f(in %c, out %d) groups [1, 1, 1]
  }
  plan.program @append_2 append width 2 {
    %a = plan.scratch "a" bytes 2048
    %b = plan.scratch "b" bytes 1000
    plan.dispatch @f(out %a) groups [1, 1, 1]
    plan.dispatch @f(in %a, out %b) groups [1, 1, 1]
  }
}

// -----

// Sharing must not make independent dispatches wait: %b dies in the step in which %c is born.
// CHECK-LABEL: plan.target @no_new_barriers
// CHECK-NEXT: plan.buffer scratch @scratch bytes 768
plan.target @no_new_barriers {
  plan.buffer logits @logits bytes 512
  plan.kernel @f "f" {}
  plan.program @append_1 append width 1 {
    // CHECK: plan.view @scratch at 0 bytes 256
    // CHECK: plan.view @scratch at 256 bytes 256
    // CHECK: plan.view @scratch at 512 bytes 256
    %a = plan.scratch "a" bytes 256
    %b = plan.scratch "b" bytes 256
    %c = plan.scratch "c" bytes 256
    %o = plan.view @logits at 0 bytes 256
    %p = plan.view @logits at 256 bytes 256
    plan.dispatch @f(out %a) groups [1, 1, 1]
    plan.dispatch @f(out %b) groups [1, 1, 1]
    plan.dispatch @f(in %b, out %o) groups [1, 1, 1]
    plan.dispatch @f(in %a, out %c) groups [1, 1, 1]
    plan.dispatch @f(in %c, out %p) groups [1, 1, 1]
  }
}

// -----

// Best fit: the small value takes the small hole. Slices keep their value alive; what nothing uses goes.
// CHECK-LABEL: plan.target @best_fit
// CHECK-NEXT: plan.buffer scratch @scratch bytes 4864
plan.target @best_fit {
  plan.kernel @f "f" {}
  // CHECK: @append_1
  plan.program @append_1 append width 1 {
    // CHECK-NEXT: plan.view @scratch at 0 bytes 2048
    // CHECK-NEXT: plan.view @scratch at 4096 bytes 512
    // CHECK-NEXT: plan.view @scratch at 3072 bytes 1024
    // CHECK-NEXT: plan.view @scratch at 4608 bytes 256
    // CHECK-NEXT: plan.view @scratch at 2048 bytes 1024
    // CHECK-NEXT: plan.view @scratch at 4096 bytes 512
    // CHECK-NOT: unused
    // CHECK: plan.slice
    %big = plan.scratch "big" bytes 2048
    %small = plan.scratch "small" bytes 512
    %keep1 = plan.scratch "keep1" bytes 1024
    %keep2 = plan.scratch "keep2" bytes 256
    %keep0 = plan.scratch "keep0" bytes 1024
    %late = plan.scratch "late" bytes 512
    %unused = plan.scratch "unused" bytes 65536
    %part = plan.slice %keep0 at 256 bytes 256
    plan.dispatch @f(out %keep0, out %small, out %keep1, out %keep2, out %big) groups [1, 1, 1]
    plan.dispatch @f(in %small, inout %big) groups [1, 1, 1]
    plan.dispatch @f(in %big, out %late) groups [1, 1, 1]
    plan.dispatch @f(in %part, in %keep1, in %keep2, in %late, in %big) groups [1, 1, 1]
  }
}

// -----

// A target without scratch values gets no buffer.
// CHECK-LABEL: plan.target @nothing
// CHECK-NOT: plan.buffer
plan.target @nothing {
  plan.program @append_1 append width 1 {
  }
}
