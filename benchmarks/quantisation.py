#!/usr/bin/env python3
"""What each preset costs: perplexity, KL divergence, agreement and bytes, as a table and a chart (docs/quantisation.md).

usage: quantisation.py --calibrate TEXT --text OTHER-TEXT [--bin DIR] [--out DIR] [--windows 16] [--cells w4a16:8,…]
                       [--packages] [--chart FILE.svg] NAME=MODEL[:WINDOW]...

Every preset of llm-compile is combined with caches of 16, 8 and 4 bits, calibrated on one text, and evaluated by the
reference evaluator on another against the model as it was imported. MB are those of the weights and of the caches of 2,048
tokens. With --packages the package of each preset, for every target and with trees, is weighed against the bits of its
weights.

Work is done in parts, each of which leaves a file in OUT: the weights of a preset (which all caches share), a cell of the
table, a package, and the logits of the imported model (4 bytes times windows, tokens and vocabulary). What is there already
is taken as it is, so a run that was stopped goes on where it was. With --cells only those are made that are named, and
only they are in the table.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time

import modelir

PRESETS = ("as-is", "w8a16", "w8a8", "w4a16", "w4a8", "w3a16")
CACHES = (16, 8, 4)
COLOURS = dict(zip(PRESETS, ("#444444", "#1f77b4", "#17a0a0", "#2ca02c", "#d08000", "#c03030")))

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("models", nargs="+", metavar="NAME=MODEL[:WINDOW]", help="windows of 512 tokens, or as many as it says")
parser.add_argument("--calibrate", required=True)
parser.add_argument("--text", required=True)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--out", default="build/presets")
parser.add_argument("--windows", type=int, default=16)
parser.add_argument("--tokens", type=int, default=16384, help="of the calibration text")
parser.add_argument("--cells", help="PRESET:BITS of caches, with commas (all)")
parser.add_argument("--packages", action="store_true", help="sizes of packages, too")
parser.add_argument("--chart", help="SVG file of KL divergence against bytes")
args = parser.parse_args()
out = pathlib.Path(args.out)
out.mkdir(parents=True, exist_ok=True)
cells = [(preset, caches) for preset in PRESETS for caches in CACHES]
if args.cells:
    named = [tuple(cell.split(":")) for cell in args.cells.split(",")]
    cells = [cell for cell in cells if (cell[0], str(cell[1])) in named]
    if len(cells) != len(named):
        sys.exit(f"--cells expects PRESET:BITS of {', '.join(PRESETS)} and {CACHES}, but got '{args.cells}'")


def run(tool, *arguments):
    """Its standard output; how long it took is told, since runs are long."""
    start = time.time()
    done = subprocess.run([f"{args.bin}/{tool}", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} {' '.join(map(str, arguments))}\n{done.stderr}")
    print(f"{tool}: {time.time() - start:.0f} s", file=sys.stderr, flush=True)
    return done.stdout


def passes_of(preset):
    """The passes of a preset with a calibration text, without the default pipeline behind them."""
    for line in run("llm-compile", "--list-presets").splitlines():
        found = re.match(r"(\S+)  builtin\.module\((.*?),?llm-default-pipeline\)", line)
        if found and found[1] == preset:
            return found[2].replace("method=mse", f"method=gptq tokens={args.tokens}")
    sys.exit(f"no preset {preset}")


def weights(name, model, preset):
    """The model with the weights (and activations) of a preset, before any fusion."""
    ir = out / f"{name}-{preset}.mlir"
    if ir.exists():
        return ir
    if passes := passes_of(preset):
        run("llm-compile", model, "-o", ir, "--emit=llm", "--calibrate", args.calibrate, "--calibration-cache",
            out / f"{name}-cache", f"--pass-pipeline=builtin.module({passes})")
    else:
        run("llm-import", model, "-o", ir)
    return ir


def measured(name, model, window, preset, caches):
    result = out / f"{name}-{preset}-kv{caches}.json"
    if result.exists():
        return json.loads(result.read_text())
    ir = out / f"{name}-{preset}-kv{caches}.mlir"
    kv = f"llm-quantize-kv{{bits={caches}}}," if caches < 16 else ""
    run("llm-compile", weights(name, model, preset), "-o", ir, "--emit=llm",
        f"--pass-pipeline=builtin.module({kv}llm-default-pipeline)")
    text = ["--text", args.text, "--skip-chars", 2000, "--windows", args.windows, "--window", window]
    values = json.loads(run("llm-eval", ir, *text, "--against", model, "--against-cache", out / f"{name}-logits", "--json"))
    values["cache_bytes"] = modelir.cache_bytes(ir.read_text(), tokens=2048)
    result.write_text(json.dumps(values))
    return values


def package_bytes(name, model, preset):
    """Of a preset, for every target, with the fallback and with trees."""
    result = out / f"{name}-{preset}-package.json"
    if not result.exists():
        package = out / f"{name}-{preset}.sprig"
        run("llm-compile", weights(name, model, preset), "-o", package, "--self-test=0")
        result.write_text(json.dumps({"bytes": package.stat().st_size}))
        package.unlink()
    return json.loads(result.read_text())["bytes"]


def chart(rows):
    """KL divergence, on a logarithmic scale, against megabytes: one panel a model."""
    width, height, left, top, panel = 380, 320, 52, 30, 430
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(panel * len(rows) + 20, 800)}" height="{height + 90}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for index, (name, points) in enumerate(rows.items()):
        points = [p for p in points if p["kl"] > 1e-6] # the model itself is no distance away
        if not points:
            continue
        low = math.floor(math.log10(min(p["kl"] for p in points)))
        high = max(low + 1, math.ceil(math.log10(max(p["kl"] for p in points))))
        widest = max(p["mb"] for p in points) * 1.05
        narrowest = min(p["mb"] for p in points) * 0.95
        x0 = panel * index + left
        x = lambda mb: x0 + (mb - narrowest) / (widest - narrowest) * (width - 30)
        y = lambda kl: top + (high - math.log10(kl)) / (high - low) * height
        parts.append(f'<text x="{x0}" y="18" font-size="13">{name}: KL divergence, nats</text>')
        for power in range(low, high + 1):
            at = y(10 ** power)
            parts.append(f'<line x1="{x0}" x2="{x0 + width - 30}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{x0 - 6}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
        for step in range(5):
            mb = narrowest + (widest - narrowest) * step / 4
            parts.append(f'<text x="{x(mb):.1f}" y="{top + height + 16}" text-anchor="middle">{mb:.0f}</text>')
        for p in points:
            px, py = x(p["mb"]), y(p["kl"])
            # Integer activations lie on or beside their float twins: outlines around them.
            size, style = 4.5, f'fill="{COLOURS[p["preset"]]}"'
            if p["preset"].endswith("a8"):
                size, style = 7, f'fill="none" stroke-width="1.5" stroke="{COLOURS[p["preset"]]}"'
            if p["kv"] == 16:
                parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{size}" {style}/>')
            elif p["kv"] == 8:
                parts.append(f'<rect x="{px - size:.1f}" y="{py - size:.1f}" width="{2 * size}" height="{2 * size}" {style}/>')
            else:
                parts.append(f'<path d="M{px:.1f} {py - 1.2 * size:.1f}l{1.2 * size:.1f} {2 * size}h{-2.4 * size:.1f}z" {style}/>')
        parts.append(f'<text x="{x0 + width / 2 - 15}" y="{top + height + 34}" text-anchor="middle">'
                     'MB: weights, and caches of 2,048 tokens</text>')
    for i, preset in enumerate(PRESETS):
        parts.append(f'<circle cx="{left + i * 80}" cy="{height + 76}" r="4.5" fill="{COLOURS[preset]}"/>'
                     f'<text x="{left + i * 80 + 9}" y="{height + 80}">{preset}</text>')
    at = left + len(PRESETS) * 80
    parts.append(f'<text x="{at}" y="{height + 80}">caches: circle 16, square 8, triangle 4 bits</text></svg>')
    return "\n".join(parts) + "\n"


rows = {}
for spec in args.models:
    name, _, model = spec.partition("=")
    window = 512
    if found := re.match(r"(.*):(\d+)$", model):
        model, window = found[1], int(found[2])
    table = {cell: measured(name, model, window, *cell) for cell in cells}
    print(f"\n| {name} | KV cache | KL (nats) | top-1 | perplexity | | weights, MB | caches, MB |")
    print("|---|---|---|---|---|---|---|---|")
    plain = table.get(("as-is", 16))
    for (preset, caches), v in table.items():
        rows.setdefault(name, []).append({"preset": preset, "kv": caches, "kl": v["kl"],
                                          "mb": (v["bytes"] + v["cache_bytes"]) / 1e6})
        lost = "" if v is plain or not plain else f"{100 * (v['perplexity'] / plain['perplexity'] - 1):+.2f} %"
        print(f"| `{preset}` | {caches} | {v['kl']:.4f} | {100 * v['top1_agreement']:.1f} % | {v['perplexity']:.2f} "
              f"| {lost} | {v['bytes'] / 1e6:.1f} | {v['cache_bytes'] / 1e6:.1f} |", flush=True)
    if args.packages:
        print(f"\n| {name} | weights, MB | package, MB | |")
        print("|---|---|---|---|")
        for preset in dict.fromkeys(preset for preset, _ in cells):
            ideal = next(v["bytes"] for (which, _), v in table.items() if which == preset)
            whole = package_bytes(name, model, preset)
            print(f"| `{preset}` | {ideal / 1e6:.2f} | {whole / 1e6:.2f} | {100 * (whole / ideal - 1):+.2f} % |", flush=True)
if args.chart:
    pathlib.Path(args.chart).write_text(chart(rows))
