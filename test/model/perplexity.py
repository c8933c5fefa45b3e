#!/usr/bin/env python3
"""Compares a compiled model's perplexity on the device with that of Hugging Face transformers, window by window.

usage: perplexity.py PACKAGE SHARED --bin FOLDER      exit code 77 where something needed is absent
"""
import json
import os
import subprocess
import sys

package, shared, tools = sys.argv[1], sys.argv[2], sys.argv[4]
text, reference = shared + "/text/persuasion.txt", shared + "/reference/perplexity.json"
for needed in (package, text, reference):
    if not os.path.exists(needed):
        print(f"skipped: {needed} is not there")
        sys.exit(77)
with open(reference) as file:
    expected = json.load(file)["smollm2"]["window_nll"]
result = subprocess.run([tools + "/llm-eval", package, "--text", text, "--skip-chars", "2000", "--chars", "38000",
                         "--window", "512", "--windows", str(len(expected)), "--json"], capture_output=True, text=True)
if result.returncode:
    sys.exit(result.stderr)
got = json.loads(result.stdout)["nll_windows"]
for window, (right, value) in enumerate(zip(expected, got, strict=True)):
    print(f"window {window}: {value:.6f} nats, transformers {right:.6f}")
if any(abs(right - value) > 0.01 for right, value in zip(expected, got)):
    sys.exit("expects every window within 0.01 nats")
