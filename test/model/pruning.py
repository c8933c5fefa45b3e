#!/usr/bin/env python3
"""Prunes a model in several ways and measures what each costs: the table of docs/pruning.md.

usage: pruning.py MODEL --calibrate TEXT --text OTHER-TEXT [--bin DIR] [--out DIR] [--layers 4] [--windows 16]

Scores and recovery come from one text, perplexity from another. Each shape is made three times: the least important
part goes and the rest is fitted; it goes without a fit; a random part goes. Checked is that the first is strictly below
the second, and both below the third. Sparsity is made by SparseGPT, Wanda and magnitude, and checked to be the better in
this order. A shape that was searched for (--search 0.75, a share of the bytes) is compared with one that takes as much
from every layer. Exits 1 where something is not so. Results that are there already are taken as they are.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--calibrate", required=True)
parser.add_argument("--text", required=True)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--out", default="build/pruning")
parser.add_argument("--layers", type=int, default=4, help="how many layers go")
parser.add_argument("--heads", default="0.34,0.67", help="shares of the query heads of each key-value head")
parser.add_argument("--ffn", type=float, default=0.2)
parser.add_argument("--width", type=float, default=0.12)
parser.add_argument("--tokens", type=int, default=16384)
parser.add_argument("--windows", type=int, default=16)
parser.add_argument("--sparse", default="2:4,4:8,sparse:0.5", help="patterns, and shares of all numbers")
parser.add_argument("--search", type=float, default=0.75, help="share of the bytes that a searched shape has")
parser.add_argument("--nice", type=int, default=0, help="run the tools with this niceness")
parser.add_argument("--only", help="shapes whose name contains this")
args = parser.parse_args()
out = pathlib.Path(args.out)
out.mkdir(parents=True, exist_ok=True)

WAYS = {"fitted": "", "as it is": ",recover:no", "random": ",score:random,recover:no"}
shapes = {f"{100 * args.ffn:.0f} % of channels": f"ffn:{args.ffn}"}
for ratio in args.heads.split(","):
    shapes[f"{100 * float(ratio):.0f} % of query heads"] = f"heads:{ratio}"
shapes[f"{args.layers} layers"] = f"layers:{args.layers}"
shapes[f"{100 * args.width:.0f} % of the width"] = f"width:{args.width}"


def run(tool, *arguments):
    done = subprocess.run(["nice", "-n", str(args.nice), f"{args.bin}/{tool}", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def measured(*specs, pipeline=""):
    """Perplexity and bytes of a pruned model, or of the model itself."""
    name = "-".join(re.sub("[^a-z0-9.]+", "-", text) for text in (*specs, pipeline) if text) or "whole"
    result = out / f"{name}.json"
    if result.exists():
        return json.loads(result.read_text())
    start = time.time()
    model = args.model
    if name != "whole":
        model = f"{out}/{name}.mlir"
        how = [f"--prune={spec},tokens:{args.tokens}" for spec in specs]
        if pipeline:
            how = [f"--pass-pipeline=builtin.module({pipeline},llm-default-pipeline)"]
        run("llm-compile", args.model, "-o", model, "--emit=llm", *how, f"--calibrate={args.calibrate}",
            f"--calibration-cache={out}/cache")
    seconds = time.time() - start
    values = json.loads(run("llm-eval", model, "--text", args.text, "--skip-chars", "2000", "--windows",
                            str(args.windows), "--json"))
    values["seconds"] = seconds
    result.write_text(json.dumps(values))
    if name != "whole": # a model takes as much room as the one that it was made of
        pathlib.Path(model).with_suffix(".safetensors").unlink(missing_ok=True)
    return values


def wanted(shape):
    return not args.only or args.only in shape


failures = []
whole = measured("")
print("| what goes | fitted | as it is | random | MB | seconds |")
print("|---|---|---|---|---|---|")
print(f"| nothing | {whole['perplexity']:.2f} | | | {whole['bytes'] / 1e6:.1f} | |")
for shape, spec in shapes.items():
    if not wanted(shape):
        continue
    rows = {way: measured(spec + more) for way, more in WAYS.items()}
    values = [rows[way]["perplexity"] for way in WAYS]
    print(f"| {shape} | " + " | ".join(f"{value:.2f}" for value in values) +
          f" | {rows['fitted']['bytes'] / 1e6:.1f} | {rows['fitted']['seconds']:.0f} |", flush=True)
    if not (all(math.isfinite(value) for value in values) and values[0] < values[1] < values[2]):
        failures.append(f"fitted < as it is < random for {shape}")

METHODS = ("sparsegpt", "wanda", "magnitude")
print("\n| of the numbers | " + " | ".join(METHODS) + " | MB | seconds of SparseGPT |\n|---|---|---|---|---|---|")
for pattern in filter(wanted, args.sparse.split(",")):
    rows = [measured(f"{pattern},score:{method}") for method in METHODS]
    values = [row["perplexity"] for row in rows]
    print(f"| {pattern} | " + " | ".join(f"{value:.2f}" for value in values) +
          f" | {rows[0]['bytes'] / 1e6:.1f} | {rows[0]['seconds']:.0f} |", flush=True)
    if not (all(math.isfinite(value) for value in values) and values[0] < values[1] < values[2]):
        failures.append(f"SparseGPT < Wanda < magnitude for {pattern}")

if wanted("search"):
    searched = measured(pipeline=f"llm-search-shape{{bytes={args.search} tokens={args.tokens}}}")
    # A third of the heads, and as many channels as make the same bytes, from every layer.
    heads, channels = measured("heads:0.34"), measured(f"ffn:{args.ffn}")
    missing = heads["bytes"] - searched["bytes"]
    share = args.ffn * missing / (whole["bytes"] - channels["bytes"])
    uniform = measured("heads:0.34", f"ffn:{share:.4f}")
    print("\n| shape | perplexity | MB |\n|---|---|---|")
    for title, row in (("searched", searched), (f"uniform, {100 * share:.0f} % of channels", uniform)):
        print(f"| {title} | {row['perplexity']:.2f} | {row['bytes'] / 1e6:.1f} |", flush=True)
    if not searched["perplexity"] < uniform["perplexity"]:
        failures.append("searched < uniform")
for failure in failures:
    print(f"not so: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
