// RUN: llm-opt --plan-bound-submissions %s | FileCheck %s
// RUN: llm-opt --plan-bound-submissions --plan-bound-submissions %s | FileCheck %s
// RUN: llm-opt --plan-bound-submissions --remarks-filter=codegen --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s

// REMARK: @append_1: 5 submissions
// REMARK: one workgroup takes longer than a submission may

// The watchdog of this profile is two seconds: half a second a submission.
// CHECK-LABEL: plan.target @generic
plan.target @generic {
  plan.kernel @k "f" {}
  // CHECK: plan.program @append_1
  plan.program @append_1 append width 1 {
    %x = plan.scratch "x" bytes 256
    %y = plan.scratch "y" bytes 256
    %counts = plan.scratch "counts" bytes 12
    // Two fit.
    // CHECK: plan.dispatch @k(in %{{.*}}, out %{{.*}}) groups [4, 1, 1] {nanoseconds = 200000000 : i64}
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} groups [4, 1, 1] {nanoseconds = 200000000 : i64}
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [4, 1, 1] "third" {nanoseconds = 200000000 : i64}
    plan.dispatch @k(in %x, out %y) groups [4, 1, 1] {nanoseconds = 200000000 : i64}
    plan.barrier
    plan.dispatch @k(in %y, out %x) groups [4, 1, 1] {nanoseconds = 200000000 : i64}
    plan.barrier
    plan.dispatch @k(in %x, out %y) groups [4, 1, 1] "third" {nanoseconds = 200000000 : i64}
    // One does not: parts along its longest side, and nothing is lost of what they do.
    // CHECK-NEXT: plan.barrier{{$}}
    // CHECK-NEXT: plan.dispatch {{.*}} groups [1, 3, 1] base [0, 0, 0] "long" {macs = 12 : i64, nanoseconds = 171428571 : i64, touched = 6 : i64}
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [2, 3, 1] base [1, 0, 0] "long"
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [2, 3, 1] base [3, 0, 0] "long"
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [2, 3, 1] base [5, 0, 0] "long" {macs = 24 : i64, nanoseconds = 342857142 : i64, touched = 12 : i64}
    plan.barrier
    plan.dispatch @k(in %y, out %x) groups [7, 3, 1] "long" {macs = 84 : i64, nanoseconds = 1200000000 : i64, touched = 42 : i64}
  }
  // The watchdog counts indirect dispatches at their most.
  // CHECK: plan.program @append_4
  plan.program @append_4 append width 4 {
    %x = plan.scratch "x" bytes 256
    %counts = plan.scratch "counts" bytes 12
    // CHECK: plan.dispatch {{.*}} groups [1, 1, 2] base [0, 0, 0] "parts"
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [1, 1, 2] base [0, 0, 2] "parts"
    plan.dispatch @k(inout %x) groups [1, 1, 4] indirect %counts "parts" {nanoseconds = 900000000 : i64}
    // A single workgroup stays whole.
    // CHECK-NEXT: plan.barrier submit
    // CHECK-NEXT: plan.dispatch {{.*}} groups [1, 1, 1] "one" {nanoseconds = 900000000 : i64}
    plan.barrier
    plan.dispatch @k(inout %x) groups [1, 1, 1] "one" {nanoseconds = 900000000 : i64}
  }
}

// No watchdog there.
// CHECK-LABEL: plan.target @lavapipe
plan.target @lavapipe {
  plan.kernel @k "f" {}
  plan.program @append_1 append width 1 {
    %x = plan.scratch "x" bytes 256
    // CHECK: plan.dispatch {{.*}} groups [7, 3, 1] {nanoseconds = 9000000000 : i64}
    plan.dispatch @k(inout %x) groups [7, 3, 1] {nanoseconds = 9000000000 : i64}
  }
}
