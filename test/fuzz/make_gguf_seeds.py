#!/usr/bin/env python3
"""Writes small GGUF files, with every type of value and a tokenizer of each kind, for GGUFFuzzer to start from.

usage: make_gguf_seeds.py FOLDER
"""
import struct
import sys

# GGUF's numbers of value types: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)
FORMS = {UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "B",
         UINT64: "Q", INT64: "q", FLOAT64: "d"}


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def plain(kind, value):
    return text(value) if kind == STRING else struct.pack("<" + FORMS[kind], value)


def pair(key, kind, value, element=None):
    head = text(key) + struct.pack("<I", kind)
    if kind != ARRAY:
        return head + plain(kind, value)
    return head + struct.pack("<IQ", element, len(value)) + b"".join(plain(element, each) for each in value)


def gguf(pairs, tensors, version=3):
    """tensors: (name, sizes from the inner one, type, bytes)"""
    table, data = b"", b""
    for name, sizes, kind, content in tensors:
        table += text(name) + struct.pack("<I", len(sizes)) + b"".join(struct.pack("<Q", size) for size in sizes)
        table += struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % 32)
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + table
    return head + bytes(-len(head) % 32) + data


def tokenizer(model, pre, tokens, scores, merges):
    pairs = [pair("general.architecture", STRING, "llama"), pair("tokenizer.ggml.model", STRING, model),
             pair("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
             pair("tokenizer.ggml.token_type", ARRAY, [3] + [1] * (len(tokens) - 1), INT32),
             pair("tokenizer.ggml.bos_token_id", UINT32, 0), pair("tokenizer.ggml.add_bos_token", BOOL, 1),
             pair("tokenizer.chat_template", STRING, "{{ messages[0].content }}")]
    if pre:
        pairs.append(pair("tokenizer.ggml.pre", STRING, pre))
    if scores:
        pairs.append(pair("tokenizer.ggml.scores", ARRAY, [-float(i) for i in range(len(tokens))], FLOAT32))
    if merges:
        pairs.append(pair("tokenizer.ggml.merges", ARRAY, merges, STRING))
    return pairs


def main():
    folder = sys.argv[1]
    every = [pair("k" + str(kind), kind, "v" if kind == STRING else 1) for kind in FORMS | {STRING: ""}]
    every.append(pair("list", ARRAY, [1, 2, 3], UINT16))
    tensors = [("token_embd.weight", [32, 4], 8, bytes(34 * 4)), ("norm.weight", [32], 0, bytes(128)),
               ("a", [256, 1], 12, bytes(144)), ("b", [32, 2], 3, bytes(40))]
    letters = ["<s>", "H", "e", "l", "o", "ll", "He", "Hell", "\u0120"]
    files = {
        "values": gguf(every, tensors),
        "version2": gguf(every[:3], tensors[:1], version=2),
        "bpe": gguf(tokenizer("gpt2", "smollm", letters, False, ["l l", "H e", "He ll"]), tensors[1:2]),
        "sentencepiece": gguf(tokenizer("llama", "", letters + ["<0x41>", "\u2581"], True, []), []),
    }
    for name, content in files.items():
        with open(f"{folder}/{name}.gguf", "wb") as out:
            out.write(content)


main()
