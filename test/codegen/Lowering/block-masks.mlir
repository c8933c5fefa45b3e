// RUN: llm-opt --llm-lower-to-plan="targets=lavapipe widths=1 logits-widths=0" %s | FileCheck %s
// RUN: llm-opt --llm-tree-verify --llm-lower-to-plan="targets=lavapipe widths=1,4 tree-nodes=4 logits-widths=0" %s | FileCheck --check-prefix=TREE %s

// Hidden blocks of keys reach the kernel, which skips them; in a tree as well.
module attributes {llm.model = {architecture = "llama", context = 256, layers = 1}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 256>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<40x64xf32>
    %x = llm.embedding %ids, %table : tensor<40x64xf32> -> tensor<?x64xf32>
    %w = llm.weight @model["q.weight"] : tensor<64x64xf32>
    %wk = llm.weight @model["k.weight"] : tensor<32x64xf32>
    %q = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x2x32xf32>
    %k = llm.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x1x32xf32>
    %kv = llm.kv @kv[0] : !llm.kv<1x32, f16, f16, 256>
    llm.kv_append %kv, %k, %k at %positions : !llm.kv<1x32, f16, f16, 256>, tensor<?x1x32xf32>, tensor<?x1x32xf32>
    %y = llm.attention %q, %kv at %positions scale(0.125) blocks <size = 32, local = 2, first = 1, stride = 4> : tensor<?x2x32xf32>, !llm.kv<1x32, f16, f16, 256>
    %s = llm.select_rows %y, %rows : tensor<?x2x32xf32>, tensor<?xi32>
    %logits = llm.linear %s, %table : tensor<?x2x32xf32>, tensor<40x64xf32> -> tensor<?x40xf32>
    return %logits : tensor<?x40xf32>
  }
}

// CHECK: plan.kernel @attention_2x32_{{.*}} "attention" {block_first = 1 : i64, block_local = 2 : i64, block_size = 32 : i64, block_stride = 4 : i64, {{.*}}}
// TREE: plan.kernel @attention_2x32_{{.*}} "attention" {block_first = 1 : i64, block_local = 2 : i64, block_size = 32 : i64, block_stride = 4 : i64, {{.*}}tree = 64 : i64{{.*}}}
