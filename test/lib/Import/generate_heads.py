#!/usr/bin/env python3
"""Writes heads.json: heads that guess with a layer of their own, on models of variants.json, and the logits of their
first guesses, computed in f32 from the papers' formulas.

    pip install transformers torch
    python3 test/lib/Import/generate_heads.py

    EAGLE        arXiv 2401.15077, section 3.1: the embedding of the next token and the feature behind the last norm, in
                 one product, then a decoder layer without its first norm; the next feature is what the layer leaves
    EAGLE-3      arXiv 2503.01840, section 3: what three layers of the model read, in one product, is the feature; a layer
                 whose attention reads the token's embedding beside it, both normed; a norm and a table of frequent tokens
    MiMo         arXiv 2505.07608, section 2.2: both normed, the hidden state first, a layer of Qwen 2, a norm
    DeepSeek-V3  arXiv 2412.19437, section 2.2: both normed, the token first, a layer of the model, a norm
    Clover-2     arXiv 2408.00264, section 3: the hidden state before the last norm attends to the token's embedding by
                 the cosine of each head, decoder layers and a norm make the state, which attends to each guessed token

Weights are computed as those of generate_variants.py.
"""
import json
import pathlib

import torch
from torch import nn
from torch.nn import functional

import generate_variants
import own_models
from generate_variants import VOCABULARY, digits_of, entry_of, tensor

PROMPT = 16
GUESSES = 4
UNKNOWN = -1e6  # the logit of tokens that a head does not know


class EagleLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = own_models.Attention(config, packed=False, bias=config.get("qkv_bias", False))
        self.mlp = own_models.FeedForward(config)
        self.post_attention_layernorm = own_models.Norm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, x):
        x = x + self.self_attn(x)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle(nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config["hidden_size"]
        self.fc = nn.Linear(2 * D, D, bias=config["bias"])
        self.layers = nn.ModuleList([EagleLayer(config)])

    def forward(self, tokens, features):
        return self.layers[0](self.fc(torch.cat([tokens, features], -1)))


class Eagle3Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        D, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn = own_models.Attention(config, packed=False, bias=False)
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self.self_attn, name, nn.Linear(2 * D, getattr(self.self_attn, name).out_features, bias=False))
        self.mlp = own_models.FeedForward(config)
        self.hidden_norm, self.input_layernorm, self.post_attention_layernorm = (own_models.Norm(D, epsilon)
                                                                                 for _ in range(3))

    def forward(self, tokens, features):
        x = features + self.self_attn(torch.cat([self.input_layernorm(tokens), self.hidden_norm(features)], -1))
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config["hidden_size"]
        self.fc = nn.Linear(3 * D, D, bias=config["bias"])
        self.midlayer = Eagle3Layer(config)
        self.norm = own_models.Norm(D, config["rms_norm_eps"])
        self.lm_head = nn.Linear(D, config["draft_vocab_size"], bias=False)

    def guesses(self, embedded, states, known):
        """Logits behind the last of `states`, which are of three layers, and behind each further token."""
        features, rows = list(self.fc(torch.cat(states, -1))), []
        for guess in range(GUESSES):
            features.append(self.midlayer(embedded[1:len(features) + 1], torch.stack(features))[-1])
            row = torch.full([VOCABULARY], UNKNOWN)
            row[known] = self.lm_head(self.norm(features[-1]))
            rows.append(row)
        return rows


class MimoHead(own_models.FurtherToken):
    def forward(self, tokens, features):
        x = self.input_proj(torch.cat([self.hidden_layernorm(features), self.token_layernorm(tokens)], -1))
        return self.final_layernorm(super().forward(x))


