// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects a positive count, but got 0}}
llm.kv_cache @kv_cache_c1 : 0 x !llm.kv<3x64, f16, f16, 2048>

// -----

llm.source @source
func.func @kv_c1() {
  // expected-error@+1 {{expects an llm.kv_cache, but got @source}}
  %kv = llm.kv @source[0] : !llm.kv<3x64, f16, f16, 2048>
  return
}

// -----

llm.kv_cache @kv : 2 x !llm.kv<3x64, f16, f16, 2048>
func.func @kv_c2() {
  // expected-error@+1 {{expects an index from 0 to 1, but got 2}}
  %kv = llm.kv @kv[2] : !llm.kv<3x64, f16, f16, 2048>
  return
}

// -----

llm.kv_cache @kv : 2 x !llm.kv<3x64, f16, f16, 2048>
func.func @kv_c2_negative() {
  // expected-error@+1 {{expects an index from 0 to 1, but got -1}}
  %kv = llm.kv @kv[-1] : !llm.kv<3x64, f16, f16, 2048>
  return
}

// -----

llm.kv_cache @kv : 2 x !llm.kv<3x64, f16, f16, 2048>
func.func @kv_c3() {
  // expected-error@+1 {{expects a handle of type '!llm.kv<3x64, f16, f16, 2048>', but got '!llm.kv<3x64, f16, f16, 1024>'}}
  %kv = llm.kv @kv[1] : !llm.kv<3x64, f16, f16, 1024>
  return
}

// -----

func.func @kv_append_c1(%kv: !llm.kv<3x64, f16, f16, 64>, %k: tensor<?x2x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects keys Tx3x64, but got ?x2x64}}
  llm.kv_append %kv, %k, %k at %p : !llm.kv<3x64, f16, f16, 64>, tensor<?x2x64xf32>, tensor<?x2x64xf32>
  return
}

// -----

func.func @kv_append_c2_missing(%kv: !llm.kv<3x64, f16, f16, 64>, %k: tensor<?x3x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects values for '!llm.kv<3x64, f16, f16, 64>', but got none}}
  llm.kv_append %kv, %k at %p : !llm.kv<3x64, f16, f16, 64>, tensor<?x3x64xf32>
  return
}

// -----

func.func @kv_append_c2_prefix(%kv: !llm.kv<1x64, f16, prefix<32>, 64>, %k: tensor<?x1x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects no values for '!llm.kv<1x64, f16, prefix<32>, 64>', but got some}}
  llm.kv_append %kv, %k, %k at %p : !llm.kv<1x64, f16, prefix<32>, 64>, tensor<?x1x64xf32>, tensor<?x1x64xf32>
  return
}

// -----

func.func @kv_append_c2_shape(%kv: !llm.kv<3x64x32, f16, f16, 64>, %k: tensor<?x3x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects values ?x3x32, but got ?x3x64}}
  llm.kv_append %kv, %k, %k at %p : !llm.kv<3x64x32, f16, f16, 64>, tensor<?x3x64xf32>, tensor<?x3x64xf32>
  return
}

// -----

func.func @kv_append_c3(%kv: !llm.kv<3x64, f16, f16, 64>, %k: tensor<4x3x64xf32>, %p: tensor<4xi32>, %b: tensor<1xi32>) {
  // expected-error@+1 {{expects slots or a base, but got both}}
  llm.kv_append %kv, %k, %k at %p slots(%p) base(%b) : !llm.kv<3x64, f16, f16, 64>, tensor<4x3x64xf32>, tensor<4x3x64xf32>
  return
}

// -----

func.func @kv_append_rows(%kv: !llm.kv<3x64, f16, f16, 64>, %k: tensor<2x3x64xf32>, %p: tensor<3xi32>) {
  // expected-error@+1 {{failed to verify that 'positions' has one i32 a row of 'key'}}
  "llm.kv_append"(%kv, %k, %k, %p) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}>
      : (!llm.kv<3x64, f16, f16, 64>, tensor<2x3x64xf32>, tensor<2x3x64xf32>, tensor<3xi32>) -> ()
  return
}

// -----

