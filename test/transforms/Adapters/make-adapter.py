#!/usr/bin/env python3
"""Writes a LoRA adapter for a tiny model: make-adapter.py FOLDER MODULE=NxK ... [--rank 4] [--alpha 8]

Numbers are small and come from a seed.
"""
import argparse
import json
import pathlib
import random
import struct

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("modules", nargs="+")
parser.add_argument("--rank", type=int, default=4)
parser.add_argument("--alpha", type=float, default=8)
parser.add_argument("--type", default="LORA")
parser.add_argument("--bias", default="none")
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()
args.folder.mkdir(parents=True, exist_ok=True)
numbers = random.Random(args.seed)
header, data = {}, b""
for module in args.modules:
    name, shape = module.split("=")
    rows, columns = map(int, shape.split("x"))
    for part, size in (("lora_A", (args.rank, columns)), ("lora_B", (rows, args.rank))):
        values = [numbers.uniform(-0.2, 0.2) for _ in range(size[0] * size[1])]
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[f"base_model.model.{name}.{part}.weight"] = {
            "dtype": "F32", "shape": list(size), "data_offsets": [begin, len(data)]}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
(args.folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
(args.folder / "adapter_config.json").write_text(json.dumps({
    "peft_type": args.type, "r": args.rank, "lora_alpha": args.alpha, "bias": args.bias, "use_rslora": False,
    "target_modules": sorted({module.split("=")[0].rsplit(".", 1)[1] for module in args.modules})}))
