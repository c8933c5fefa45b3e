#!/usr/bin/env python3
"""Prefill and decode of quantised weights and activations beside f16, on lavapipe.

usage: quantised.py [--model X.gguf] [--rounds 3] [--prompt 512]

Every package is of one model: its weights of layers as f16, or as a preset has them (rounded to the best grid, which
costs no calibration and is as fast as any). Figures are processor seconds of llm-bench, which other work on the machine
hardly touches, and the bytes that a decoded token reads. With the stock driver, and with that of Mesa 25 where it can be
had (../shared/peers/newer_mesa.sh).
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

import decode

VARIANTS = ("f16", "as-is", "w8a16", "w8a8", "w4a16", "w4a8", "w3a16")
# The default pipeline without llm-fuse-dequantize, so that dequantised weights stay as they are.
PLAIN = ("builtin.module(func.func(llm-clean-up,llm-fuse-residual,llm-fuse-qkv,llm-fuse-gated-mlp,llm-fuse-norm,"
         "llm-clean-up),llm-remove-dead-state)")


def halves(ir):
    """IR in which products within layers read f16."""
    result = []
    for line in ir.splitlines():
        product = re.match(r"(      +)(%\w+) = llm\.linear (%\w+), (%\w+)(.*?) : (tensor<[^,]*>), "
                           r"tensor<(\d+x\d+)x(.*?)> -> (.*)", line)
        if product:
            indent, name, x, weight, rest, kind, shape, element, result_type = product.groups()
            half = f"%h{name[1:]}"
            result.append(f"{indent}{half} = llm.dequantize {weight} : tensor<{shape}x{element}> -> tensor<{shape}xf16>")
            line = f"{indent}{name} = llm.linear {x}, {half}{rest} : {kind}, tensor<{shape}xf16> -> {result_type}"
        result.append(line)
    return "\n".join(result) + "\n"


def compiled(model, variant, folder):
    package = f"{folder}/{variant}.sprig"
    arguments = ["--target=lavapipe", "--no-fallback", "--context=1024", "--self-test=0", "-o", package]
    source = model
    if variant == "f16":
        source = f"{folder}/f16.mlir"
        subprocess.run([str(decode.BIN / "llm-import"), model, "-o", source], check=True)
        pathlib.Path(source).write_text(halves(pathlib.Path(source).read_text()))
        arguments.append(f"--pass-pipeline={PLAIN}")
    else:
        arguments.append(f"--preset={variant}")
    subprocess.run([str(decode.BIN / "llm-compile"), source, *arguments], check=True)
    return package, decode.inspected(package)["bytes_per_token"]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default=str(decode.ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--prompt", type=int, default=512)
parser.add_argument("--variants", default=",".join(VARIANTS))
given = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    packages = {variant: compiled(given.model, variant, folder) for variant in given.variants.split(",")}
    for driver, env in decode.drivers().items():
        print(f"\n| {driver} | MB a token | decode, ms | beside f16 | prefill of {given.prompt}, ms a token | beside f16 |")
        print("|---|---|---|---|---|---|")
        plain = None
        for variant, (package, token_bytes) in packages.items():
            _, _, out = decode.timed([str(decode.BIN / "llm-bench"), package, "--json", f"--runs={given.rounds}",
                                      "--depth=0", "--decode-tokens=16", f"--prompt-tokens={given.prompt}",
                                      "--no-startup", "--profile=1"], env)
            figures = json.loads(out)
            times = (next(iter(figures["decode_processor_ms"].values())),
                     figures["prefill_processor_ms"][str(given.prompt)] / given.prompt)
            plain = plain or times
            print(f"| `{variant}` | {token_bytes / 1e6:.1f} | {times[0]:.1f} | {plain[0] / times[0]:.2f} | {times[1]:.2f} "
                  f"| {plain[1] / times[1]:.2f} |", flush=True)
