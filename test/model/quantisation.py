#!/usr/bin/env python3
"""Quantises a model in several ways and measures what each costs: the table of docs/quantisation.md.

usage: quantisation.py MODEL --calibrate TEXT --text OTHER-TEXT [--bin DIR] [--out DIR] [--bits 4,3] [--windows 16] [--window 512]

Methods are calibrated on one text and evaluated on another, against the model as it was imported. Checked are: the
weight error of mse is at most that of rtn; gptq's output error is below rtn's for 95 % of the weights; and the KL
divergences of gptq and awq are below rtn's by a paired 95 % interval over the windows. Exits 1 where one is not so.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

METHODS = ("rtn", "mse", "awq", "gptq")
# Two-sided 95 % points of Student's t, by degrees of freedom.
STUDENT = {3: 3.182, 7: 2.365, 11: 2.201, 15: 2.131, 23: 2.069, 31: 2.040}

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--calibrate", required=True)
parser.add_argument("--text", required=True)
parser.add_argument("--bin", default="build/bin")
parser.add_argument("--out", default="build/quantisation")
parser.add_argument("--bits", default="4,3")
parser.add_argument("--group", type=int, default=64)
parser.add_argument("--tokens", type=int, default=16384)
parser.add_argument("--windows", type=int, default=16)
parser.add_argument("--window", type=int, default=512, help="tokens of a window")
parser.add_argument("--methods", default=",".join(METHODS))
args = parser.parse_args()
out = pathlib.Path(args.out)
out.mkdir(parents=True, exist_ok=True)
failures = []


def check(what, good):
    if not good:
        failures.append(what)
        print(f"not so: {what}", file=sys.stderr)


def run(tool, *arguments):
    done = subprocess.run([f"{args.bin}/{tool}", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def quantised(bits, method):
    """Compiles (once) and evaluates (once); what is there already is taken as it is."""
    name = f"w{bits}-{method}"
    result = out / f"{name}.json"
    if result.exists():
        return json.loads(result.read_text())
    report = out / f"{name}.report.json"
    options = f"bits={bits} group={args.group} method={method} tokens={args.tokens} report={report}"
    start = time.time()
    run("llm-compile", args.model, "-o", f"{out}/{name}.mlir", "--emit=llm", f"--calibrate={args.calibrate}",
        f"--calibration-cache={out}/cache",
        f"--pass-pipeline=builtin.module(llm-quantize-weights{{{options}}},llm-default-pipeline)")
    seconds = time.time() - start
    values = json.loads(run("llm-eval", f"{out}/{name}.mlir", "--text", args.text, "--skip-chars", "2000",
                            "--windows", str(args.windows), "--window", str(args.window), "--against", args.model,
                            "--json"))
    values["seconds"] = seconds
    values["weights"] = json.loads(report.read_text())
    result.write_text(json.dumps(values))
    return values


def below(a, b):
    """Mean of a - b over windows, and half its 95 % interval."""
    d = [x - y for x, y in zip(a, b)]
    n, mean = len(d), sum(d) / len(d)
    deviation = (sum((x - mean) ** 2 for x in d) / (n - 1)) ** 0.5
    return mean, STUDENT.get(n - 1, 2.2) * deviation / n ** 0.5


print("| scheme | method | KL (nats) | KL beside rtn | top-1 | perplexity | MB | seconds |")
print("|---|---|---|---|---|---|---|---|")
for bits in args.bits.split(","):
    rows = {method: quantised(bits, method) for method in args.methods.split(",")}
    rtn = rows["rtn"]
    for method, row in rows.items():
        mean, half = below(row["kl_windows"], rtn["kl_windows"])
        beside = "" if method == "rtn" else f"{row['kl'] / rtn['kl']:.2f} ({mean:+.3f} ± {half:.3f})"
        print(f"| w{bits} g{args.group} | {method} | {row['kl']:.4f} | {beside} | {100 * row['top1_agreement']:.1f} % "
              f"| {row['perplexity']:.2f} | {row['bytes'] / 1e6:.1f} | {row['seconds']:.0f} |")
        if method in ("gptq", "awq"):
            check(f"w{bits}: KL of {method} is below rtn's", mean + half < 0)
    if "mse" in rows:
        worse = [w["weight"] for w in rows["mse"]["weights"] if w["weight_error"] > w["rtn_weight_error"]]
        check(f"w{bits}: weight error of mse is at most rtn's ({worse})", not worse)
    if "gptq" in rows:
        weights = rows["gptq"]["weights"]
        better = sum(w["output_error"] < w["rtn_output_error"] for w in weights)
        print(f"\nw{bits}: output error of gptq below rtn's for {better} of {len(weights)} weights.\n")
        check(f"w{bits}: output error of gptq is below rtn's for 95 %", better >= 0.95 * len(weights))
        if bits == "4":
            check("w4: KL of gptq is at most 0.7 of rtn's", rows["gptq"]["kl"] <= 0.7 * rtn["kl"])
sys.exit(1 if failures else 0)