func.func @attention_c1(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x8x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects queries TxHx64 with H a multiple of 3, but got ?x8x64}}
  %y = llm.attention %q, %kv at %p scale(1.0) : tensor<?x8x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c2(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a positive softcap, but got -1}}
  %y = llm.attention %q, %kv at %p scale(1.0) softcap(-1.0) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c3_window(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a positive window, but got 0}}
  %y = llm.attention %q, %kv at %p scale(1.0) window(0) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c3_sinks(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects sinks that are not negative, beside a window, but got 4 sinks and no window}}
  %y = llm.attention %q, %kv at %p scale(1.0) sinks(4) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c3_chunked(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a window and no sinks for a chunked mask, but got no window}}
  %y = llm.attention %q, %kv at %p scale(1.0) mask chunked : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c4(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{expects a bias of 9 elements, but got 3}}
  %y = llm.attention %q, %kv at %p bias(%b : tensor<3xf32>) scale(1.0) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @attention_c5(%kv: !llm.kv<3x64, f16, f16, 64, window = 32>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a window of at most the cache's 32, but got 33}}
  %y = llm.attention %q, %kv at %p scale(1.0) window(33) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64, window = 32>
  return
}

// -----

func.func @attention_c5_none(%kv: !llm.kv<3x64, f16, f16, 64, window = 32>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a window of at most the cache's 32, but got none}}
  %y = llm.attention %q, %kv at %p scale(1.0) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 64, window = 32>
  return
}

// -----

func.func @attention_c7(%kv: !llm.kv<3x64, !llm.q<i8, *:f32>, f16, 64>, %q: tensor<?x9x64xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects keys and values of '!llm.q<i8, *:f32>' for products of integers, but got '!llm.kv<3x64, !llm.q<i8, *:f32>, f16, 64>'}}
  %y = llm.attention %q, %kv at %p scale(1.0) integers : tensor<?x9x64xf32>, !llm.kv<3x64, !llm.q<i8, *:f32>, f16, 64>
  return
}

// -----

func.func @tree_attention_c8(%kv: !llm.kv<1x64, !llm.q<i8, *:f32>, prefix<32>, 64>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects keys and values of '!llm.q<i8, *:f32>' for products of integers, but got}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0) integers
      : tensor<4x9x64xf32>, !llm.kv<1x64, !llm.q<i8, *:f32>, prefix<32>, 64>
  return
}

// -----

func.func @tree_attention_c1(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<4x9x32xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects queries TxHx64 with H a multiple of 3, but got 4x9x32}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0) : tensor<4x9x32xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @tree_attention_c2(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects a positive softcap, but got 0}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0) softcap(0.0) : tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @tree_attention_c3(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects sinks that are not negative, beside a window, but got -1 sinks and a window}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0) window(8) sinks(-1)
      : tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @tree_attention_c4(%kv: !llm.kv<3x64, f16, f16, 64>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{expects a bias of 9 elements, but got 3}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p bias(%s : tensor<3xf32>) scale(1.0)
      : tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 64>
  return
}

// -----

func.func @tree_attention_c5(%kv: !llm.kv<3x64, f16, f16, 64, window = 32>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects a window of at most the cache's 32, but got none}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0)
      : tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 64, window = 32>
  return
}

// -----

func.func @tree_attention_c6(%kv: !llm.kv<3x64, f16, f16, 128>, %q: tensor<65x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<65x2xi32>, %p: tensor<65xi32>) {
  // expected-error@+1 {{expects at most 64 tokens, but got 65}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(1.0) : tensor<65x9x64xf32>, !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @tree_attention_mask(%kv: !llm.kv<3x64, f16, f16, 128>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                               %m: tensor<4x1xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{failed to verify that 'mask' is two words a row}}
  %y = "llm.tree_attention"(%q, %kv, %b, %m, %p) <{scale = 1.0 : f32}>
      : (tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 128>, tensor<1xi32>, tensor<4x1xi32>, tensor<4xi32>) -> tensor<4x9x64xf32>
  return
}

// -----

func.func @kv_compact_c1(%kv: !llm.kv<3x64, f16, f16, 128>, %a: tensor<65xi32>, %n: tensor<1xi32>) {
  // expected-error@+1 {{expects at most 64 accepted tokens, but got 65}}
  llm.kv_compact %kv base %n accepted %a count %n : !llm.kv<3x64, f16, f16, 128>, tensor<65xi32>
  return
}

