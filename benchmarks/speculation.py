#!/usr/bin/env python3
"""Times speculation beside plain decoding: ten prompts whose answers copy, ten of open prose (benchmarks/prompts).

usage: speculation.py --measure [--package X.sprig] [--tokens 64] [--prompts copy,prose:3] [--modes ngram,self:eagle]
       speculation.py [--results FILE]      prints the table of what was measured

The modes self, heads and mixed need a package with these drafts (llm-compile --draft); what stands behind a colon is
the rule by which their trees grow, or `chain`. Of each prompt all modes are measured in one session, there and back
with plain decoding around them (P A B … P P … B A P), and each run learns anew what a step costs. A run's figure is its
time from the first token to the last; a mode's is the mean of the plain runs over that of its own two. Where the driver
computes on the processor, the same in processor seconds, which other work on the machine hardly touches. The load when
it began is kept with each. What was measured is kept prompt by prompt, so that a run that was stopped goes on where it
was; --again measures the modes anew. Every run's tokens must be those of plain decoding, or this ends with 1.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

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


def measure(args, session, prompt, modes):
    """The results of some modes after one prompt."""
    load = os.getloadavg()[0]
    speculate(session, "off")
    session.generate(prompt, 2)  # reads the prompt, which stays in the cache
    runs = {}
    for which in ("off", *modes, "off", "off", *reversed(modes), "off"):
        speculate(session, which)
        runs.setdefault(which, []).append(session.generate(prompt, args.tokens))
    plain = runs["off"]
    mean = lambda some, key: statistics.fmean(one[key] for one in some)
    results = {}
    for mode in modes:
        if any(one["tokens"] != plain[0]["tokens"] for one in (*plain, *runs[mode])):
            sys.exit(f"error: {mode} gave other tokens than plain decoding")
        own = runs[mode]
        results[mode] = {
            "wall": mean(plain, "decode_s") / mean(own, "decode_s"),
            "processor": mean(plain, "decode_processor_s") / mean(own, "decode_processor_s"),
            "plain_processor_ms": 1000 * mean(plain, "decode_processor_s") / (args.tokens - 1),
            "tokens_per_step": args.tokens / own[0]["steps"],
            **{key: own[0][key] for key in ("drafted", "accepted", "trees")}, "tokens": args.tokens, "load": load}
    return results


def prompts_of(wanted):
    """`copy,prose:3`: all prompts that copy, and three of prose."""
    for one in wanted.split(","):
        kind, _, count = one.partition(":")
        for entry in json.loads((HERE / "prompts" / f"{kind}.json").read_text())[:int(count) if count else None]:
            yield kind, entry


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
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--again", action="store_true",
                        help="forgets first what is known of these modes; without it a run that was stopped goes on")
    parser.add_argument("--prompts", default="copy,prose")
    parser.add_argument("--modes", default="ngram,ngram:chain,auto")
    args = parser.parse_args()
    for mode in args.modes.split(","):
        if mode not in MODES:
            sys.exit(f"error: --modes expects some of {', '.join(MODES)}, but got '{mode}'")
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    if args.measure:
        args.results.parent.mkdir(exist_ok=True)
        modes = args.modes.split(",")
        if args.again:
            results = {key: row for key, row in results.items() if key.split("/")[1] not in modes}
        session = libsprig.Session(args.library, args.package)
        for mode in modes:  # pipelines are made here
            speculate(session, mode)
            session.generate(session.tokenize("one two three one two three one two"), 24)
        for kind, entry in prompts_of(args.prompts):
            missing = [mode for mode in modes if f"{kind}/{mode}/{entry['name']}" not in results]
            if not missing:
                continue
            began = time.monotonic()
            for mode, row in measure(args, session, session.tokenize(entry["prompt"]), missing).items():
                results[f"{kind}/{mode}/{entry['name']}"] = row
            aside = args.results.with_suffix(".part")
            aside.write_text(json.dumps(results, indent=1) + "\n")
            aside.replace(args.results)
            print(f"{kind}, {entry['name']}: {len(missing)} modes in {time.monotonic() - began:.0f} s", file=sys.stderr,
                  flush=True)
        session.close()
    table(results)


if __name__ == "__main__":
    main()
