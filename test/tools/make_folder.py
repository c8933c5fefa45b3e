#!/usr/bin/env python3
"""Writes a Hugging Face folder of one small llama: random weights, a byte-level tokenizer, a chat template.

    make_folder.py FOLDER [LAYERS [qwen3]]

A qwen3 has norms of queries and keys, whose factors differ much from channel to channel.
"""
import json
import pathlib
import random
import struct
import sys

WIDTH, FEED, HEADS = 32, 64, 2
LAYERS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
NORMED = "qwen3" in sys.argv[3:]
WORDS = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o")]
CONTROL = ["<begin>", "<turn>", "<stop>"]


def letters():
    """GPT-2's alphabet, byte 0 first."""
    out, extra = [], 0x100
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or (0xA1 <= byte and byte != 0xAD):
            out.append(chr(byte))
        else:
            out.append(chr(extra))
            extra += 1
    return out


def tokenizer():
    vocab = {letter: i for i, letter in enumerate(letters())}
    for left, right in WORDS:
        vocab[left + right] = len(vocab)
    added = [{"id": len(vocab) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, text in enumerate(CONTROL)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level,
            "post_processor": byte_level, "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocab, "merges": WORDS}}, len(vocab) + len(added)


def weights(vocabulary):
    shapes = {"model.embed_tokens.weight": [vocabulary, WIDTH], "model.norm.weight": [WIDTH],
              "lm_head.weight": [vocabulary, WIDTH]}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name in "qkvo":
            shapes[f"{at}self_attn.{name}_proj.weight"] = [WIDTH, WIDTH]
        shapes |= {at + "mlp.gate_proj.weight": [FEED, WIDTH], at + "mlp.up_proj.weight": [FEED, WIDTH],
                   at + "mlp.down_proj.weight": [WIDTH, FEED], at + "input_layernorm.weight": [WIDTH],
                   at + "post_attention_layernorm.weight": [WIDTH]}
        if NORMED:
            shapes |= {f"{at}self_attn.{name}_norm.weight": [WIDTH // HEADS] for name in "qk"}
    return shapes


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    text, tokens = tokenizer()
    vocabulary = tokens + 5  # padded rows, which are never sampled
    config = {"architectures": ["Qwen3ForCausalLM" if NORMED else "LlamaForCausalLM"],
              "model_type": "qwen3" if NORMED else "llama", "head_dim": WIDTH // HEADS, "vocab_size": vocabulary,
              "hidden_size": WIDTH, "intermediate_size": FEED, "num_hidden_layers": LAYERS,
              "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "hidden_act": "silu",
              "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
              "tie_word_embeddings": False, "bos_token_id": tokens - 3, "eos_token_id": tokens - 1}
    settings = {"bos_token": "<begin>", "eos_token": "<stop>", "add_bos_token": True, "chat_template":
                "{{ bos_token }}{% for m in messages %}<turn>{{ m.content }}{% endfor %}<turn>"}
    for name, value in [("config.json", config), ("tokenizer.json", text), ("tokenizer_config.json", settings),
                        ("generation_config.json", {"eos_token_id": [tokens - 1, tokens - 2]})]:
        (folder / name).write_text(json.dumps(value))

    rng = random.Random(7)
    header, data = {}, b""
    for name, shape in weights(vocabulary).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if len(shape) == 1 else [rng.gauss(0, 0.3) for _ in range(count)]
        if "_norm" in name and "self_attn" in name:
            values = [2 ** rng.uniform(-4, 4) for _ in values]
        if name == "lm_head.weight":  # padded rows have the largest logits, and the smallest
            values[(vocabulary - 5) * WIDTH:] = [value * 100 for value in values[(vocabulary - 5) * WIDTH:]]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)


if __name__ == "__main__":
    main()
