#!/usr/bin/env python3
"""Package, cache and decode of pruned models beside the whole one: what goes must be gone, and be felt.

usage: pruned.py [--model X.gguf] [--prune ffn:0.2,heads:0.34,…] [--rounds 16] [--tokens 8]

Every package is of one model, for lavapipe. What a shape takes from the package is compared with the bytes of the
parameters that its IR lacks (within 1 %), the cache with the layers and heads that are left, and the time of a decoded
token with the share of the bytes read that went (at least 0.8 of it). Times are of the processor, the whole model and
the pruned one in turn, A-B-B-A, in one process, and the median of the rounds counts. What goes is chosen at random: it does not
change how fast the rest is.
Exits 1 where something is not so.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import decode
import libsprig
import modelir

# Bytes of a number, by the names that types have in the IR.
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "Q4_0": 18 / 32, "Q4_1": 20 / 32, "Q5_0": 22 / 32, "Q5_1": 24 / 32,
         "Q8_0": 34 / 32, "Q2_K": 84 / 256, "Q3_K": 110 / 256, "Q4_K": 144 / 256, "Q5_K": 176 / 256, "Q6_K": 210 / 256}
PRODUCT = re.compile(r"llm\.(?:linear|gated_linear|embedding) .*? : (.*) -> ")
WEIGHT = re.compile(r"tensor<(\d+)x(\d+)x!?(\w+?)(?:_t\d*)?(?:, #\w+)?>")


def parameter_bytes(ir):
    """Bytes of the weights that the products of a model read; a table that an embedding shares counts once. Each rotation
    has a table, 256 pairs of f32 for each frequency, and so has each layer of which other pairs are left."""
    pairs = [int(count) for count in re.findall(r"llm\.weight .*tensor<(\d+)xf64>", ir)]
    pairs += [int(dims or width) // 2 for _, dims, width in set(re.findall(
        r"llm\.rope .*? base\((.*?)\)(?: dims\((\d+)\))?.*tensor<\?x\d+x(\d+)xf32>", ir))]
    total, table = sum(pairs) * 256 * 8, None
    for line in ir.splitlines():
        product = PRODUCT.search(line)
        weights = WEIGHT.findall(product.group(1) if product else "")
        if "llm.embedding" in line:
            table = weights
        elif weights == table:
            continue
        total += sum(int(rows) * int(columns) * BYTES[kind] for rows, columns, kind in weights)
    return total


def compiled(model, folder, spec):
    name = re.sub(r"\W+", "-", spec or "whole")
    package, ir = f"{folder}/{name}.sprig", f"{folder}/{name}.mlir"
    how = [f"--prune={spec},score:random,recover:no"] if spec else []
    run = lambda *arguments: subprocess.run([str(decode.BIN / "llm-compile"), model, *how, *arguments], check=True)
    run("--target=lavapipe", "--no-fallback", "--context=1024", "--self-test=0", "--tree=0", "-o", package)
    run("--emit=llm", "-o", ir)
    figures = decode.inspected(package)
    text = pathlib.Path(ir).read_text()
    pathlib.Path(ir).with_suffix(".safetensors").unlink(missing_ok=True)
    target = figures["targets"][0]
    return {"package": package, "bytes": figures["package_bytes"], "read": target["bytes_per_token"],
            "kv": target["memory"]["kv_bytes"] / 1024, "kv planned": modelir.cache_bytes(text, tokens=1),
            "parameters": parameter_bytes(text)}


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default=str(decode.ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
parser.add_argument("--prune", default="ffn:0.2,heads:0.34,kv-heads:0.34,layers:4,head-dim:0.5,width:0.12")
parser.add_argument("--rounds", type=int, default=16)
parser.add_argument("--tokens", type=int, default=8)
given = parser.parse_args()
library = decode.ROOT / "build/lib/libsprig.so"
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


with tempfile.TemporaryDirectory() as folder:
    whole = compiled(given.model, folder, "")
    first = libsprig.Session(library, whole["package"])
    prompt = first.tokenize(decode.PROMPT)

    def seconds(session):
        session.forget()
        return session.generate(prompt, given.tokens + 1)["decode_processor_s"] / given.tokens

    print("| what goes | package, MB | parameters gone, MB | of which gone from the package | cache a token, bytes "
          "| read a token | time a token |\n|---|---|---|---|---|---|---|")
    print(f"| nothing | {whole['bytes'] / 1e6:.2f} | | | {whole['kv']:.0f} | {whole['read'] / 1e6:.2f} MB "
          f"| {1e3 * min(seconds(first) for _ in range(2)):.2f} ms |", flush=True)
    for spec in given.prune.split(","):
        pruned = compiled(given.model, folder, spec)
        second = libsprig.Session(library, pruned["package"])
        times = []
        for _ in range(given.rounds):
            turn = [seconds(session) for session in (first, second, second, first)]
            times.append((turn[1] + turn[2]) / (turn[0] + turn[3]))
        second.close()
        gone = whole["parameters"] - pruned["parameters"]
        share = (whole["bytes"] - pruned["bytes"]) / gone
        read, time = 1 - pruned["read"] / whole["read"], 1 - statistics.median(times)
        print(f"| {spec} | {pruned['bytes'] / 1e6:.2f} | {gone / 1e6:.2f} | {100 * share:.2f} % | {pruned['kv']:.0f} "
              f"| {-100 * read:+.1f} % | {-100 * time:+.1f} % |", flush=True)
        check(abs(share - 1) <= 0.01, f"{spec}: the package lost {100 * share:.2f} % of the parameters' bytes")
        check(pruned["kv"] == pruned["kv planned"], f"{spec}: a token's cache is {pruned['kv']:.0f} bytes, its heads "
                                                    f"{pruned['kv planned']}")
        check(time >= 0.8 * read, f"{spec}: {100 * time:.1f} % faster for {100 * read:.1f} % of the bytes")
    first.close()
for failure in failures:
    print(f"not so: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
