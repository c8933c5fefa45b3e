#!/usr/bin/env python3
"""Writes a GGUF file in the shape of a model of 7 billion parameters (Q4_0, 4.1 GB) whose weights are a hole of the file
system; or runs a command and prints how long it took and how much anonymous memory it had at most.

    make_large.py FILE.gguf
    make_large.py --run COMMAND...
"""
import pathlib
import struct
import subprocess
import sys
import time

V, D, F, L, HEADS, GROUPS, E = 32000, 4096, 14336, 32, 32, 8, 128
F32, Q4_0 = 0, 2


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def metadata():
    def u32(key, value):
        return string(key) + struct.pack("<II", 4, value)

    def f32(key, value):
        return string(key) + struct.pack("<If", 6, value)

    def text(key, value):
        return string(key) + struct.pack("<I", 8) + string(value)
    return [text("general.architecture", "llama"), text("general.name", "large"), u32("llama.vocab_size", V),
            u32("llama.context_length", 4096), u32("llama.embedding_length", D), u32("llama.block_count", L),
            u32("llama.feed_forward_length", F), u32("llama.attention.head_count", HEADS),
            u32("llama.attention.head_count_kv", GROUPS), u32("llama.rope.dimension_count", E),
            f32("llama.attention.layer_norm_rms_epsilon", 1e-5)]


def tensors():
    yield "token_embd.weight", [V, D], Q4_0
    yield "output_norm.weight", [D], F32
    yield "output.weight", [V, D], Q4_0
    for layer in range(L):
        for name, shape in [("attn_q", [D, D]), ("attn_k", [GROUPS * E, D]), ("attn_v", [GROUPS * E, D]),
                            ("attn_output", [D, D]), ("ffn_gate", [F, D]), ("ffn_up", [F, D]), ("ffn_down", [D, F])]:
            yield f"blk.{layer}.{name}.weight", shape, Q4_0
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", [D], F32


def write(path):
    values, table, data = metadata(), [], 0
    for name, shape, kind in tensors():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        table.append(string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1]) +
                     struct.pack("<IQ", kind, data))
        data += -(-(count * 4 if kind == F32 else count // 32 * 18) // 32) * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(values)) + b"".join(values) + b"".join(table)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(-(-len(head) // 32) * 32 + data)


def run(command):
    begin = time.monotonic()
    process = subprocess.Popen(command)
    most = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                most = max(most, int(line.split()[1]))
        time.sleep(0.005)
    code = process.wait()
    print(f"{time.monotonic() - begin:.2f} s, {most / 1024:.0f} MiB anonymous at most: "
          f"{'at most 200' if most <= 200 * 1024 else 'more than 200'}")
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:]) if sys.argv[1] == "--run" else write(sys.argv[1]))
