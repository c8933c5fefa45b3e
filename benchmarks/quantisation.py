#!/usr/bin/env python3
"""What each preset costs: perplexity, KL divergence, agreement and bytes, as a table and a chart (docs/quantisation.md).

usage: quantisation.py --calibrate TEXT --text OTHER-TEXT [--bin DIR] [--out DIR] [--windows 16] [--chart FILE.svg]
                       NAME=MODEL...

Every preset of llm-compile is combined with caches of 16, 8 and 4 bits, calibrated on one text, and evaluated by the
reference evaluator on another against the model as it was imported. What is there already is taken as it is, so a run
that was stopped goes on where it was. MB are those of the weights and of the caches of 2,048 tokens.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys

PRESETS = ("as-is", "w8a16", "w8a8", "w4a16", "w4a8", "w3a16")
CACHES = (16, 8, 4)
COLOURS = dict(zip(PRESETS, ("#444444", "#1f77b4", "#17a0a0", "#2ca02c", "#d08000", "#c03030")))

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
parser.add_argument("--calibrate", required=True)
parser.add_argument("--text", required=True)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--out", default="build/presets")
parser.add_argument("--windows", type=int, default=16)
parser.add_argument("--tokens", type=int, default=16384, help="of the calibration text")
parser.add_argument("--cache", help="folder of calibration statistics (OUT/NAME-cache)")
parser.add_argument("--chart", help="SVG file of KL divergence against bytes")
args = parser.parse_args()
out = pathlib.Path(args.out)
out.mkdir(parents=True, exist_ok=True)


def run(tool, *arguments):
    done = subprocess.run([f"{args.bin}/{tool}", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def pipeline(preset, caches):
    """The passes of a preset with a calibration text, as llm-compile --list-presets has them."""
    for line in run("llm-compile", "--list-presets").splitlines():
        name, _, rest = line.partition(" ")
        if name == preset:
            passes = rest.split()[0] if "{" not in rest else re.match(r"\s*(builtin\.module\(.*?-pipeline\))", rest)[1]
            passes = passes.replace("method=mse", f"method=gptq tokens={args.tokens}")
            kv = f"llm-quantize-kv{{bits={caches}}}," if caches < 16 else ""
            return passes.replace("llm-default-pipeline", kv + "llm-default-pipeline")
    sys.exit(f"no preset {preset}")


def measured(name, model, preset, caches):
    result = out / f"{name}-{preset}-kv{caches}.json"
    if result.exists():
        return json.loads(result.read_text())
    ir = out / f"{name}.mlir"
    run("llm-compile", model, "-o", ir, "--emit=llm", "--calibrate", args.calibrate, "--calibration-cache",
        args.cache or out / f"{name}-cache", f"--pass-pipeline={pipeline(preset, caches)}")
    text = ["--text", args.text, "--skip-chars", 2000, "--windows", args.windows]
    values = json.loads(run("llm-eval", ir, *text, "--against", model, "--json"))
    values["cache_bytes"] = cache_bytes(ir.read_text())
    result.write_text(json.dumps(values))
    return values


def cache_bytes(ir, tokens=2048):
    """Of keys and values of so many tokens, from the types of the caches; an f32 scale a token and head in 8 bits, a
    scale and a minimum in f16 for a group in 4."""
    aliases = dict(re.findall(r"^(!\w+) = (!llm\.kv<.*>)$", ir, re.M))
    total = 0
    for count, kind in re.findall(r"llm\.kv_cache @\w+ : (?:(\d+) x )?(!llm\.kv<.*>|!\w+)", ir):
        kind = aliases.get(kind, kind)
        heads, width = map(int, re.search(r"kv<(\d+)x(\d+)", kind).groups())
        bits = 16 * width
        group = re.search(r"u4, (\d+):", expand(kind, ir))
        if group:
            bits = 4 * width + width // int(group[1]) * 32
        elif "i8, *" in expand(kind, ir):
            bits = 8 * width + 32
        total += int(count or 1) * heads * 2 * bits * tokens // 8
    return total


def expand(kind, ir):
    """A type with the aliases in it spelt out."""
    for alias, meaning in re.findall(r"^(!\w+) = (!llm\.q<.*>)$", ir, re.M):
        kind = re.sub(re.escape(alias) + r"\b", meaning, kind)
    return kind


def chart(rows):
    """KL divergence, on a logarithmic scale, against megabytes: one panel a model."""
    width, height, left, top, panel = 380, 320, 52, 30, 430
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{panel * len(rows) + 20}" height="{height + 90}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for index, (name, points) in enumerate(rows.items()):
        points = [p for p in points if p["kl"] > 1e-6]
        low = math.floor(math.log10(min(p["kl"] for p in points)))
        high = math.ceil(math.log10(max(p["kl"] for p in points)))
        widest = max(p["mb"] for p in points) * 1.05
        narrowest = min(p["mb"] for p in points) * 0.95
        x0 = panel * index + left
        x = lambda mb: x0 + (mb - narrowest) / (widest - narrowest) * (width - 30)
        y = lambda kl: top + (high - math.log10(kl)) / (high - low) * height
        parts.append(f'<text x="{x0}" y="18" font-size="13">{name}</text>')
        for power in range(low, high + 1):
            at = y(10 ** power)
            parts.append(f'<line x1="{x0}" x2="{x0 + width - 30}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{x0 - 6}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
        for step in range(5):
            mb = narrowest + (widest - narrowest) * step / 4
            parts.append(f'<text x="{x(mb):.1f}" y="{top + height + 16}" text-anchor="middle">{mb:.0f}</text>')
        for p in points:
            colour, px, py = COLOURS[p["preset"]], x(p["mb"]), y(p["kl"])
            if p["kv"] == 16:
                parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4.5" fill="{colour}"/>')
            elif p["kv"] == 8:
                parts.append(f'<rect x="{px - 4:.1f}" y="{py - 4:.1f}" width="8" height="8" fill="{colour}"/>')
            else:
                parts.append(f'<path d="M{px:.1f} {py - 5:.1f}l5 9h-10z" fill="{colour}"/>')
        parts.append(f'<text x="{x0 + width / 2 - 15}" y="{top + height + 34}" text-anchor="middle">'
                     'MB: weights, and caches of 2,048 tokens</text>')
        parts.append(f'<text x="{x0}" y="{top - 4}" font-size="10" fill="#666666">KL divergence, nats</text>')
    for i, preset in enumerate(PRESETS):
        parts.append(f'<circle cx="{left + i * 80}" cy="{height + 76}" r="4.5" fill="{COLOURS[preset]}"/>'
                     f'<text x="{left + i * 80 + 9}" y="{height + 80}">{preset}</text>')
    at = left + len(PRESETS) * 80
    parts.append(f'<text x="{at}" y="{height + 80}">caches: circle 16, square 8, triangle 4 bits</text></svg>')
    return "\n".join(parts) + "\n"


rows = {}
for spec in args.models:
    name, _, model = spec.partition("=")
    print(f"\n| {name} | KV cache | KL (nats) | top-1 | perplexity | | weights, MB | caches, MB |")
    print("|---|---|---|---|---|---|---|---|")
    plain = measured(name, model, "as-is", 16)
    for preset in PRESETS:
        for caches in CACHES:
            v = measured(name, model, preset, caches)
            rows.setdefault(name, []).append({"preset": preset, "kv": caches, "kl": v["kl"],
                                              "mb": (v["bytes"] + v["cache_bytes"]) / 1e6})
            lost = "" if v is plain else f"{100 * (v['perplexity'] / plain['perplexity'] - 1):+.2f} %"
            print(f"| `{preset}` | {caches} | {v['kl']:.4f} | {100 * v['top1_agreement']:.1f} % | {v['perplexity']:.2f} "
                  f"| {lost} | {v['bytes'] / 1e6:.1f} | {v['cache_bytes'] / 1e6:.1f} |", flush=True)
if args.chart:
    pathlib.Path(args.chart).write_text(chart(rows))
