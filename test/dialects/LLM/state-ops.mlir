// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK: llm.kv_cache @kv : 30 x !kv{{$}}
llm.kv_cache @kv : 30 x !llm.kv<3x64, f16, f16, 2048>
// CHECK: llm.kv_cache @one : !kv1
llm.kv_cache @one : !llm.kv<1x256, f16, f16, 2048>
// CHECK: llm.kv_cache @latent {note} : 2 x !kv2
llm.kv_cache @latent {note} : 2 x !llm.kv<1x576, f16, prefix<512>, 4096>

// CHECK-LABEL: func.func @handles(
func.func @handles() {
  // CHECK: llm.kv @kv[7] : !kv{{$}}
  %kv = llm.kv @kv[7] : !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.kv @one[0] : !kv1
  %one = llm.kv @one[0] : !llm.kv<1x256, f16, f16, 2048>
  return
}

// CHECK-LABEL: func.func @kv_append(
func.func @kv_append(%k: tensor<?x3x64xf32>, %v: tensor<?x3x64xf32>, %positions: tensor<?xi32>, %c: tensor<?x1x576xf32>) {
  %kv = llm.kv @kv[7] : !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} : !kv, tensor<?x3x64xf32>, tensor<?x3x64xf32>
  llm.kv_append %kv, %k, %v at %positions : !llm.kv<3x64, f16, f16, 2048>, tensor<?x3x64xf32>, tensor<?x3x64xf32>
  %latent = llm.kv @latent[1] : !llm.kv<1x576, f16, prefix<512>, 4096>
  // CHECK: llm.kv_append %{{.*}}, %{{.*}} at %{{.*}} : !kv2, tensor<?x1x576xf32>
  llm.kv_append %latent, %c at %positions : !llm.kv<1x576, f16, prefix<512>, 4096>, tensor<?x1x576xf32>
  return
}

// CHECK-LABEL: func.func @kv_append_slots(
func.func @kv_append_slots(%kv: !llm.kv<3x64, f16, f16, 2048>, %k: tensor<8x3x64xf32>, %v: tensor<8x3x64xf32>,
                           %positions: tensor<8xi32>, %s: tensor<8xi32>, %b: tensor<1xi32>) {
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} slots(%{{.*}}) : !kv, tensor<8x3x64xf32>, tensor<8x3x64xf32>
  llm.kv_append %kv, %k, %v at %positions slots(%s) : !llm.kv<3x64, f16, f16, 2048>, tensor<8x3x64xf32>, tensor<8x3x64xf32>
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} base(%{{.*}}) : !kv, tensor<8x3x64xf32>, tensor<8x3x64xf32>
  llm.kv_append %kv, %k, %v at %positions base(%b) : !llm.kv<3x64, f16, f16, 2048>, tensor<8x3x64xf32>, tensor<8x3x64xf32>
  return
}

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: tensor<?x9x64xf32>, %kv: !llm.kv<3x64, f16, f16, 2048>, %positions: tensor<?xi32>) -> tensor<?x9x64xf32> {
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.125) : tensor<?x9x64xf32>, !kv{{$}}
  %y = llm.attention %q, %kv at %positions scale(0.125) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
  return %y : tensor<?x9x64xf32>
}

// CHECK-LABEL: func.func @attention_more(
func.func @attention_more(%q: tensor<?x4x256xf32>, %kv: !llm.kv<1x256, f16, f16, 2048>, %positions: tensor<?xi32>,
                          %s: tensor<4xf32>, %ql: tensor<?x16x576xf32>, %latent: !llm.kv<1x576, f16, prefix<512>, 4096>)
    -> tensor<?x16x512xf32> {
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.0625) softcap(50.0) window(512) : tensor<?x4x256xf32>, !kv
  %z = llm.attention %q, %kv at %positions scale(0.0625) softcap(50.0) window(512)
      : tensor<?x4x256xf32>, !llm.kv<1x256, f16, f16, 2048>
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} bias(%{{.*}} : tensor<4xf32>) scale(0.0625) window(512) sinks(4) : tensor<?x4x256xf32>, !kv
  %a = llm.attention %q, %kv at %positions bias(%s : tensor<4xf32>) scale(0.0625) window(512) sinks(4)
      : tensor<?x4x256xf32>, !llm.kv<1x256, f16, f16, 2048>
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.0625) window(64) mask chunked : tensor<?x4x256xf32>, !kv
  %c = llm.attention %q, %kv at %positions scale(0.0625) window(64) mask chunked
      : tensor<?x4x256xf32>, !llm.kv<1x256, f16, f16, 2048>
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.0625) mask full blocks <size = 64, local = 4, first = 1> : tensor<?x4x256xf32>, !kv
  %b = llm.attention %q, %kv at %positions scale(0.0625) mask full blocks <size = 64, local = 4, first = 1>
      : tensor<?x4x256xf32>, !llm.kv<1x256, f16, f16, 2048>
  // The result is as wide as the values.
  // CHECK: llm.attention %{{.*}}, %{{.*}} at %{{.*}} scale(0.07216878) : tensor<?x16x576xf32>, !kv
  %l = llm.attention %ql, %latent at %positions scale(0.07216878)
      : tensor<?x16x576xf32>, !llm.kv<1x576, f16, prefix<512>, 4096>
  return %l : tensor<?x16x512xf32>
}

