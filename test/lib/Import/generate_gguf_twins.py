#!/usr/bin/env python3
"""Writes gguf_twins.json: what the `gguf` package (0.19.0 made the committed file) puts into a GGUF file of each variant
of generate_variants.py. Keys have the package's names, tensors those of its table of Hugging Face names; rows of Q and K
of llama-like families are put in order as llama.cpp's converter does. Of each file one number is kept: the CRC-32 of a
list of its keys, tensors and the CRC-32 of their bytes, which ImportLogitsTest makes of the files that it evaluates.

    pip install transformers torch gguf
    python3 test/lib/Import/generate_gguf_twins.py [--list NAME | --write FOLDER]

With --write the files themselves are kept in a folder: the same test reads them where SPRIG_GGUF_FILES names it, and two
small ones from `gguf`, always.
"""
import json
import pathlib
import sys
import tempfile
import zlib

import gguf
import numpy

import generate_variants as variants

FAMILIES = {"mistral": "llama", "mixtral": "llama", "gemma3_text": "gemma3", "qwen3_moe": "qwen3moe",
            "qwen2_moe": "qwen2moe",
            "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2"}
NONE = ("gpt2", "llama-gelu", "gemma2-caps", "smollm3-list", "qwen3-moe-dense-layer",
        "qwen2-moe-sparse-steps", "baichuan", "mimo", "deepseek-v3-halves")


