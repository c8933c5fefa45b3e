// RUN: llm-opt --llm-lower-to-plan="targets=generic widths=1 context=16 logits-widths=0 largest-binding=65536" %s | FileCheck %s

// A weight in a grid format is one binding (grid-formats.mlir). Where that is too large its rows are tensors of their own,
// and the whole of it is none.
module attributes {llm.model = {architecture = "qwen3moe", context = 16, layers = 1}} {
  llm.source @model {path = "tiny.gguf", format = "gguf"}
  func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x600xf32> {
    %table = llm.weight @model["token_embd.weight"] : tensor<600x512x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %table : tensor<600x512x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x512xf32>
    %router = llm.weight @model["router.weight"] : tensor<5x512xf32>
    %scores = llm.linear %x, %router : tensor<?x512xf32>, tensor<5x512xf32> -> tensor<?x5xf32>
    %e, %p = llm.route %scores top 2 : tensor<?x5xf32>
    %down = llm.weight @model["down.weight"] : tensor<5x128x512x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>>
    %d = llm.expert_linear %x, %e, %down combine(%p : tensor<?x2xf32>)
        : tensor<?x512xf32>, tensor<?x2xi32>, tensor<5x128x512x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x128xf32>
    %y = llm.linear %x, %table : tensor<?x512xf32>, tensor<600x512x!llm.q<grid<iq2_s, 8>, 16:u4, 256:f16>, #llm.layout<gguf>> -> tensor<?x600xf32>
    %ds = llm.select_rows %d, %rows : tensor<?x128xf32>, tensor<?xi32>
    %ys = llm.select_rows %y, %rows : tensor<?x600xf32>, tensor<?xi32>
    %out = llm.weight @model["output.weight"] : tensor<600x128xbf16>
    %logits = llm.linear %ds, %out residual(%ys) : tensor<?x128xf32>, tensor<600x128xbf16> -> tensor<?x600xf32>
    return %logits : tensor<?x600xf32>
  }
}

// CHECK-NOT: plan.tensor @token_embd.weight layout
// CHECK-DAG: plan.tensor @token_embd.weight.slice layout "tiled<rows=8>" bytes 41984 {
// CHECK-DAG: plan.tensor @down.weight.slice layout "tiled<rows=8>" bytes 41984 {
// CHECK: plan.target @generic
// CHECK-COUNT-3: "embedding"
// CHECK: "route"
// CHECK-COUNT-3: "experts, sum"
// CHECK-COUNT-3: "linear"