// CHECK-LABEL: func.func @tree_attention(
func.func @tree_attention(%q: tensor<8x9x64xf32>, %kv: !llm.kv<3x64, f16, f16, 2048>, %base: tensor<1xi32>,
                          %mask: tensor<8x2xi32>, %positions: tensor<8xi32>, %b: tensor<9xf32>) -> tensor<8x9x64xf32> {
  // CHECK: llm.tree_attention %{{.*}}, %{{.*}} base %{{.*}} mask %{{.*}} at %{{.*}} scale(0.125) : tensor<8x9x64xf32>, !kv
  %y = llm.tree_attention %q, %kv base %base mask %mask at %positions scale(0.125)
      : tensor<8x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.tree_attention %{{.*}}, %{{.*}} base %{{.*}} mask %{{.*}} at %{{.*}} bias(%{{.*}} : tensor<9xf32>) scale(0.125) softcap(50.0) window(64) sinks(2) : tensor<8x9x64xf32>, !kv
  %z = llm.tree_attention %q, %kv base %base mask %mask at %positions bias(%b : tensor<9xf32>) scale(0.125) softcap(50.0)
      window(64) sinks(2) : tensor<8x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
  return %y : tensor<8x9x64xf32>
}

// CHECK-LABEL: func.func @kv_compact(
func.func @kv_compact(%kv: !llm.kv<3x64, f16, f16, 2048>, %base: tensor<1xi32>, %accepted: tensor<8xi32>, %count: tensor<1xi32>) {
  // CHECK: llm.kv_compact %{{.*}} base %{{.*}} accepted %{{.*}} count %{{.*}} : !kv, tensor<8xi32>
  llm.kv_compact %kv base %base accepted %accepted count %count : !llm.kv<3x64, f16, f16, 2048>, tensor<8xi32>
  return
}

// CHECK-LABEL: func.func @kv_evict(
func.func @kv_evict(%kv: !llm.kv<3x64, f16, f16, 2048>, %keep: tensor<?xi32>) {
  // CHECK: llm.kv_evict %{{.*}} keep %{{.*}} : !kv, tensor<?xi32>
  llm.kv_evict %kv keep %keep : !llm.kv<3x64, f16, f16, 2048>, tensor<?xi32>
  return
}

// CHECK-LABEL: func.func @previous_rows(
func.func @previous_rows(%h: tensor<?x576xf32>, %kv: !llm.kv<3x64, f16, f16, 2048>, %positions: tensor<?xi32>,
                         %parents: tensor<?xi32>, %b: tensor<1xi32>) -> (tensor<?x576xf32>, tensor<?x576xf32>) {
  // CHECK: llm.previous_rows %{{.*}}, %{{.*}} at %{{.*}} : tensor<?x576xf32>, !kv
  %p = llm.previous_rows %h, %kv at %positions : tensor<?x576xf32>, !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.previous_rows %{{.*}}, %{{.*}} at %{{.*}} parents(%{{.*}}) base(%{{.*}}) : tensor<?x576xf32>, !kv
  %q = llm.previous_rows %h, %kv at %positions parents(%parents) base(%b)
      : tensor<?x576xf32>, !llm.kv<3x64, f16, f16, 2048>
  return %p, %q : tensor<?x576xf32>, tensor<?x576xf32>
}

// CHECK-LABEL: func.func @attention_first(
func.func @attention_first(%q: tensor<?x9x64xf32>, %kv: !llm.kv<3x64, f16, f16, 2048>, %p: tensor<?xi32>) -> tensor<?x9x64xf32> {
  // CHECK: llm.attention %{{.*}} scale(0.125) first(1) :
  %y = llm.attention %q, %kv at %p scale(0.125) first(1) : tensor<?x9x64xf32>, !llm.kv<3x64, f16, f16, 2048>
  return %y : tensor<?x9x64xf32>
}

// CHECK-LABEL: func.func @kv_evict_behind_sinks(
func.func @kv_evict_behind_sinks(%kv: !llm.kv<3x64, f16, f16, 2048>, %s: tensor<1xi32>, %d: tensor<1xi32>, %f: tensor<2x24xf32>) {
  // CHECK: llm.kv_evict %{{.*}} sinks(%{{.*}}) drop(%{{.*}}) : !kv
  llm.kv_evict %kv sinks(%s) drop(%d) : !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.kv_evict %{{.*}} sinks(%{{.*}}) drop(%{{.*}}) base(10000.0) : !kv
  llm.kv_evict %kv sinks(%s) drop(%d) base(10000.0) : !llm.kv<3x64, f16, f16, 2048>
  // CHECK: llm.kv_evict %{{.*}} sinks(%{{.*}}) drop(%{{.*}}) frequencies(%{{.*}} : tensor<2x24xf32>) dims(48) scale(0.5) interleaved hadamard(64) : !kv
  llm.kv_evict %kv sinks(%s) drop(%d) frequencies(%f : tensor<2x24xf32>) dims(48) scale(0.5) interleaved hadamard(64) : !llm.kv<3x64, f16, f16, 2048>
  return
}

// CHECK-LABEL: func.func @attention_of_integers(
func.func @attention_of_integers(%q: tensor<?x9x64xf32>, %kv: !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>, %positions: tensor<?xi32>,
                                 %r: tensor<8x9x64xf32>, %base: tensor<1xi32>, %mask: tensor<8x2xi32>, %p: tensor<8xi32>) {
  // CHECK: llm.attention %{{.*}} scale(0.125) integers :
  %w = llm.attention %q, %kv at %positions scale(0.125) integers
      : tensor<?x9x64xf32>, !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>
  // CHECK: llm.attention %{{.*}} scale(0.125) first(1) integers :
  %y = llm.attention %r, %kv at %p scale(0.125) first(1) integers
      : tensor<8x9x64xf32>, !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>
  // CHECK: llm.tree_attention %{{.*}} scale(0.125) window(64) integers :
  %z = llm.tree_attention %r, %kv base %base mask %mask at %p scale(0.125) window(64) integers
      : tensor<8x9x64xf32>, !llm.kv<3x64, !llm.q<i8, *:f32>, !llm.q<i8, *:f32>, 2048>
  return
}
