// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects a format beside the path, but got only 'x.gguf'}}
llm.source @source_c1 {path = "x.gguf"}

// -----

// expected-error@+1 {{expects a size that is not negative, but got -1}}
llm.source @source_c2 {path = "x.gguf", format = "gguf", bytes = -1 : i64}

// -----

// expected-error@+1 {{expects an llm.source, but got @missing}}
llm.tokenizer @tokenizer_c1 {source = @missing}

// -----

llm.source @model {path = "x.gguf", format = "gguf"}
// expected-error@+1 {{expects ids that are not negative, but got -1}}
llm.tokenizer @tokenizer_c2_negative {source = @model, keep = array<i32: 0, -1>}

// -----

llm.source @model {path = "x.gguf", format = "gguf"}
// expected-error@+1 {{expects each id to be kept once, but got 3 twice}}
llm.tokenizer @tokenizer_c2_twice {source = @model, keep = array<i32: 3, 1, 3>}

// -----

func.func @layer_c1(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expects an index that is not negative, but got -1}}
  %y = llm.layer -1 "decoder" (%h = %x : tensor<?x4xf32>) {
    llm.yield %h : tensor<?x4xf32>
  }
  return
}

// -----

func.func @layer_c2(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expects block arguments of types ('tensor<?x4xf32>'), but got ('tensor<?x5xf32>')}}
  %y = "llm.layer"(%x) <{index = 0 : i64, kind = "decoder"}> ({
  ^bb0(%h: tensor<?x5xf32>):
    llm.yield %x : tensor<?x4xf32>
  }) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @layer_c3(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expects results of types ('tensor<?x4xf32>'), but got ('tensor<?x5xf32>')}}
  %y = "llm.layer"(%x) <{index = 0 : i64, kind = "decoder"}> ({
  ^bb0(%h: tensor<?x4xf32>):
    llm.yield %h : tensor<?x4xf32>
  }) : (tensor<?x4xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @layer_c4(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expects to yield ('tensor<?x4xf32>'), but got ()}}
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x4xf32>) {
    llm.yield
  }
  return
}

// -----

func.func @yield_parent(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{'llm.yield' op expects parent op 'llm.layer'}}
  llm.yield %x : tensor<?x4xf32>
}