class DeepseekHead(nn.Module):
    """The layer is that of transformers; what is around it is the paper's."""

    def __init__(self, config):
        super().__init__()
        from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

        D, epsilon = config.hidden_size, config.rms_norm_eps
        self.layer = deepseek.DeepseekV3DecoderLayer(config, config.num_hidden_layers)
        self.rotary = deepseek.DeepseekV3RotaryEmbedding(config)
        self.enorm, self.hnorm = own_models.Norm(D, epsilon), own_models.Norm(D, epsilon)
        self.eh_proj = nn.Linear(2 * D, D, bias=False)
        self.shared_head = nn.Module()
        self.shared_head.norm = own_models.Norm(D, epsilon)

    def forward(self, tokens, features):
        x = self.eh_proj(torch.cat([self.enorm(tokens), self.hnorm(features)], -1))[None]
        T = x.shape[1]
        positions = torch.arange(T)[None]
        mask = torch.full((T, T), float("-inf")).triu(1)[None, None]
        y = self.layer(x, attention_mask=mask, position_ids=positions, position_embeddings=self.rotary(x, positions))
        return self.shared_head.norm((y[0] if isinstance(y, tuple) else y)[0])


class Attend(nn.Module):
    """A residual block: heads of V e, each times the cosine of Q norm(x) and K e."""

    def __init__(self, D, heads, epsilon):
        super().__init__()
        self.input_layernorm = own_models.Norm(D, epsilon)
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.heads, self.epsilon = heads, epsilon

    def forward(self, x, e):
        split = lambda y: y.view(y.shape[0], self.heads, -1)
        q, k, v = split(self.q(self.input_layernorm(x))), split(self.k(e)), split(self.v(e))
        cosine = functional.cosine_similarity(q, k, dim=-1, eps=self.epsilon)
        return x + (v * cosine[..., None]).reshape(x.shape)


class Clover(nn.Module):
    def __init__(self, config):
        super().__init__()
        D, H, epsilon = config["hidden_size"], config["num_attention_heads"], config["rms_norm_eps"]
        self.clover_embed_tokens = nn.Embedding(config["vocab_size"], D)
        self.clover_head_mlp_rnn, self.clover_head_mlp_rnn2 = Attend(D, H, epsilon), Attend(D, H, epsilon)
        self.layers = nn.ModuleList(own_models.Layer(config, packed=False, bias=False)
                                    for _ in range(config["clover"]["num_layers"]))
        self.clover_norm, self.clover_head_norm = own_models.Norm(D, epsilon), own_models.Norm(D, epsilon)
        self.clover_head_mlp, self.clover_head_mlp2 = nn.Linear(D, D), nn.Linear(2 * D, D)

    def guesses(self, ids, hidden):
        """Rows for the model's table: behind the last of `hidden`, and each further token."""
        T = hidden.shape[0]
        e = self.clover_embed_tokens(ids[1:])
        x = self.clover_head_mlp_rnn(hidden, e[:T])
        for layer in self.layers:
            x = layer(x)
        state = self.clover_norm(x)[-1:]
        rows = [self.clover_head_norm(self.clover_head_mlp(state))[0]]
        for token in e[T:]:
            state = self.clover_head_mlp_rnn2(state, token[None])
            rows.append(self.clover_head_norm(self.clover_head_mlp2(torch.cat([state, token[None]], -1)))[0])
        return rows


def clover(layers, **more):
    config = {key: value for key, value in eagle().items() if key != "bias"}
    return config | {"num_hidden_layers": 2, "clover": {"num_heads": 5, "num_layers": layers}} | more


def eagle(**more):
    """config.json as it lies beside published heads."""
    return {"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
            "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 128,
            "model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1,
            "pad_token_id": 0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "float16",
            "transformers_version": "4.28.1", "use_cache": True, "vocab_size": VOCABULARY, "bias": True} | more


