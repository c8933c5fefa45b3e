#!/usr/bin/env python3
"""Writes variants.json: small models of many families and shapes, and the logits that the `transformers` package
(5.24.0, with torch, made the committed file) computes of them in f32.

    pip install transformers torch
    python3 test/lib/Import/generate_variants.py [NAME...]

No weights are stored: each number is a function of the tensor's name and its place (`numbers`), which
GeneratedCheckpoint.cpp computes as well.
"""
import json
import pathlib
import sys

import numpy
import torch
import transformers

import own_models

TOKENS = 24
VOCABULARY = 80


def numbers(name, count, bfloat, based):
    """In [-1, 1): splitmix64 of the name's FNV-1a hash and the place, of as many bits as the type keeps."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & (2**64 - 1)
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(key) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ z >> numpy.uint64(31)
    bits = (5 if based else 8) if bfloat else 24
    whole = (z >> numpy.uint64(64 - bits)).astype(numpy.float32)
    return whole * numpy.float32(2.0 ** (1 - bits)) - numpy.float32(1)


def tensor(entry, bfloat):
    name, shape, base, scale = entry
    values = numbers(name, int(numpy.prod(shape)), bfloat, base != 0)
    return (numpy.float32(base) + numpy.float32(scale) * values).reshape(shape)


def entry_of(name, shape, less_one):
    if len(shape) == 1:
        is_factor = name.endswith("weight")
        return [name, shape, 0 if less_one or not is_factor else 1, 0.25]
    if "embed" in name or "wte" in name or "wpe" in name:
        return [name, shape, 0, 1.0]
    return [name, shape, 0, 0.25 if min(shape[-2:]) < 128 else 0.125]


def base(**more):
    return dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                tie_word_embeddings=False) | more


def of(model_type, name, bfloat=False, own=None, steps=False, **more):
    """`own`: the configuration of a model of own_models.py; `steps`: a token at a time, which matters where what is
    computed depends on how far the text has come (LongRoPE)."""
    return dict(name=name, model_type=model_type, config=more, bfloat=bfloat, own=own, steps=steps)


def llama(name, bfloat=False, **more):
    return of("llama", name, bfloat, **base(**more))


LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}


YARN_LATENT = YARN | {"mscale": 0.707, "mscale_all_dim": 0.707}


def latents(**more):
    """Latent attention: heads of 16 and 8 (rotated), values of 12."""
    return base(num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8,
                v_head_dim=12, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=2,
                moe_intermediate_size=24, first_k_dense_replace=1, num_hidden_layers=3) | more


def long_rope(half, original):
    return {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0 + 0.05 * i for i in range(half)],
            "long_factor": [1.5 + 0.5 * i for i in range(half)], "original_max_position_embeddings": original}


def own(model_type, name, bfloat=False, **more):
    """A family that transformers does not carry, by own_models.py, with the configuration as it is published."""
    whole = {"baichuan": "Baichuan", "minicpm": "MiniCPM", "mimo": "MiMo"}[model_type] + "ForCausalLM"
    config = {"model_type": model_type, "architectures": [whole], "vocab_size": VOCABULARY, "hidden_size": 64,
              "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_act": "silu",
              "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": False} | more
    return of(model_type, name, bfloat, own={key: value for key, value in config.items() if value is not None})


VARIANTS = [
    llama("llama"),
    llama("llama-tied", tie_word_embeddings=True),
    llama("llama-bf16", bfloat=True),
    llama("llama-tied-bf16", bfloat=True, tie_word_embeddings=True),
    llama("llama-heads-1", num_attention_heads=1, num_key_value_heads=1),
    llama("llama-groups-1", num_key_value_heads=1),
    llama("llama-groups-all", num_key_value_heads=4),
    llama("llama-6-heads-2", hidden_size=96, num_attention_heads=6),
    llama("llama-6-heads-3", hidden_size=96, num_attention_heads=6, num_key_value_heads=3),
    llama("llama-head-8", head_dim=8),
    llama("llama-head-12", head_dim=12),
    llama("llama-head-40", head_dim=40),
    llama("llama-head-64", head_dim=64),
    llama("llama-head-80", head_dim=80),
    llama("llama-odd-widths", hidden_size=36, head_dim=10, intermediate_size=50, num_attention_heads=3,
          num_key_value_heads=1),
    llama("llama-odd-vocabulary", vocab_size=77),
    llama("llama-wide-feed-forward", intermediate_size=258),
    llama("llama-narrow-feed-forward", intermediate_size=24),
    llama("llama-attention-bias", attention_bias=True),
    llama("llama-mlp-bias", mlp_bias=True),
    llama("llama-all-biases", attention_bias=True, mlp_bias=True),
    llama("llama-base-500000", rope_parameters={"rope_type": "default", "rope_theta": 500000.0}),
    llama("llama-llama3", rope_parameters=LLAMA3),
    llama("llama-yarn", rope_parameters=YARN),
    llama("llama-linear", rope_parameters=LINEAR),
    llama("llama-gelu", hidden_act="gelu"),
    llama("llama-epsilon", rms_norm_eps=1e-2),
    llama("llama-one-layer", num_hidden_layers=1),
    llama("llama-five-layers", num_hidden_layers=5),
    of("mistral", "mistral", **base(sliding_window=None)),
    of("mistral", "mistral-window", **base(sliding_window=7)),
    of("mistral", "mistral-window-1", **base(sliding_window=1)),
    of("mistral", "mistral-head-24", **base(head_dim=24, sliding_window=16)),
    of("qwen2", "qwen2", **base()),
    of("qwen2", "qwen2-tied", **base(tie_word_embeddings=True)),
    of("qwen2", "qwen2-window", **base(use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    of("qwen2", "qwen2-yarn", **base(rope_parameters=YARN)),
    of("qwen2", "qwen2-groups-7", **base(hidden_size=112, num_attention_heads=14)),
    of("qwen3", "qwen3", **base(head_dim=16)),
    of("qwen3", "qwen3-head-32", **base(head_dim=32, tie_word_embeddings=True)),
    of("qwen3", "qwen3-bias", **base(head_dim=16, attention_bias=True)),
    of("gemma2", "gemma2", **base(head_dim=16, sliding_window=8, query_pre_attn_scalar=16)),
    of("gemma2", "gemma2-caps", **base(head_dim=24, sliding_window=5, query_pre_attn_scalar=64, num_hidden_layers=4,
                                       attn_logit_softcapping=5.0, final_logit_softcapping=8.0)),
    of("gemma3_text", "gemma3", **base(head_dim=16, sliding_window=8, query_pre_attn_scalar=16)),
    of("gemma3_text", "gemma3-seven-layers", **base(head_dim=32, sliding_window=4, query_pre_attn_scalar=32,
                                                    num_hidden_layers=7, num_key_value_heads=1)),
    of("gemma3_text", "gemma3-small-bf16", True, **base(head_dim=16, hidden_size=32, intermediate_size=48,
                                                       num_attention_heads=2, num_key_value_heads=1, sliding_window=6,
                                                       query_pre_attn_scalar=16, num_hidden_layers=3,
                                                       tie_word_embeddings=True)),
    of("phi3", "phi3", **base(pad_token_id=0)),
    of("phi3", "phi3-window", **base(pad_token_id=0, sliding_window=9)),
    of("phi3", "phi3-long", **base(pad_token_id=0, original_max_position_embeddings=64,
                                   rope_parameters=long_rope(8, 64))),
    of("phi3", "phi3-beyond", steps=True, **base(pad_token_id=0, original_max_position_embeddings=16,
                                     rope_parameters=long_rope(8, 16))),
    of("phi3", "phi3-partial", **base(pad_token_id=0, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    of("olmo2", "olmo2", **base()),
    of("olmo2", "olmo2-groups-all", **base(num_key_value_heads=4, attention_bias=True)),
    of("stablelm", "stablelm", **base()),
    of("stablelm", "stablelm-bias", **base(use_qkv_bias=True, num_key_value_heads=4, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    of("granite", "granite", **base(embedding_multiplier=6.0, attention_multiplier=0.1, residual_multiplier=0.4,
                                    logits_scaling=3.0)),
    of("granite", "granite-tied", **base(tie_word_embeddings=True, attention_bias=True)),
    of("smollm3", "smollm3", **base(num_hidden_layers=4, no_rope_layer_interval=4, pad_token_id=0)),
    of("smollm3", "smollm3-list", **base(num_hidden_layers=3, no_rope_layers=[0, 1, 0], tie_word_embeddings=True,
                                        pad_token_id=0)),
    of("gpt2", "gpt2", vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=128),
    of("gpt2", "gpt2-feed-forward", vocab_size=VOCABULARY, n_embd=48, n_layer=3, n_head=3, n_positions=64, n_inner=80,
       activation_function="relu"),
    of("mixtral", "mixtral", **base(num_local_experts=4, num_experts_per_tok=2)),
    of("mixtral", "mixtral-one-of-8", **base(num_local_experts=8, num_experts_per_tok=1, intermediate_size=40,
                                             sliding_window=None)),
    of("mixtral", "mixtral-all", **base(num_local_experts=3, num_experts_per_tok=3)),
    of("qwen3_moe", "qwen3-moe", **base(head_dim=16, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                                        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])),
    of("qwen3_moe", "qwen3-moe-dense-layer", **base(head_dim=16, num_experts=4, num_experts_per_tok=3,
                                                    moe_intermediate_size=24, norm_topk_prob=False,
                                                    decoder_sparse_step=1, mlp_only_layers=[0], num_hidden_layers=3)),
    of("qwen2_moe", "qwen2-moe", **base(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=32,
                                        shared_expert_intermediate_size=48, decoder_sparse_step=1, mlp_only_layers=[])),
    of("qwen2_moe", "qwen2-moe-sparse-steps", **base(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40,
                                                     shared_expert_intermediate_size=24, decoder_sparse_step=2,
                                                     mlp_only_layers=[], norm_topk_prob=True, num_hidden_layers=3)),
    of("deepseek_v2", "deepseek-v2", **latents()),
    of("deepseek_v2", "deepseek-v2-dense", **latents(first_k_dense_replace=3, q_lora_rank=24, attention_bias=True,
                                                     v_head_dim=24)),
    of("deepseek_v2", "deepseek-v2-yarn", **latents(rope_parameters=YARN_LATENT, routed_scaling_factor=1.5,
                                                    first_k_dense_replace=0, num_hidden_layers=2)),
    of("deepseek_v2", "deepseek-v2-bf16", True, **latents(v_head_dim=16, tie_word_embeddings=True)),
    of("deepseek_v2", "deepseek-v2-groups", **latents(n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
                                                      topk_method="group_limited_greedy", routed_scaling_factor=2.0)),
    of("deepseek_v2", "deepseek-v2-one-group-of-3", **latents(n_group=3, topk_group=1, topk_method="group_limited_greedy",
                                                              first_k_dense_replace=0, num_hidden_layers=2)),
    # Blocks of 128 by 128 (FP8) are more than one of these, and its matrices are whole units of 32 columns.
    of("deepseek_v3", "deepseek-v3-wide", **latents(
        hidden_size=256, intermediate_size=384, q_lora_rank=160, kv_lora_rank=160, qk_nope_head_dim=32, qk_rope_head_dim=16,
        v_head_dim=32, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, n_shared_experts=1,
        moe_intermediate_size=256, num_hidden_layers=2, num_nextn_predict_layers=0)),
    of("qwen3_moe", "qwen3-moe-wide", **base(
        hidden_size=512, head_dim=16, moe_intermediate_size=512, num_experts=2, num_experts_per_tok=1, norm_topk_prob=True,
        num_hidden_layers=1)),
    of("deepseek_v3", "deepseek-v3", **latents(q_lora_rank=24, n_routed_experts=8, num_experts_per_tok=3, n_group=4,
                                               topk_group=2, n_shared_experts=1, num_nextn_predict_layers=0)),
    of("deepseek_v3", "deepseek-v3-one-group", **latents(n_group=1, topk_group=1, num_nextn_predict_layers=0)),
    of("deepseek_v3", "deepseek-v3-halves", **latents(n_group=2, topk_group=1, rope_interleave=False,
                                                      rope_parameters=YARN_LATENT | {"mscale_all_dim": 0.9}, norm_topk_prob=False,
                                                      num_nextn_predict_layers=0)),
    own("baichuan", "baichuan", model_max_length=128),
    own("baichuan", "baichuan-6-heads", hidden_size=96, num_attention_heads=6, model_max_length=128),
    own("baichuan", "baichuan-alibi", max_position_embeddings=None, model_max_length=128),
    own("baichuan", "baichuan-alibi-6-heads", hidden_size=96, num_attention_heads=6, max_position_embeddings=None,
        model_max_length=128),
    own("baichuan", "baichuan2", model_max_length=128, z_loss_weight=0),
    own("baichuan", "baichuan2-alibi-bf16", True, hidden_size=80, num_attention_heads=5, max_position_embeddings=None,
        model_max_length=128, z_loss_weight=0),
    own("minicpm", "minicpm", num_key_value_heads=2, rms_norm_eps=1e-5, scale_emb=12, scale_depth=1.4,
        dim_model_base=16, tie_word_embeddings=True),
    own("minicpm", "minicpm-deep", num_key_value_heads=4, num_hidden_layers=4, scale_emb=3, scale_depth=1.1,
        dim_model_base=24),
    own("mimo", "mimo", num_key_value_heads=2, head_dim=16, attention_bias=True, rope_theta=640000.0,
        num_nextn_predict_layers=1, rms_norm_eps=1e-5, sliding_window=None, use_sliding_window=False,
        max_window_layers=2),
    own("mimo", "mimo-two-heads-on", num_key_value_heads=1, head_dim=24, attention_bias=True, rope_theta=640000.0,
        num_nextn_predict_layers=2, rms_norm_eps=1e-5),
]


def settings_of(variant):
    """The model, and what its config.json says."""
    if variant["own"]:
        return own_models.OwnModel(variant["own"]).float().eval(), dict(variant["own"])
    config = transformers.AutoConfig.for_model(variant["model_type"], attn_implementation="eager", **variant["config"])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    written = json.loads(config.to_json_string(use_diff=False))
    drop = {"attn_implementation", "_attn_implementation", "transformers_version", "id2label", "label2id",
            "return_dict", "output_attentions", "output_hidden_states", "chunk_size_feed_forward", "problem_type",
            "_name_or_path"}
    written = {key: value for key, value in written.items() if key not in drop and value is not None}
    return model, written | {"architectures": [type(model).__name__]}


def fill(variant, model, written):
    """Gives the model its numbers; the entries of its tensors."""
    tied = written["tie_word_embeddings"]
    less_one = variant["model_type"].startswith("gemma")
    entries = []
    for name, value in model.state_dict().items():
        if tied and name == "lm_head.weight" or name.endswith((".attn.bias", ".masked_bias")):
            continue
        entries.append(entry_of(name, list(value.shape), less_one))
        value.copy_(torch.from_numpy(tensor(entries[-1], variant["bfloat"])))
    return entries


def digits_of(row):
    return [float(f"{value:.6g}") for value in row]


def evaluate(variant, tokens):
    model, written = settings_of(variant)
    with torch.no_grad():
        entries = fill(variant, model, written)
        if variant["own"]:
            logits = model(torch.tensor(tokens)).numpy()
        elif variant["steps"]:
            cache = transformers.DynamicCache(config=model.config)
            rows = [model(torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0] for token in tokens]
            logits = torch.cat(rows).numpy()
        else:
            logits = model(torch.tensor([tokens])).logits[0].numpy()
    written["dtype"] = "bfloat16" if variant["bfloat"] else "float32"
    return {"name": variant["name"], "config": written, "tensors": entries,
            "argmax": logits.argmax(axis=1).tolist(), "first": digits_of(logits[0]), "last": digits_of(logits[-1])}


def main():
    """All variants, or the named ones and, as they are in the file, the others."""
    torch.manual_seed(0)
    wanted = set(sys.argv[1:])
    path = pathlib.Path(__file__).with_name("variants.json")
    rng = numpy.random.default_rng(5)
    out = []
    tokens = rng.integers(0, 77, TOKENS).tolist()
    known = {one["name"]: one for one in json.loads(path.read_text())["variants"]} if wanted else {}
    for variant in VARIANTS:
        if variant["name"] in known and variant["name"] not in wanted:
            out.append(known[variant["name"]])
            continue
        out.append(evaluate(variant, tokens))
        print(variant["name"], out[-1]["argmax"][:6], max(out[-1]["last"]))
    with path.open("w") as file:
        file.write('{"tokens":' + json.dumps(tokens) + ',\n"variants":[\n')
        file.write(",\n".join(json.dumps(variant, separators=(",", ":")) for variant in out))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
