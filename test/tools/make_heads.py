#!/usr/bin/env python3
"""Writes heads for a small llama into a folder: model.safetensors with random weights, and config.json.

    make_heads.py FOLDER eagle|eagle3|clover [KEY=VALUE …] [without=TENSOR] [with=TENSOR] [step=3]

KEY=VALUE changes a number of config.json, before the tensors are made by it. An eagle3 head knows every `step`th token.
"""
import json
import pathlib
import random
import struct
import sys


def shapes_of(config, kind):
    D, F, E = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    H, G = config["num_attention_heads"], config["num_key_value_heads"]
    at = "layers.0."
    if kind == "eagle":
        around = {"fc.weight": [D, 2 * D], "fc.bias": [D], "embed_tokens.weight": [config["vocab_size"], D]}
    elif kind == "eagle3":
        at, K = "midlayer.", config["draft_vocab_size"]
        around = {"fc.weight": [D, 3 * D], "norm.weight": [D], "lm_head.weight": [K, D], "d2t": [K],
                  at + "input_layernorm.weight": [D], at + "hidden_norm.weight": [D]}
    else:
        around = {"clover_embed_tokens.weight": [config["vocab_size"], D], at + "input_layernorm.weight": [D],
                  "clover_norm.weight": [D], "clover_head_norm.weight": [D], "clover_head_mlp.weight": [D, D],
                  "clover_head_mlp.bias": [D], "clover_head_mlp2.weight": [D, 2 * D], "clover_head_mlp2.bias": [D]}
        for block in ("clover_head_mlp_rnn.", "clover_head_mlp_rnn2."):
            around[block + "input_layernorm.weight"] = [D]
            for name in "qkv":
                around |= {f"{block}{name}.weight": [D, D], f"{block}{name}.bias": [D]}
    read = 2 * D if kind == "eagle3" else D
    return around | {
            at + "self_attn.q_proj.weight": [H * E, read], at + "self_attn.k_proj.weight": [G * E, read],
            at + "self_attn.v_proj.weight": [G * E, read], at + "self_attn.o_proj.weight": [D, H * E],
            at + "mlp.gate_proj.weight": [F, D], at + "mlp.up_proj.weight": [F, D], at + "mlp.down_proj.weight": [D, F],
            at + "post_attention_layernorm.weight": [D]}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 288, "hidden_size": 64,
              "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
              "head_dim": 16, "hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
              "tie_word_embeddings": False, "torch_dtype": "float16"}
    kind = sys.argv[2]
    config |= {"eagle": {"bias": True}, "eagle3": {"draft_vocab_size": 40},
               "clover": {"clover": {"num_heads": 5, "num_layers": 1}}}[kind]
    without, more, step = None, None, 3
    for change in sys.argv[3:]:
        key, value = change.split("=")
        if key == "without":
            without = value
        elif key == "with":
            more = value
        elif key == "step":
            step = int(value)
        else:
            config[key] = int(value)
    shapes = shapes_of(config, kind)
    shapes.pop(without, None)
    if more:
        shapes[more] = [config["hidden_size"]]
    random.seed(3)
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        middle = 1.0 if "norm" in name else 0.0
        numbers = struct.pack(f"<{count}f", *(middle + random.uniform(-0.2, 0.2) for _ in range(count)))
        if name == "d2t":
            numbers = struct.pack(f"<{count}q", *((step - 1) * row for row in range(count)))
        header[name] = {"dtype": "I64" if name == "d2t" else "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
