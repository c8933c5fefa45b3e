#!/usr/bin/env python3
"""Checks factors that moved from norms of keys to those of queries: balanced_keys.py NEW.safetensors MODEL.safetensors"""
import json
import struct
import sys


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            yield name, struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first:8 + size + last])


new, old = dict(tensors(sys.argv[1])), dict(tensors(sys.argv[2]))
norms = [name for name in old if name.endswith("k_norm.weight")]
if not norms:
    sys.exit("expects norms of keys")
for name in norms:
    query = name.replace("k_norm", "q_norm")
    keys = [b / a for a, b in zip(old[name], new[name + ".balanced"], strict=True)]
    queries = [b / a for a, b in zip(old[query], new[query + ".balanced"], strict=True)]
    half = len(keys) // 2
    for c, (up, down) in enumerate(zip(keys, queries)):
        if abs(up * down - 1) > 1e-5 or abs(keys[c % half] / keys[c % half + half] - 1) > 1e-5:
            sys.exit(f"{name}: channel {c} has {up}, its query {down}, its pair {keys[c % half]}, {keys[c % half + half]}")
        both = [sum(new[key + ".balanced"][i] ** 2 for i in (c % half, c % half + half)) for key in (name, query)]
        if abs(both[0] / both[1] - 1) > 1e-4:
            sys.exit(f"{name}: pair {c % half} of {both[0]} in keys and {both[1]} in queries")
