// RUN: llm-opt %s | FileCheck %s
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK-LABEL: func.func @activation(
func.func @activation(%x: tensor<?x256xf32>) {
  // CHECK: llm.activation gelu_tanh %{{.*}} : tensor<?x256xf32>{{$}}
  %y = llm.activation gelu_tanh %x : tensor<?x256xf32>
  // CHECK: llm.activation relu2 %{{.*}} : tensor<?x256xf32> -> tensor<?x256x!llm.q<i8, *:f32>>
  %z = llm.activation relu2 %x : tensor<?x256xf32> -> tensor<?x256x!llm.q<i8, *:f32>>
  return
}

// CHECK-LABEL: func.func @kinds(
func.func @kinds(%x: tensor<?x256xf32>) {
  // CHECK-COUNT-1: llm.activation relu %
  %0 = llm.activation relu %x : tensor<?x256xf32>
  // CHECK-NEXT: llm.activation silu %
  %1 = llm.activation silu %x : tensor<?x256xf32>
  // CHECK-NEXT: llm.activation gelu %
  %2 = llm.activation gelu %x : tensor<?x256xf32>
  // CHECK-NEXT: llm.activation gelu_quick %
  %3 = llm.activation gelu_quick %x : tensor<?x256xf32>
  // CHECK-NEXT: llm.activation sigmoid %
  %4 = llm.activation sigmoid %x : tensor<?x256xf32>
  // CHECK-NEXT: llm.activation tanh %
  %5 = llm.activation tanh %x : tensor<?x256xf32>
  return
}

// CHECK-LABEL: func.func @gated_activation(
func.func @gated_activation(%gate: tensor<?x1536xf32>, %up: tensor<?x1536xf32>) {
  // CHECK: llm.gated_activation silu %{{.*}}, %{{.*}} : tensor<?x1536xf32>{{$}}
  %y = llm.gated_activation silu %gate, %up : tensor<?x1536xf32>
  // CHECK: llm.gated_activation silu %{{.*}}, %{{.*}} : tensor<?x1536xf32> -> tensor<?x1536x!llm.q<i8, *:f32>>
  %z = llm.gated_activation silu %gate, %up : tensor<?x1536xf32> -> tensor<?x1536x!llm.q<i8, *:f32>>
  return
}

// CHECK-LABEL: func.func @add(
func.func @add(%a: tensor<?x576xf32>, %b: tensor<?x576xf32>) {
  // CHECK: llm.add %{{.*}}, %{{.*}} : tensor<?x576xf32>
  %y = llm.add %a, %b : tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @multiply(
func.func @multiply(%x: tensor<?x64xf32>, %gate: tensor<?x1xf32>) {
  // CHECK: llm.multiply %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x1xf32>
  %y = llm.multiply %x, %gate : tensor<?x64xf32>, tensor<?x1xf32>
  // CHECK: llm.multiply %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x64xf32>
  %z = llm.multiply %x, %x : tensor<?x64xf32>, tensor<?x64xf32>
  return
}

// CHECK-LABEL: func.func @scale(
func.func @scale(%x: tensor<?x576xf32>) {
  // CHECK: llm.scale %{{.*}} by 0.5 : tensor<?x576xf32>
  %y = llm.scale %x by 0.5 : tensor<?x576xf32>
  // CHECK: llm.scale %{{.*}} by -1.5e-20 : tensor<?x576xf32>
  %z = llm.scale %x by -1.5e-20 : tensor<?x576xf32>
  // CHECK: llm.scale %{{.*}} by 0xFF800000 : tensor<?x576xf32>
  %i = llm.scale %x by 0xFF800000 : tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @softcap(
func.func @softcap(%logits: tensor<?x49152xf32>) {
  // CHECK: llm.softcap %{{.*}} at 30.0 : tensor<?x49152xf32>
  %y = llm.softcap %logits at 30.0 : tensor<?x49152xf32>
  return
}

// CHECK-LABEL: func.func @select_rows(
func.func @select_rows(%x: tensor<?x576xf32>, %rows: tensor<?xi32>, %one: tensor<1xi32>) -> tensor<1x576xf32> {
  // CHECK: llm.select_rows %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<?xi32>
  %y = llm.select_rows %x, %rows : tensor<?x576xf32>, tensor<?xi32>
  // CHECK: llm.select_rows %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<1xi32>
  %z = llm.select_rows %x, %one : tensor<?x576xf32>, tensor<1xi32>
  return %z : tensor<1x576xf32>
}

// CHECK-LABEL: func.func @route(
func.func @route(%logits: tensor<?x8xf32>, %b: tensor<8xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  // CHECK: llm.route %{{.*}} top 2 score sigmoid normalise : tensor<?x8xf32>
  %ids, %weights = llm.route %logits top 2 score sigmoid normalise : tensor<?x8xf32>
  // CHECK: llm.route %{{.*}} top 1 : tensor<?x8xf32>
  %i, %w = llm.route %logits top 1 : tensor<?x8xf32>
  // CHECK: llm.route %{{.*}} top 2 score sigmoid normalise scale(2.5) bias(%{{.*}} : tensor<8xf32>) groups(4) top_groups(2) : tensor<?x8xf32>
  %j, %v = llm.route %logits top 2 score sigmoid normalise scale(2.5) bias(%b : tensor<8xf32>) groups(4) top_groups(2)
      : tensor<?x8xf32>
  // CHECK: llm.route %{{.*}} top 2 groups(4) top_groups(2) by_best : tensor<?x8xf32>
  %k, %u = llm.route %logits top 2 groups(4) top_groups(2) by_best : tensor<?x8xf32>
  return %ids, %weights : tensor<?x2xi32>, tensor<?x2xf32>
}

// CHECK-LABEL: func.func @expert_linear(
func.func @expert_linear(%x: tensor<?x64xf32>, %ids: tensor<?x2xi32>, %w: tensor<8x128x64xf16>,
                         %a: tensor<?x2x128xf32>, %v: tensor<8x64x128xf16>, %p: tensor<?x2xf32>,
                         %b: tensor<8x64xf32>, %r: tensor<?x64xf32>) {
  // CHECK: llm.expert_linear %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x2xi32>, tensor<8x128x64xf16> -> tensor<?x2x128xf32>
  %u = llm.expert_linear %x, %ids, %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<8x128x64xf16> -> tensor<?x2x128xf32>
  // CHECK: llm.expert_linear %{{.*}}, %{{.*}}, %{{.*}} combine(%{{.*}} : tensor<?x2xf32>) : tensor<?x2x128xf32>, tensor<?x2xi32>, tensor<8x64x128xf16> -> tensor<?x64xf32>
  %y = llm.expert_linear %a, %ids, %v combine(%p : tensor<?x2xf32>)
      : tensor<?x2x128xf32>, tensor<?x2xi32>, tensor<8x64x128xf16> -> tensor<?x64xf32>
  // CHECK: llm.expert_linear %{{.*}}, %{{.*}}, %{{.*}} combine(%{{.*}} : tensor<?x2xf32>) bias(%{{.*}} : tensor<8x64xf32>) residual(%{{.*}} : tensor<?x64xf32>) : tensor<?x2x128xf32>
  %z = llm.expert_linear %a, %ids, %v combine(%p : tensor<?x2xf32>) bias(%b : tensor<8x64xf32>) residual(%r : tensor<?x64xf32>)
      : tensor<?x2x128xf32>, tensor<?x2xi32>, tensor<8x64x128xf16> -> tensor<?x64xf32>
  return
}

// CHECK-LABEL: func.func @adapter_choice(
func.func @adapter_choice(%x: tensor<?x64xf32>, %positions: tensor<?xi32>, %gains: tensor<2xf32>,
                          %A: tensor<2x8x64xf16>, %B: tensor<2x64x8xf16>, %w: tensor<?x64xf32>,
                          %q: tensor<?x4x16xf32>) -> (tensor<?x64xf32>, tensor<?x4x16xf32>) {
  // CHECK: %[[IDS:.*]], %[[GAIN:.*]] = llm.adapter_choice %{{.*}} of %{{.*}} : tensor<?xi32>, tensor<2xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  %ids, %gain = llm.adapter_choice %positions of %gains : tensor<?xi32>, tensor<2xf32> -> tensor<?x1xi32>, tensor<?x1xf32>
  %a = llm.expert_linear %x, %ids, %A : tensor<?x64xf32>, tensor<?x1xi32>, tensor<2x8x64xf16> -> tensor<?x1x8xf32>
  %y = llm.expert_linear %a, %ids, %B combine(%gain : tensor<?x1xf32>) residual(%w : tensor<?x64xf32>)
      : tensor<?x1x8xf32>, tensor<?x1xi32>, tensor<2x64x8xf16> -> tensor<?x64xf32>
  // Rows of heads, as those of a linear.
  // CHECK: llm.expert_linear {{.*}} : tensor<?x4x16xf32>, tensor<?x1xi32>, tensor<2x8x64xf16> -> tensor<?x1x8xf32>
  %b = llm.expert_linear %q, %ids, %A : tensor<?x4x16xf32>, tensor<?x1xi32>, tensor<2x8x64xf16> -> tensor<?x1x8xf32>
  // CHECK: llm.expert_linear {{.*}} -> tensor<?x4x16xf32>
  %z = llm.expert_linear %b, %ids, %B combine(%gain : tensor<?x1xf32>) residual(%q : tensor<?x4x16xf32>)
      : tensor<?x1x8xf32>, tensor<?x1xi32>, tensor<2x64x8xf16> -> tensor<?x4x16xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x4x16xf32>
}

// CHECK-LABEL: func.func @cosine_gate(
func.func @cosine_gate(%q: tensor<?x9x64xf32>, %k: tensor<?x9x64xf32>, %v: tensor<?x576xf32>) -> tensor<?x576xf32> {
  // CHECK: llm.cosine_gate %{{.*}}, %{{.*}}, %{{.*}} eps(1.0e-05) : tensor<?x9x64xf32>, tensor<?x576xf32>
  %y = llm.cosine_gate %q, %k, %v eps(1.0e-5) : tensor<?x9x64xf32>, tensor<?x576xf32>
  return %y : tensor<?x576xf32>
}
