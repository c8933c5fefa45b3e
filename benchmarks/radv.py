#!/usr/bin/env python3
"""Prints what AMD's compiler (RADV, which needs no card for it) makes of the kernels of a package, as a table.

usage: radv.py [--model X.gguf] [--icd FILE] [--families gfx1100,navi21]

Compiles the model for the target rdna3. Columns: vector registers / spilled ones / subgroups a SIMD / bytes of code.
Ends with 1 where a kernel spills or has more than 16 KB of code.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"
COLUMNS = ("VGPRs", "Spilled VGPRs", "Subgroups per SIMD", "Code size")


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
given = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    package = folder + "/model.sprig"
    subprocess.run([str(BIN / "llm-compile"), given.model, "--target=rdna3", "-o", package], check=True)
    families = given.families.split(",")
    tables = [statistics(package, family, given.icd) for family in families]
print("| kernel | " + " | ".join(families) + " |\n|" + "---|" * (1 + len(families)))
bad = False
for name in tables[0]:
    cells = []
    for table in tables:
        registers, spilled, subgroups, code = table[name]
        bad |= spilled > 0 or code > 16384
        cells.append(f"{registers} / {spilled} / {subgroups} / {code:,}")
    print(f"| {name.rsplit('_', 1)[0]} | " + " | ".join(cells) + " |")
sys.exit(bad)
