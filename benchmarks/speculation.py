#!/usr/bin/env python3
"""Times speculation beside plain decoding: ten prompts whose answers copy, ten of open prose (benchmarks/prompts).

usage: speculation.py --measure [--package X.sprig] [--tokens 64] [--prompts copy,prose] [--modes ngram,self,auto]
       speculation.py                       prints the table of results/speculation.json

The modes self, heads and mixed need a package with these drafts (llm-compile --draft); what stands behind a colon is
the rule by which their trees grow, or `chain`. For each prompt and mode four runs A-B-B-A in one session: plain, mode,
mode, plain, each of which learns anew what a step costs. A run's figure is its time from the first token to the last;
the pair's is the ratio of the means. Where the driver computes on the processor, the same in processor seconds, which
other work on the machine hardly touches. The load when it began is kept with each. What was measured is kept and not
measured again: delete results/speculation.json to start anew. Every run's tokens must be those of plain decoding, or
this ends with 1.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import libsprig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "speculation.json"
RULES = ("chain", "comb", "clover", "eagle")
MODES = ["ngram", "ngram:chain", *(f"{draft}:{rule}" for draft in ("self", "heads") for rule in RULES), "mixed", "auto"]


def speculate(session, mode):
    drafts, _, rule = mode.partition(":")
    drafts = "ngram,self,heads" if drafts == "mixed" else drafts
    session.speculate(drafts, chain=rule == "chain", tree_rule=rule if rule in RULES[1:] else "comb")


def measure(args, session, prompt, mode):
    load = os.getloadavg()[0]
    runs = []
    for which in ("off", mode, mode, "off"):
        speculate(session, which)
        runs.append(session.generate(prompt, args.tokens))
    if any(one["tokens"] != runs[0]["tokens"] for one in runs):
        sys.exit(f"error: {mode} gave other tokens than plain decoding")
    ratio = lambda key: (runs[0][key] + runs[3][key]) / (runs[1][key] + runs[2][key])
    return {"wall": ratio("decode_s"), "processor": ratio("decode_processor_s"),
            "plain_processor_ms": 500 * (runs[0]["decode_processor_s"] + runs[3]["decode_processor_s"])
            / (args.tokens - 1), "tokens_per_step": args.tokens / runs[1]["steps"],
            **{key: runs[1][key] for key in ("drafted", "accepted", "trees")}, "load": load}


def table(results):
    print("| prompts | draft | guesses right | tokens a step | × plain, wall | × plain, processor | worst, processor | load |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in ("copy", "prose"):
        for mode in MODES:
            rows = [row for key, row in results.items() if key.startswith(f"{kind}/{mode}/")]
            if not rows:
                continue
            right = f"{sum(row['accepted'] for row in rows)} of {sum(row['drafted'] for row in rows)}"
            median = lambda key: statistics.median(row[key] for row in rows)
            loads = [row["load"] for row in rows]
            print(f"| {kind}, {len(rows)} | {mode} | {right} | {median('tokens_per_step'):.2f} | {median('wall'):.2f} | "
                  f"{median('processor'):.2f} | {min(row['processor'] for row in rows):.2f} | "
                  f"{min(loads):.0f}–{max(loads):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--package", default=str(ROOT / "build/model.sprig"))
    parser.add_argument("--library", default=str(ROOT / "build/lib/libsprig.so"))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompts", default="copy,prose")
    parser.add_argument("--modes", default="ngram,ngram:chain,auto")
    args = parser.parse_args()
    for mode in args.modes.split(","):
        if mode not in MODES:
            sys.exit(f"error: --modes expects some of {', '.join(MODES)}, but got '{mode}'")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if args.measure:
        RESULTS.parent.mkdir(exist_ok=True)
        session = libsprig.Session(args.library, args.package)
        for mode in args.modes.split(","):  # pipelines are made here
            speculate(session, mode)
            session.generate(session.tokenize("one two three one two three one two"), 24)
        # By prompt first, so that a machine that drifts drifts for all modes.
        for kind in args.prompts.split(","):
            for entry in json.loads((HERE / "prompts" / f"{kind}.json").read_text()):
                prompt = session.tokenize(entry["prompt"])
                for mode in args.modes.split(","):
                    key = f"{kind}/{mode}/{entry['name']}"
                    if key in results:
                        continue
                    results[key] = measure(args, session, prompt, mode)
                    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
                    print(key, results[key], file=sys.stderr, flush=True)
        session.close()
    table(results)


if __name__ == "__main__":
    main()