CASES = [
    dict(name="eagle", base="llama", config=eagle()),
    dict(name="eagle-without-bias", base="llama-tied", config=eagle(bias=False, num_attention_heads=8,
                                                                   num_key_value_heads=4, rope_theta=500000.0)),
    dict(name="eagle-qwen2", base="qwen2", config=eagle(qkv_bias=True, bias=False, intermediate_size=80)),
    dict(name="eagle3", base="smollm3-list", known=[i for i in range(VOCABULARY) if i % 8 not in (3, 6, 7)],
         config=eagle(bias=False, draft_vocab_size=50)),
    dict(name="clover", base="llama-tied", config=clover(1)),
    dict(name="clover-two-layers", base="llama", config=clover(2, rope_theta=500000.0)),
    dict(name="mtp-mimo", base="mimo"),
    dict(name="mtp-deepseek-v3", base="deepseek-v3", changes={"num_nextn_predict_layers": 1}),
]


def filled(module, prefix, rename=lambda name: name):
    """Entries of the module's tensors, which get their numbers."""
    entries = []
    for name, value in module.state_dict().items():
        if "inv_freq" in name:
            continue
        entries.append(entry_of(prefix + rename(name), list(value.shape), False))
        value.copy_(torch.from_numpy(tensor(entries[-1], False)))
    return entries


def evaluate(case, tokens):
    variant = next(one for one in generate_variants.VARIANTS if one["name"] == case["base"])
    model, written = generate_variants.settings_of(variant)
    generate_variants.fill(variant, model, written)
    ids = torch.tensor(tokens)
    if variant["own"]:
        body, table = model.model, model.model.embed_tokens.weight
    else:
        body, table = model.model, model.get_input_embeddings().weight
    body.norm.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    seen, read = [], []
    if "known" in case:
        for layer in body.layers:
            layer.register_forward_pre_hook(lambda module, arguments: read.append(arguments[0][0]))
    if variant["own"]:
        features = body(ids)
    else:
        features = body(ids[None]).last_hidden_state[0]
    hidden = seen[0].reshape(features.shape)
    out = {key: case[key] for key in ("name", "base", "changes", "config", "known") if key in case}
    logits_of = lambda row: functional.linear(row, model.lm_head.weight)
    if "known" in case:
        head = Eagle3(case["config"]).float().eval()
        out["tensors"] = filled(head, "")
        rows = head.guesses(table[ids], [state[:PROMPT] for state in read], case["known"])
        return out | {"logits": [digits_of(row) for row in rows]}
    if "clover" in case.get("config", {}):
        head = Clover(case["config"]).float().eval()
        out["tensors"] = filled(head, "")
        rows = head.guesses(ids[:PROMPT + GUESSES], hidden[:PROMPT])
        return out | {"logits": [digits_of(logits_of(row)) for row in rows]}
    if "config" in case:
        head = Eagle(case["config"]).float().eval()
        out["tensors"] = filled(head, "")
    elif case["base"] == "mimo":
        head = MimoHead(written).float().eval()
        filled(head, "model.mtp_layers.0.")
    else:
        head = DeepseekHead(model.config).float().eval()
        prefix = f"model.layers.{model.config.num_hidden_layers}."
        out["added"] = filled(head, prefix, lambda name: name.removeprefix("layer."))
        out["added"] += [[prefix + "embed_tokens.weight", list(table.shape), 0, 1.0],
                         [prefix + "shared_head.head.weight", list(table.shape), 0, 0.25]]
    known, rows = list(features[:PROMPT]), []
    for guess in range(GUESSES):
        # Features of the prompt are the model's, those behind it the head's own.
        next_feature = head(table[ids[1:PROMPT + 1 + guess]], torch.stack(known))[-1]
        rows.append(digits_of(logits_of(next_feature)))
        known.append(next_feature)
    return out | {"logits": rows}


def main():
    path = pathlib.Path(__file__)
    tokens = json.loads(path.with_name("variants.json").read_text())["tokens"]
    with torch.no_grad():
        cases = [evaluate(case, tokens) for case in CASES]
    with path.with_name("heads.json").open("w") as file:
        file.write('{"prompt":%d,\n"cases":[\n' % PROMPT)
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
