// RUN: not llm-opt --llm-lower-to-plan="targets=rdna3 widths=1 context=16 largest-binding=524288" %s 2>&1 | FileCheck %s

// An expert has 600 KiB of codes, in bindings of 512; its rows are no multiple of those that a part may begin with.
module {
  llm.source @model {path = "large.gguf", format = "gguf"}
  llm.kv_cache @kv : 1 x !llm.kv<1x32, f16, f16, 16>
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x300xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<256x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %table : tensor<256x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x2048xf32>
    %router = llm.weight @model["router.weight"] : tensor<4x2048xf32>
    %scores = llm.linear %x, %router : tensor<?x2048xf32>, tensor<4x2048xf32> -> tensor<?x4xf32>
    %e, %p = llm.route %scores top 2 normalise : tensor<?x4xf32>
    %down = llm.weight @model["down.weight"] : tensor<4x300x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>>
    %d = llm.expert_linear %x, %e, %down combine(%p : tensor<?x2xf32>)
        : tensor<?x2048xf32>, tensor<?x2xi32>, tensor<4x300x2048x!llm.q<i8, 32:f16>, #llm.layout<gguf>> -> tensor<?x300xf32>
    %s = llm.select_rows %d, %rows : tensor<?x300xf32>, tensor<?xi32>
    return %s : tensor<?x300xf32>
  }
}

// CHECK: expects experts of which 64 fit a binding of target 'rdna3', but each is 300x2048; numbers of fewer bits (--quantize) may fit