// -----

func.func @kv_evict_c1(%kv: !llm.kv<3x64, f16, f16, 128>, %a: tensor<129xi32>) {
  // expected-error@+1 {{expects to keep at most 128 slots, but got 129}}
  llm.kv_evict %kv keep %a : !llm.kv<3x64, f16, f16, 128>, tensor<129xi32>
  return
}

// -----

func.func @previous_rows_c1(%x: tensor<?x9x64xf32>, %kv: !llm.kv<3x64, f16, f16, 128>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects rows TxD, but got ?x9x64}}
  %y = llm.previous_rows %x, %kv at %p : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c2_both(%kv: !llm.kv<3x64, f16, f16, 128>, %a: tensor<?xi32>, %n: tensor<1xi32>) {
  // expected-error@+1 {{expects slots to keep, or sinks and how many slots behind them to drop, but got both}}
  llm.kv_evict %kv keep %a sinks(%n) drop(%n) : !llm.kv<3x64, f16, f16, 128>, tensor<?xi32>
  return
}

// -----

func.func @previous_rows_c2(%x: tensor<?x64xf32>, %kv: !llm.kv<3x64, f16, f16, 128>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects parents and a base together, but got parents alone}}
  %y = llm.previous_rows %x, %kv at %p parents(%p) : tensor<?x64xf32>, !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c2_neither(%kv: !llm.kv<3x64, f16, f16, 128>, %n: tensor<1xi32>) {
  // expected-error@+1 {{but got neither}}
  llm.kv_evict %kv sinks(%n) : !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @attention_c6(%q: tensor<?x9x64xf32>, %kv: !llm.kv<3x64, f16, f16, 128>, %p: tensor<?xi32>) {
  // expected-error@+1 {{expects a positive first position, but got 0}}
  %y = llm.attention %q, %kv at %p scale(0.125) first(0) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c2_turned(%kv: !llm.kv<3x64, f16, f16, 128>, %a: tensor<?xi32>) {
  // expected-error@+1 {{expects sinks and drop beside a rotation, but got slots to keep}}
  llm.kv_evict %kv keep %a base(10000.0) : !llm.kv<3x64, f16, f16, 128>, tensor<?xi32>
  return
}

// -----

func.func @tree_attention_c7(%kv: !llm.kv<3x64, f16, f16, 128>, %q: tensor<4x9x64xf32>, %b: tensor<1xi32>,
                             %m: tensor<4x2xi32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects a positive first position, but got -1}}
  %y = llm.tree_attention %q, %kv base %b mask %m at %p scale(0.125) first(-1) : tensor<4x9x64xf32>, !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c3(%kv: !llm.kv<3x64, f16, f16, 128>, %n: tensor<1xi32>) {
  // expected-error@+1 {{expects a positive base, but got 0}}
  llm.kv_evict %kv sinks(%n) drop(%n) base(0.0) : !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c3_dims(%kv: !llm.kv<3x64, f16, f16, 128>, %n: tensor<1xi32>) {
  // expected-error@+1 {{expects an even number of dims from 2 to 64, but got 65}}
  llm.kv_evict %kv sinks(%n) drop(%n) base(10000.0) dims(65) : !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c4(%kv: !llm.kv<3x64, f16, f16, 128>, %n: tensor<1xi32>, %f: tensor<16xf32>) {
  // expected-error@+1 {{expects 32 frequencies in a row, but got 16}}
  llm.kv_evict %kv sinks(%n) drop(%n) frequencies(%f : tensor<16xf32>) : !llm.kv<3x64, f16, f16, 128>
  return
}

// -----

func.func @kv_evict_c5(%kv: !llm.kv<3x64, f16, f16, 128>, %n: tensor<1xi32>) {
  // expected-error@+1 {{expects a Hadamard block that is a power of two and divides 64, behind a rotation, but got 24}}
  llm.kv_evict %kv sinks(%n) drop(%n) base(10000.0) hadamard(24) : !llm.kv<3x64, f16, f16, 128>
  return
}
