"""Families that the `transformers` package does not carry, written from their papers and configurations: what
generate_variants.py evaluates in their place.

    Baichuan 7B and 13B, Baichuan 2   arXiv 2309.10305: Q, K and V in one tensor; 7B turns heads (RoPE), 13B lets scores
                                      fall with the distance (ALiBi, arXiv 2108.12409); 2 normalises the rows of the head
    MiniCPM                           arXiv 2404.06395, table 7: factors on embedding, residual and logits
    MiMo                              arXiv 2505.07608: Qwen 2 with layers that predict further tokens beside it
"""
import math

import torch
from torch import nn
from torch.nn import functional


class Norm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)


def turn(x, base):
    """Rotary positions: component i of a head turns with i + E/2. x: heads, tokens, E."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1])[:, None] * base ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


def slopes(heads):
    """ALiBi's geometric series; with a number of heads that is no power of two, the rest come from the next series."""
    if heads & (heads - 1) == 0:
        return [2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)]
    below = 1 << int(math.log2(heads))
    return slopes(below) + slopes(2 * below)[0::2][:heads - below]


class Attention(nn.Module):
    def __init__(self, config, packed, bias):
        super().__init__()
        D, self.H = config["hidden_size"], config["num_attention_heads"]
        self.G, self.E = config.get("num_key_value_heads", self.H), config.get("head_dim", D // self.H)
        sizes = [self.H * self.E, self.G * self.E, self.G * self.E]
        if packed:
            self.W_pack = nn.Linear(D, sum(sizes), bias=bias)
        else:
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(D, size, bias=bias) for size in sizes)
        self.o_proj = nn.Linear(sizes[0], D, bias=False)
        self.sizes, self.base = sizes, config.get("rope_theta", 10000.0)
        self.alibi = config["model_type"] == "baichuan" and "max_position_embeddings" not in config

    def forward(self, x):
        T = x.shape[0]
        parts = (self.W_pack(x).split(self.sizes, -1) if hasattr(self, "W_pack") else
                 (self.q_proj(x), self.k_proj(x), self.v_proj(x)))
        q, k, v = (part.view(T, -1, self.E).transpose(0, 1) for part in parts)
        if not self.alibi:
            q, k = turn(q, self.base), turn(k, self.base)
        k, v = (part.repeat_interleave(self.H // self.G, 0) for part in (k, v))
        scores = q @ k.transpose(1, 2) / math.sqrt(self.E)
        distance = torch.arange(T)[:, None] - torch.arange(T)[None, :]
        if self.alibi:
            scores = scores - torch.tensor(slopes(self.H))[:, None, None] * distance
        scores = scores.masked_fill(distance < 0, float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(T, -1))


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        D, F = config["hidden_size"], config["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(D, F, bias=False), nn.Linear(D, F, bias=False)
        self.down_proj = nn.Linear(F, D, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config, packed, bias, factor=1.0):
        super().__init__()
        D, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn, self.mlp = Attention(config, packed, bias), FeedForward(config)
        self.input_layernorm, self.post_attention_layernorm = Norm(D, epsilon), Norm(D, epsilon)
        self.factor = factor

    def forward(self, x):
        x = x + self.factor * self.self_attn(self.input_layernorm(x))
        return x + self.factor * self.mlp(self.post_attention_layernorm(x))


class FurtherToken(Layer):
    """MiMo's layer that predicts the token after the next, from the hidden state and the next token. What the model says
    of the next token does not need it."""

    def __init__(self, config):
        super().__init__(config, packed=False, bias=True)
        D, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.token_layernorm, self.hidden_layernorm = Norm(D, epsilon), Norm(D, epsilon)
        self.final_layernorm = Norm(D, epsilon)
        self.input_proj = nn.Linear(2 * D, D, bias=False)


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        family, L = config["model_type"], config["num_hidden_layers"]
        packed, bias = family == "baichuan", family == "mimo"
        factor = config.get("scale_depth", math.sqrt(L)) / math.sqrt(L)
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, packed, bias, factor) for _ in range(L))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])
        if further := config.get("num_nextn_predict_layers", 0):
            self.mtp_layers = nn.ModuleList(FurtherToken(config) for _ in range(further))
        self.scale = config.get("scale_emb", 1.0)

    def forward(self, ids):
        x = self.embed_tokens(ids) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class OwnModel(nn.Module):
    """A model of a configuration in the family's own spelling; gives logits of all tokens."""

    def __init__(self, config):
        super().__init__()
        self.model = Body(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings"):
            self.lm_head.weight = self.model.embed_tokens.weight
        self.normalised = "z_loss_weight" in config
        self.divisor = config["hidden_size"] / config.get("dim_model_base", config["hidden_size"])

    def forward(self, ids):
        head = self.lm_head.weight
        if self.normalised:
            head = functional.normalize(head)
        return functional.linear(self.model(ids) / self.divisor, head)
