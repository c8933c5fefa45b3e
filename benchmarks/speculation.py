#!/usr/bin/env python3
"""Times speculation beside plain decoding: ten prompts whose answers copy, ten of open prose (benchmarks/prompts).

usage: speculation.py --measure [--package X.sprig] [--tokens 64] [--prompts copy,prose]
                      [--modes ngram,chain,self,heads,mixed,auto]
       speculation.py                       prints the table of results/speculation.json

The modes self, heads and mixed need a package with these drafts (llm-compile --draft). For each prompt and mode four
runs A-B-B-A: plain, mode, mode, plain. A run's figure is its tokens a second from the first token on; the pair's is the
ratio of the means. Where the driver computes on the processor, the same in processor seconds, which other work on the
machine hardly touches. What was measured is kept and not measured again: delete results/speculation.json to start anew.
Every run's tokens must be those of plain decoding, or this ends with 1.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "speculation.json"
MODES = {"ngram": ["--speculate=ngram"], "chain": ["--speculate=ngram", "--chain"], "self": ["--speculate=self"],
         "heads": ["--speculate=heads"], "mixed": ["--speculate=ngram,self,heads"], "auto": ["--speculate=auto"]}


def run(args, prompt, extra):
    command = [f"{args.bin}/llm-run", args.package, "-p", prompt, "-n", str(args.tokens), "--ignore-eos", "--json"]
    return json.loads(subprocess.run(command + extra, capture_output=True, text=True, check=True).stdout)


def measure(args, prompt, mode):
    runs = [run(args, prompt, extra) for extra in ([], MODES[mode], MODES[mode], [])]
    if any(one["tokens"] != runs[0]["tokens"] for one in runs):
        sys.exit(f"error: {mode} gave other tokens than plain decoding after: {prompt!r}")
    seconds = {key: [one["timing"][key] for one in runs] for key in ("decode_s", "decode_processor_s")}
    counts = runs[1]["speculation"]
    ratio = lambda key: (seconds[key][0] + seconds[key][3]) / (seconds[key][1] + seconds[key][2])
    return {"wall": ratio("decode_s"), "processor": ratio("decode_processor_s"),
            "tokens_per_step": counts["tokens_per_step"], "drafted": counts["drafted"],
            "accepted": counts["accepted"], "trees": counts["trees"]}


def table(results):
    print("| prompts | draft | guesses right | tokens a step | × plain, wall | × plain, processor | worst, processor |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("copy", "prose"):
        for mode in MODES:
            rows = [row for key, row in results.items() if key.startswith(f"{kind}/{mode}/")]
            if not rows:
                continue
            drafted = sum(row["drafted"] for row in rows)
            right = f"{sum(row['accepted'] for row in rows)} of {drafted}"
            median = lambda key: statistics.median(row[key] for row in rows)
            print(f"| {kind}, {len(rows)} | {mode} | {right} | {median('tokens_per_step'):.2f} | {median('wall'):.2f} | "
                  f"{median('processor'):.2f} | {min(row['processor'] for row in rows):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--package", default=str(ROOT / "build/model.sprig"))
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompts", default="copy,prose")
    parser.add_argument("--modes", default="ngram,chain,auto")
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if args.measure:
        RESULTS.parent.mkdir(exist_ok=True)
        # By prompt first, so that a machine that drifts drifts for all modes.
        for kind in args.prompts.split(","):
            for entry in json.loads((HERE / "prompts" / f"{kind}.json").read_text()):
                for mode in args.modes.split(","):
                    key = f"{kind}/{mode}/{entry['name']}"
                    if key in results:
                        continue
                    results[key] = measure(args, entry["prompt"], mode)
                    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
                    print(key, results[key], file=sys.stderr, flush=True)
    table(results)


if __name__ == "__main__":
    main()
