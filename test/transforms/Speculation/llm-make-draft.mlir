// RUN: llm-opt --llm-make-draft=layers=1 %s | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: llm-opt --llm-make-draft=skip=2 %s | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: llm-opt "--pass-pipeline=builtin.module(llm-make-draft{passes={canonicalize,cse} note=bits:3})" %s \
// RUN:   | FileCheck %s --check-prefixes=CHECK,PASSES
// RUN: llm-opt --llm-make-draft=layers=1,3 %s --remarks-filter=llm --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

llm.kv_cache @kv : 4 x !llm.kv<1x32, f16, f16, 64>

// What was there stays, and the draft has the same caches.
// CHECK: func.func @forward
// CHECK-NOT: llm.draft
// CHECK-COUNT-4: llm.layer
// CHECK: func.func @guess_self(%[[IDS:.*]]: tensor<?xi32>, %[[P:.*]]: tensor<?xi32>, %[[ROWS:.*]]: tensor<?xi32>) -> tensor<?x32xf32>
// ONE-SAME: attributes {llm.draft = {description = "skip:1", name = "self", repeats = true}}
// ONE: %[[X:.*]] = llm.layer 0
// ONE: llm.kv @kv[0]
// ONE: llm.layer 2 "decoder" (%{{.*}} = %[[X]]
// ONE: llm.kv @kv[2]
// ONE: llm.layer 3
// ONE-NOT: llm.layer
// Without a text every second one, from the end of the second third backwards.
// TWO-SAME: description = "skip:1-2"
// TWO: llm.layer 0
// TWO: llm.layer 3
// TWO-NOT: llm.layer
// PASSES-SAME: description = "bits:3"
// PASSES-COUNT-4: llm.layer
// PASSES-NOT: module
// REMARK: guesses by skip:1+3
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x32xf32> {
  %table = llm.weight dense<1.0> : tensor<32x32xf32>
  %x = llm.embedding %ids, %table : tensor<32x32xf32> -> tensor<?x32xf32>
  %0 = llm.layer 0 "decoder" (%h = %x : tensor<?x32xf32>) {
    %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 64>
    %q = llm.linear %h, %table : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    llm.kv_append %kv, %q, %q at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 64>
    %z = llm.linear %y, %table residual(%h) : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  %1 = llm.layer 1 "decoder" (%h = %0 : tensor<?x32xf32>) {
    %kv = llm.kv @kv[1] : !llm.kv<1x32, f16, f16, 64>
    %q = llm.linear %h, %table : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    llm.kv_append %kv, %q, %q at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 64>
    %z = llm.linear %y, %table residual(%h) : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  %2 = llm.layer 2 "decoder" (%h = %1 : tensor<?x32xf32>) {
    %kv = llm.kv @kv[2] : !llm.kv<1x32, f16, f16, 64>
    %q = llm.linear %h, %table : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    llm.kv_append %kv, %q, %q at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 64>
    %z = llm.linear %y, %table residual(%h) : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  %3 = llm.layer 3 "decoder" (%h = %2 : tensor<?x32xf32>) {
    %kv = llm.kv @kv[3] : !llm.kv<1x32, f16, f16, 64>
    %q = llm.linear %h, %table : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x1x32xf32>
    llm.kv_append %kv, %q, %q at %positions : !llm.kv<1x32, f16, f16, 64>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x1x32xf32>, !llm.kv<1x32, f16, f16, 64>
    %z = llm.linear %y, %table residual(%h) : tensor<?x1x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    llm.yield %z : tensor<?x32xf32>
  }
  %s = llm.select_rows %3, %rows : tensor<?x32xf32>, tensor<?xi32>
  %logits = llm.linear %s, %table : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %logits : tensor<?x32xf32>
}
