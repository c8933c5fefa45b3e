#!/usr/bin/env python3
"""Writes heads in the manner of Medusa with random weights: guesses that are wrong, but must do no harm.

usage: random_heads.py OUT.safetensors [--width 576] [--heads 3] [--scale 0.05] [--seed 1]
"""
import argparse
import array
import json
import pathlib
import random
import struct


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=576)
    parser.add_argument("--heads", type=int, default=3)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed).uniform
    header, data = {}, bytearray()
    for head in range(args.heads):
        for name, shape in (("weight", [args.width, args.width]), ("bias", [args.width])):
            count = args.width if name == "bias" else args.width ** 2
            numbers = array.array("f", (draw(-args.scale, args.scale) for _ in range(count))).tobytes()
            header[f"{head}.0.linear.{name}"] = {"dtype": "F32", "shape": shape,
                                                 "data_offsets": [len(data), len(data) + len(numbers)]}
            data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    args.output.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
