#!/usr/bin/env python3
"""Prints what AMD's compiler (RADV, which needs no card for it) makes of the kernels of a package, as a table.

usage: radv.py [--model X.gguf] [--icd FILE] [--families gfx1100,navi21] [--only linear] [-- ARGUMENTS OF llm-compile]

Compiles the model for the target rdna3 (with `-- --prune=2:4,w:4` its kernels are those of sparse weights). Columns: vector registers / spilled ones / subgroups a SIMD (what AMD calls
occupancy) / bytes of code / instructions for each byte of weights. The last is for products only: instructions of the
whole kernel over the bytes that a lane loads in one round of its loop, which is nearly all of the kernel and runs once a
round; so it is a little too high. For one token the units whose scales one load fetches are written out, and all of them are the
round. Ends with 1 where a kernel spills or has more than 16 KB of code.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"
COLUMNS = ("VGPRs", "Spilled VGPRs", "Subgroups per SIMD", "Code size", "Instructions")
PROFILE = ROOT / "codegen" / "Target" / "Profiles" / "rdna3.json"
# Bytes of a round: what a step of the codec covers (codegen/Kernels/Codecs*.cpp).
ROUND = {"q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "q8_0": 34, "q4_k": 144 / 4, "q5_k": 176 / 4, "q6_k": 210 / 4}
# Units of a span (lib/Quant/Layout.h).
SPAN = {"q4_0": 4, "q4_1": 2, "q5_0": 4, "q5_1": 2, "q8_0": 4}


def holds(condition, fact):
    if isinstance(condition, dict):
        return condition.get("min", fact) <= fact <= condition.get("max", fact)
    return fact in condition if isinstance(condition, list) else fact == condition


def bytes_of_unit(format):
    """Of 32 numbers, of a format of groups: u4s_g64, u4s_2of4_g64."""
    found = re.match(r"[ui](\d)([szm])(_[24]of[48])?_(?:g(\d+)|row)(_f32)?$", format)
    if not found:
        return None
    bits, kind, sparse, group, wide = found.groups()
    scales = (4 if wide else 2) * (2 if kind == "m" else 1) + (int(bits) / 8 if kind == "z" else 0)
    return (2 * int(bits) + 4 if sparse else 4 * int(bits)) + (scales * 32 / int(group) if group else 0)


def span_of_groups(format):
    """Units of a span, of a format of groups: spanOf in lib/Quant/Layout.cpp."""
    found = re.match(r"[ui]\d([szm])(_[24]of[48])?_(?:g(\d+)|row)(_f32)?$", format)
    if not found:
        return 1
    kind, sparse, group, wide = found.groups()
    share = int(group) // 32 if group else 0
    scales = (4 if wide else 2) * (2 if kind == "m" else 1)
    small = [4] if sparse else []
    small += [scales] if share == 1 and scales < 8 else []
    if small:
        return 4 if 2 in small else 2
    return 4 if share == 0 else 1 if share == 1 else min(4, share & -share)


def bytes_of_round(name):
    """Weights that a lane loads in a round of a product's kernel, or None."""
    found = re.match(r"linear(_gated)?_(\w+?)_(\d+)x(\d+)_t(\d+)_", name)
    per_round = found and (ROUND.get(found[2]) or bytes_of_unit(found[2]))
    if not per_round:
        return None
    facts = {"gated": int(bool(found[1])), "format": found[2].upper(), "n": int(found[3]), "k": int(found[4]),
             "tokens": int(found[5]), "integers": 0,
             "among": 8 if "_4of8" in found[2] else 4 if "_2of4" in found[2] else 0}
    rules = json.loads(PROFILE.read_text())["schedules"]["linear"]
    rule = next(rule for rule in rules if all(holds(c, facts[fact]) for fact, c in rule.get("when", {}).items()))
    span = SPAN.get(found[2], span_of_groups(found[2]))
    written_out = span if facts["tokens"] == 1 and rule.get("spans", 1) else 1
    return per_round * rule.get("rows", 2) * (1 + facts["gated"]) * written_out


def statistics(package, family, icd):
    done = subprocess.run([str(BIN / "llm-inspect"), package, "--stats", "--target=rdna3"], capture_output=True,
                          text=True, check=True, env={**os.environ, "RADV_FORCE_FAMILY": family, "VK_ICD_FILENAMES": icd})
    kernels = {}
    for name, text in re.findall(r"^\s*(\S+): (.*VGPRs.*)$", done.stdout, re.M):
        found = dict(re.findall(r"([A-Z][A-Za-z ]+?) (\d+)(?:;|$|\s)", text))
        kernels[name] = [int(found[column]) for column in COLUMNS]
    return kernels


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default=str(ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
parser.add_argument("--icd", default="/usr/share/vulkan/icd.d/radeon_icd.x86_64.json")
parser.add_argument("--families", default="gfx1100,navi21")
parser.add_argument("--only", default="", help="kernels whose name contains this")
parser.add_argument("arguments", nargs="*", help="for llm-compile, behind --")
given = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    package = folder + "/model.sprig"
    subprocess.run([str(BIN / "llm-compile"), given.model, "--target=rdna3", "-o", package, *given.arguments],
                   check=True)
    families = given.families.split(",")
    tables = [statistics(package, family, given.icd) for family in families]
print("| kernel | " + " | ".join(families) + " |\n|" + "---|" * (1 + len(families)))
bad = False
for name in (name for name in tables[0] if given.only in name):
    cells = []
    for table in tables:
        registers, spilled, subgroups, code, instructions = table[name]
        bad |= spilled > 0 or code > 16384
        share = bytes_of_round(name)
        cells.append(f"{registers} / {spilled} / {subgroups} / {code:,}" +
                     (f" / {instructions / share:.1f}" if share else ""))
    print(f"| {name.rsplit('_', 1)[0]} | " + " | ".join(cells) + " |")
sys.exit(bad)
