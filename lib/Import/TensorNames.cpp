#include "lib/Import/TensorNames.h"

namespace mlir::llm {

const TensorNames kGGUFNames = {
    .embedding = "token_embd",
    .positions = "position_embd",
    .outputNorm = "output_norm",
    .head = "output",
    .layer = "blk.",
    .beforeAttention = "attn_norm",
    .afterAttention = "post_attention_norm",
    .beforeFeedForward = "ffn_norm",
    .afterFeedForward = "post_ffw_norm",
    .query = "attn_q",
    .key = "attn_k",
    .value = "attn_v",
    .packedQKV = "attn_qkv",
    .output = "attn_output",
    .queryNorm = "attn_q_norm",
    .keyNorm = "attn_k_norm",
    .queryLatent = "attn_q_a",
    .queryLatentNorm = "attn_q_a_norm",
    .latentQuery = "attn_q_b",
    .latent = "attn_kv_a_mqa",
    .latentNorm = "attn_kv_a_norm",
    .latentKeyValue = "attn_kv_b",
    .latentKey = "attn_k_b",
    .latentValue = "attn_v_b",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .packedGateUp = "ffn_up",
    .down = "ffn_down",
    .router = "ffn_gate_inp",
    .routerBias = "exp_probs_b.bias",
    .expertGate = "ffn_gate_exps",
    .expertUp = "ffn_up_exps",
    .expertDown = "ffn_down_exps",
    .sharedGate = "ffn_gate_shexp",
    .sharedUp = "ffn_up_shexp",
    .sharedDown = "ffn_down_shexp",
    .sharedRouter = "ffn_gate_inp_shexp",
};

static constexpr TensorNames llamaNames() {
  return {
      .root = "model.",
      .embedding = "embed_tokens",
      .outputNorm = "norm",
      .head = "lm_head",
      .layer = "layers.",
      .beforeAttention = "input_layernorm",
      .beforeFeedForward = "post_attention_layernorm",
      .query = "self_attn.q_proj",
      .key = "self_attn.k_proj",
      .value = "self_attn.v_proj",
      .packedQKV = "self_attn.qkv_proj",
      .output = "self_attn.o_proj",
      .queryNorm = "self_attn.q_norm",
      .keyNorm = "self_attn.k_norm",
      .gate = "mlp.gate_proj",
      .up = "mlp.up_proj",
      .packedGateUp = "mlp.gate_up_proj",
      .down = "mlp.down_proj",
  };
}

static constexpr TensorNames sandwichNames() {
  TensorNames names = llamaNames();
  names.afterAttention = "post_attention_layernorm";
  names.beforeFeedForward = "pre_feedforward_layernorm";
  names.afterFeedForward = "post_feedforward_layernorm";
  return names;
}

static constexpr TensorNames mixtralNames() {
  TensorNames names = llamaNames();
  names.router = "mlp.gate";
  names.packedExpertGateUp = "mlp.experts.gate_up_proj";
  names.expertDown = "mlp.experts.down_proj";
  names.expertSuffix = "";
  // Before transformers 5.
  names.oneRouter = "block_sparse_moe.gate";
  names.oneExpert = "block_sparse_moe.experts.";
  names.oneGate = "w1";
  names.oneUp = "w3";
  names.oneDown = "w2";
  return names;
}

static constexpr TensorNames qwenMoeNames() {
  TensorNames names = mixtralNames();
  names.oneRouter = "mlp.gate";
  names.oneExpert = "mlp.experts.";
  names.oneGate = "gate_proj";
  names.oneUp = "up_proj";
  names.oneDown = "down_proj";
  names.sharedGate = "mlp.shared_expert.gate_proj";
  names.sharedUp = "mlp.shared_expert.up_proj";
  names.sharedDown = "mlp.shared_expert.down_proj";
  names.sharedRouter = "mlp.shared_expert_gate";
  return names;
}

static constexpr TensorNames deepseekNames() {
  TensorNames names = qwenMoeNames();
  names.queryLatent = "self_attn.q_a_proj";
  names.queryLatentNorm = "self_attn.q_a_layernorm";
  names.latentQuery = "self_attn.q_b_proj";
  names.latent = "self_attn.kv_a_proj_with_mqa";
  names.latentNorm = "self_attn.kv_a_layernorm";
  names.latentKeyValue = "self_attn.kv_b_proj";
  names.routerBias = "mlp.gate.e_score_correction_bias";
  names.sharedGate = "mlp.shared_experts.gate_proj";
  names.sharedUp = "mlp.shared_experts.up_proj";
  names.sharedDown = "mlp.shared_experts.down_proj";
  names.sharedRouter = "";
  return names;
}

static constexpr TensorNames baichuanNames() {
  TensorNames names = llamaNames();
  names.packedQKV = "self_attn.W_pack";
  return names;
}

static constexpr TensorNames mimoNames() {
  TensorNames names = llamaNames();
  names.predictLayer = "mtp_layers.";
  return names;
}

const TensorNames kLlamaNames = llamaNames();
const TensorNames kSandwichNames = sandwichNames();
const TensorNames kMixtralNames = mixtralNames();
const TensorNames kQwenMoeNames = qwenMoeNames();
const TensorNames kBaichuanNames = baichuanNames();
const TensorNames kDeepseekNames = deepseekNames();
const TensorNames kMimoNames = mimoNames();

const TensorNames kGPT2Names = {
    .root = "transformer.",
    .embedding = "wte",
    .positions = "wpe",
    .outputNorm = "ln_f",
    .head = "lm_head",
    .layer = "h.",
    .beforeAttention = "ln_1",
    .beforeFeedForward = "ln_2",
    .packedQKV = "attn.c_attn",
    .output = "attn.c_proj",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
    .transposed = true,
};

} // namespace mlir::llm
