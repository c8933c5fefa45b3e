// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 context=16 logits-widths=0" %s | FileCheck %s
// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 context=16 logits-widths=0 largest-binding=1073741824" %s | FileCheck %s
// RUN: llm-opt --llm-lower-to-plan="targets=rdna3 widths=1 context=16 logits-widths=0" %s | FileCheck %s --check-prefix=WHOLE
// RUN: llm-opt --llm-lower-to-plan="targets=rdna3 widths=1 context=16 logits-widths=0 largest-binding=2097152" %s | FileCheck %s --check-prefix=HALVES

// The generic target promises bindings of 128 MiB. Codes of 64 experts of 2048x2048 in 8 bits take 256 MiB: a part has 32.
// Sums go from part to part; rows of a token's experts are written by the part that has the expert.
module attributes {llm.model = {architecture = "qwen3moe", context = 16, layers = 1}} {
  llm.source @model {path = "large.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 16>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x2048xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<1024x2048xf16>
    %x = llm.embedding %ids, %table : tensor<1024x2048xf16> -> tensor<?x2048xf32>
    %router = llm.weight @model["router.weight"] : tensor<64x2048xf32>
    %scores = llm.linear %x, %router : tensor<?x2048xf32>, tensor<64x2048xf32> -> tensor<?x64xf32>
    %e, %p = llm.route %scores top 4 normalise : tensor<?x64xf32>
    %up = llm.weight @model["up.weight"] : tensor<64x2048x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %u = llm.expert_linear %x, %e, %up : tensor<?x2048xf32>, tensor<?x4xi32>, tensor<64x2048x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x4x2048xf32>
    %down = llm.weight @model["down.weight"] : tensor<64x2048x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %d = llm.expert_linear %u, %e, %down combine(%p : tensor<?x4xf32>)
        : tensor<?x4x2048xf32>, tensor<?x4xi32>, tensor<64x2048x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x2048xf32>
    %s = llm.select_rows %d, %rows : tensor<?x2048xf32>, tensor<?xi32>
    return %s : tensor<?x2048xf32>
  }
}

// CHECK: plan.program @sample_1
// CHECK: plan.weight @up.weight at 16777216 bytes 134217728
// CHECK: plan.dispatch @experts_q8_0_2048x2048_{{.*}}out %[[ROWS:[0-9]+]]) {{.*}} "experts"
// CHECK: plan.weight @up.weight at 150994944 bytes 134217728
// CHECK: plan.dispatch @experts_q8_0_2048x2048_{{.*}}out %[[ROWS]]) {{.*}} "experts"
// CHECK: plan.dispatch @experts_q8_0_2048x2048_{{.*}}out %[[SUM:[0-9]+]]) {{.*}} "experts, sum"
// CHECK: plan.dispatch @experts_q8_0_2048x2048_{{.*}}in %[[SUM]], out %{{[0-9]+}}) {{.*}} "experts, sum"

// WHOLE: plan.program @sample_1
// WHOLE-COUNT-2: plan.dispatch @experts_
// WHOLE-NOT: plan.dispatch @experts_

// Codes of one expert take 4 MiB, in bindings of 2: half of its rows at a time.
// HALVES: plan.program @sample_1
// HALVES: plan.weight @up.weight at 16777216 bytes 2097152
// HALVES: plan.dispatch @experts_q8_0_1024x2048_{{.*}} "experts"
// HALVES: plan.weight @up.weight at 18874368 bytes 2097152
// HALVES: plan.dispatch @experts_q8_0_1024x2048_{{.*}} "experts"
// HALVES: plan.weight @up.weight at 20971520 bytes 2097152
// HALVES-COUNT-126: "experts" {
// HALVES-COUNT-128: "experts, sum" {
// HALVES-NOT: plan.dispatch @experts_
