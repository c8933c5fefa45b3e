#!/usr/bin/env python3
"""Compares a compiled model on a Vulkan device with the answers that Hugging Face transformers gave.

usage: reference.py PACKAGE REFERENCE.json --bin FOLDER --source GGUF [--prompts 0,1,...] [--tokens 32] [--logits] [--needs FILE]

For each prompt: the same token ids; all 32 greedy tokens, up to the first that differs where the reference's margin
(top 1 - top 2) is at most 0.1; and with --logits the ten top logits at the last position within 0.05 and the arg-max of
every position where the CPU reference's own margin exceeds 0.1. Exit code 0 only if all hold; 77 where something
needed is absent.
"""
import argparse
import json
import os
import subprocess
import sys

MARGIN = 0.1


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command[:2])} failed: {result.stderr.strip()}")
    if result.stderr.strip():
        print(result.stderr.strip())
        if "Validation" in result.stderr or "VUID" in result.stderr:
            sys.exit("the validation layers had something to say")
    return json.loads(result.stdout)


def check(condition, message, failures):
    if not condition:
        failures.append(message)


def greedy(arguments, case, name, failures):
    got = run([arguments.bin + "/llm-run", arguments.package, "-p", case["prompt"], "-n", str(arguments.tokens),
               "--ignore-eos", "--json"])
    check(got["prompt_tokens"] in (case["ids"], len(case["ids"])),
          f"{name}: expects {len(case['ids'])} prompt tokens, but got {got['prompt_tokens']}", failures)
    ids = run([arguments.bin + "/llm-tokenize", arguments.source, "--text", case["prompt"], "--begin",
               "--json"])["tokens"]
    check(ids == case["ids"], f"{name}: expects prompt ids {case['ids']}, but got {ids}", failures)
    wanted = list(zip(case["greedy32"], case["greedy32_margin"]))[:arguments.tokens]
    for place, (right, margin) in enumerate(wanted):
        token = got["tokens"][place] if place < len(got["tokens"]) else None
        if token == right:
            continue
        check(margin <= MARGIN, f"{name}: expects token {place} to be {right} (margin {margin}), but got {token}",
              failures)
        return place
    return len(wanted)


def logits(arguments, case, name, failures):
    ids = ",".join(map(str, case["ids"]))
    got = run([arguments.bin + "/llm-eval", arguments.package, "--tokens", ids, "--logits=last", "--json"])
    truth = run([arguments.bin + "/llm-eval", arguments.source, "--tokens", ids, "--logits=all", "--json"])
    last = got["logits"][-1]
    worst = max(abs(last[i] - right) for i, right in zip(case["top10_ids"], case["top10_logits"]))
    check(worst <= 0.05, f"{name}: expects the top logits within 0.05, but got {worst:.4f}", failures)
    for place, right in enumerate(case["per_position_argmax"]):
        first, second = sorted(truth["logits"][place])[-1:-3:-1]
        check(got["argmax"][place] == right or first - second <= MARGIN,
              f"{name}: expects arg-max {right} at position {place}, but got {got['argmax'][place]}", failures)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("reference")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--prompts")
    parser.add_argument("--source", required=True)
    parser.add_argument("--logits", action="store_true")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--needs", help="a file without which the test is skipped")
    arguments = parser.parse_args()
    for needed in (arguments.package, arguments.reference, arguments.source, arguments.needs):
        if needed and not os.path.exists(needed):
            print(f"skipped: {needed} is not there")
            return 77
    with open(arguments.reference) as file:
        cases = json.load(file)
    chosen = range(len(cases)) if arguments.prompts is None else map(int, arguments.prompts.split(","))
    failures = []
    for index in chosen:
        name = f"prompt {index}"
        equal = greedy(arguments, cases[index], name, failures)
        line = f"{name}: {equal} of {arguments.tokens} tokens compared"
        if arguments.logits:
            line += f", logits within {logits(arguments, cases[index], name, failures):.4f}"
        print(line, flush=True)
    print("\n".join(failures))
    return 1 if failures else 0


sys.exit(main())