class Twin:
    def __init__(self, variant, path):
        self.config = variant["config"]
        self.tensors = variant["tensors"]
        self.kind = self.config["model_type"]
        family = FAMILIES.get(self.kind, self.kind)
        arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == family)
        self.names = gguf.get_tensor_name_map(arch, self.config["num_hidden_layers"])
        self.writer = gguf.GGUFWriter(path, family)
        self.turned = family in ("llama", "granite", "smollm3", "minicpm")
        self.whole_norms = family.startswith("gemma")
        self.heads, self.kv_heads = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        self.size = self.config.get("head_dim") or self.config["hidden_size"] // self.heads
        self.latent = "kv_lora_rank" in self.config
        self.absorbed = self.kind == "deepseek_v3"

    def add(self, function, key):
        value = self.config.get(key)
        if value is not None:
            getattr(self.writer, "add_" + function)(value)

    def write_keys(self):
        config, writer = self.config, self.writer
        for function, key in (("vocab_size", "vocab_size"), ("context_length", "max_position_embeddings"),
                              ("embedding_length", "hidden_size"), ("block_count", "num_hidden_layers"),
                              ("feed_forward_length", "intermediate_size"),
                              ("expert_feed_forward_length", "moe_intermediate_size"),
                              ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
                              ("expert_count", "num_experts"), ("expert_count", "n_routed_experts"),
                              ("expert_count", "num_local_experts"), ("expert_used_count", "num_experts_per_tok"),
                              ("layer_norm_rms_eps", "rms_norm_eps"), ("layer_norm_eps", "layer_norm_eps"),
                              ("embedding_scale", "embedding_multiplier"), ("residual_scale", "residual_multiplier"),
                              ("logit_scale", "logits_scaling"), ("attention_scale", "attention_multiplier"),
                              ("attn_logit_softcapping", "attn_logit_softcapping"),
                              ("final_logit_softcapping", "final_logit_softcapping"),
                              ("sliding_window", "sliding_window")):
            self.add(function, key)
        if "sliding_window" in config and config.get("layer_types"):
            writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(1 if self.absorbed else self.kv_heads)
        if self.latent:
            self.write_latents()
        else:
            writer.add_key_length(self.size)
            writer.add_value_length(self.size)
        self.write_rope()
        if self.kind == "minicpm":
            self.writer.add_embedding_scale(config["scale_emb"])
            self.writer.add_residual_scale(config["scale_depth"] / config["num_hidden_layers"] ** 0.5)
            self.writer.add_logit_scale(config["hidden_size"] / config["dim_model_base"])

    def write_latents(self):
        config, writer = self.config, self.writer
        for function, key in (("q_lora_rank", "q_lora_rank"), ("kv_lora_rank", "kv_lora_rank"),
                              ("leading_dense_block_count", "first_k_dense_replace"),
                              ("expert_shared_count", "n_shared_experts"),
                              ("expert_weights_scale", "routed_scaling_factor")):
            self.add(function, key)
        keys, values = config["qk_nope_head_dim"] + config["qk_rope_head_dim"], config["v_head_dim"]
        latent = config["kv_lora_rank"]
        writer.add_key_length(latent + config["qk_rope_head_dim"] if self.absorbed else keys)
        writer.add_value_length(latent if self.absorbed else values)
        if self.absorbed or config.get("topk_method") == "group_limited_greedy":
            self.add("expert_group_count", "n_group")
            self.add("expert_group_used_count", "topk_group")
        kind = gguf.ExpertGatingFuncType.SIGMOID if self.absorbed else gguf.ExpertGatingFuncType.SOFTMAX
        writer.add_expert_gating_func(kind)
        if self.absorbed:
            writer.add_key_length_mla(keys)
            writer.add_value_length_mla(values)
            writer.add_expert_weights_norm(config["norm_topk_prob"])

    def write_rope(self):
        rope = self.config.get("rope_parameters", {"rope_theta": 10000.0})
        if "full_attention" in rope:
            self.writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
            rope = rope["full_attention"]
        self.writer.add_rope_freq_base(rope["rope_theta"])
        self.writer.add_rope_dimension_count(int(self.size * rope.get("partial_rotary_factor", 1.0)))
        kind = rope.get("rope_type", "default")
        if kind in ("linear", "yarn"):
            self.writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
            self.writer.add_rope_scaling_factor(rope["factor"])
            if kind == "yarn":
                self.writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
                if self.latent:
                    self.writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
        if kind == "longrope":
            self.write_long_rope(rope)
        if kind == "llama3":
            waves = 2 * numpy.pi * rope["rope_theta"] ** (numpy.arange(0, self.size, 2) / self.size)
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            smooth = ((rope["original_max_position_embeddings"] / waves - low) / (high - low)).clip(0, 1)
            factors = 1 / ((1 - smooth) / rope["factor"] + smooth)
            self.writer.add_tensor("rope_freqs.weight", factors.astype(numpy.float32))

    def write_long_rope(self, rope):
        original = rope["original_max_position_embeddings"]
        factor = self.config["max_position_embeddings"] / original
        self.writer.add_rope_scaling_orig_ctx_len(original)
        self.writer.add_rope_scaling_attn_factors(
            numpy.sqrt(1 + numpy.log(factor) / numpy.log(original)).item() if factor > 1 else 1.0)
        for name, tensor in (("long", gguf.MODEL_TENSOR.ROPE_FACTORS_LONG), ("short", gguf.MODEL_TENSOR.ROPE_FACTORS_SHORT)):
            self.writer.add_tensor(gguf.TENSOR_NAMES[tensor] + ".weight", numpy.array(rope[name + "_factor"], numpy.float32))

    def put(self, name, values, plain=False):
        if self.config["dtype"] == "bfloat16" and not plain:
            words = numpy.ascontiguousarray(values).view(numpy.uint32) >> 16
            self.writer.add_tensor(name, words.astype(numpy.uint16).view(numpy.uint8),
                                   raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            self.writer.add_tensor(name, numpy.ascontiguousarray(values))

    def name_of(self, checkpoint):
        found = self.names.get_name(checkpoint, try_suffixes=(".weight", ".bias"))
        # Published Gemma models are tied, so the table has no head for them; the variants are tied or not.
        assert found or checkpoint == "lm_head.weight", checkpoint
        return found or "output.weight"

    def write_tensor(self, entry):
        name, values = entry[0], variants.tensor(entry, self.config["dtype"] == "bfloat16")
        name = name.replace("e_score_correction_bias", "e_score_correction.bias")
        if name.endswith("shared_expert_gate.weight"):
            values = values[0]
        if name.endswith("experts.gate_up_proj"):
            for part, half in zip(("gate_proj", "up_proj"), numpy.split(values, 2, axis=1)):
                self.put(self.name_of(name.replace("gate_up_proj", part)) + ".weight", half)
        elif name.endswith("experts.down_proj"):
            self.put(self.name_of(name) + ".weight", values)
        elif self.absorbed and name.endswith("kv_b_proj.weight"):
            heads = values.reshape(self.heads, -1, values.shape[-1])
            keys, values = numpy.split(heads, [self.config["qk_nope_head_dim"]], axis=1)
            self.put(self.name_of(name.replace("kv_b_proj", "k_b_proj")), keys.swapaxes(1, 2), True)
            self.put(self.name_of(name.replace("kv_b_proj", "v_b_proj")), values, True)
        elif self.whole_norms and "norm" in name:
            self.put(self.name_of(name), values + numpy.float32(1), True)
        else:
            if self.turned and (".q_proj." in name or ".k_proj." in name):
                heads = self.heads if ".q_proj." in name else self.kv_heads
                halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
                values = halves.swapaxes(1, 2).reshape(values.shape)
            self.put(self.name_of(name), values)

    def write(self):
        self.write_keys()
        for entry in self.tensors:
            self.write_tensor(entry)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def text_of(value):
    if isinstance(value, (list, numpy.ndarray)):
        return ",".join(text_of(one) for one in value)
    if isinstance(value, (float, numpy.floating)):
        return f"{numpy.float32(value):.8g}"
    return value if isinstance(value, str) else str(int(value))


def list_of(path):
    """A line for each key of the family and each tensor, in alphabetical order."""
    reader = gguf.GGUFReader(path)
    lines = []
    for key, field in reader.fields.items():
        if not key.startswith(("GGUF.", "general.")) or key == "general.architecture":
            lines.append(f"{key} {text_of(field.contents())}")
    for tensor in reader.tensors:
        shape = "x".join(str(size) for size in reversed(tensor.shape.tolist()))
        lines.append(f"{tensor.name} {tensor.tensor_type.name} {shape} {zlib.crc32(tensor.data.tobytes()):08x}")
    return "".join(line + "\n" for line in sorted(lines))


def main():
    folder = pathlib.Path(__file__).parent
    shown = sys.argv[2] if sys.argv[1:2] == ["--list"] else None
    kept = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--write"] else None
    out = {}
    for variant in json.loads((folder / "variants.json").read_text())["variants"]:
        name = variant["name"]
        if name.startswith(NONE) or shown not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as place:
            path = kept / f"{name}.gguf" if kept else pathlib.Path(place) / "model.gguf"
            Twin(variant, path).write()
            lines = list_of(path)
        out[name] = f"{zlib.crc32(lines.encode()):08x}"
        if shown:
            print(lines, end="")
    if not shown and not kept:
        (folder / "gguf_twins.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
