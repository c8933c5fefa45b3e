// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK: llm.source @model {bytes = 98000000 : i64, format = "gguf", path = "smollm2.gguf"}
llm.source @model {path = "smollm2.gguf", format = "gguf", bytes = 98000000 : i64}
// CHECK: llm.source @adapter{{$}}
llm.source @adapter
// CHECK: llm.source @hashed {format = "safetensors", hash = "0123", path = "dir/model.safetensors"}
llm.source @hashed {path = "dir/model.safetensors", format = "safetensors", hash = "0123"}

// CHECK: llm.tokenizer @tokenizer {source = @model}
llm.tokenizer @tokenizer {source = @model}
// CHECK: llm.tokenizer @small {keep = array<i32: 0, 5, 3>, source = @model}
llm.tokenizer @small {source = @model, keep = array<i32: 0, 5, 3>}

// CHECK-LABEL: func.func @layer(
func.func @layer(%x: tensor<?x576xf32>) -> tensor<?x576xf32> {
  // CHECK: %{{.*}} = llm.layer 3 "decoder" (%h = %{{.*}} : tensor<?x576xf32>) {
  // CHECK:   llm.yield %{{.*}} : tensor<?x576xf32>
  // CHECK: }
  %y = llm.layer 3 "decoder" (%h = %x : tensor<?x576xf32>) {
    %n = llm.rms_norm %h eps(1.0e-5) : tensor<?x576xf32>
    llm.yield %n : tensor<?x576xf32>
  }
  return %y : tensor<?x576xf32>
}

// CHECK-LABEL: func.func @yield(
func.func @yield(%x: tensor<?x576xf32>, %p: tensor<?xi32>) {
  // CHECK: llm.layer 0 "pair" (%{{.*}} = %{{.*}} : tensor<?x576xf32>, %{{.*}} = %{{.*}} : tensor<?xi32>) attributes {note = 1 : i64} {
  %a, %b = llm.layer 0 "pair" (%h = %x : tensor<?x576xf32>, %q = %p : tensor<?xi32>) attributes {note = 1} {
    %y = llm.scale %h by 2.0 : tensor<?x576xf32>
    // CHECK: llm.yield %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<?xi32>
    llm.yield %y, %q : tensor<?x576xf32>, tensor<?xi32>
  }
  // CHECK: llm.layer 1 "empty" () {
  // CHECK-NEXT: llm.yield{{$}}
  llm.layer 1 "empty" () {
    llm.yield
  }
  %c = llm.layer 2 "one" (%h = %x : tensor<?x576xf32>) {
    %y = llm.scale %h by 2.0 : tensor<?x576xf32>
    llm.yield %y : tensor<?x576xf32>
  }
  return
}
