#!/usr/bin/env python3
"""Whether speculation gives the tokens of plain decoding: prompts × drafts × sampling on the default model.

usage: speculation.py MODEL.sprig SHARED [--prompts 200] [--tokens 32] [--drafts ngram,self,heads,mixed]
                      [--draft-model SMALL.sprig] [--tree-rule comb] [--results FILE.json] [--alternate] [--report]

The package has the drafts `self` and `heads` (the latter with random weights) where they are asked for:
  random_heads.py heads.safetensors
  llm-compile model.gguf --draft=skip:8 --draft=heads:heads.safetensors -o model.sprig
`mixed` is all three in one tree. SHARED is the folder of texts and references. Prompts are the reference prompts and
passages of both texts; every other one is a passage that is begun a second time, so that there is something to copy.
Greedy, and at temperature 0.8 with top-p 0.95 (--alternate: one of the two, and one of the drafts, a prompt). All run in
one process, whose session keeps the prompt. With --results, what was compared stays known, and a run that was
interrupted goes on; --report runs nothing and prints what is known. Ends with 0 only if all are equal; 77 where
something is not there.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import libsprig

MIXED = "ngram,self,heads"
SAMPLINGS = {"greedy": {}, "sampled": {"temperature": 0.8, "top_p": 0.95, "seed": 11}}


def make_prompts(shared, count):
    references = [entry["prompt"] for entry in json.loads((shared / "reference/smollm2.json").read_text())]
    texts = [(shared / "text" / name).read_text().split() for name in ("persuasion.txt", "northanger-abbey.txt")]
    prompts = []
    for i in range(count):
        if i % 2 == 0 and i // 2 < len(references):
            prompts.append(references[i // 2])
            continue
        words = texts[i // 2 % 2]
        at = (1000 + 397 * i) % (len(words) - 60)
        passage = " ".join(words[at:at + 30])
        # The second copy ends in its middle.
        prompts.append(passage + "\n\n" + " ".join(words[at:at + 12]) if i % 2 else passage)
    return prompts


def compare(session, args, prompt, wanted, sampling):
    """What each draft in `wanted` gives, and whether it is what plain decoding gives."""
    session.sample(**SAMPLINGS[sampling])
    session.speculate("off")
    plain = session.generate(prompt, args.tokens)["tokens"]
    for draft in wanted:
        session.speculate(MIXED if draft == "mixed" else draft, args.draft_model, tree_rule=args.tree_rule)
        got = session.generate(prompt, args.tokens)
        equal = got["tokens"] == plain
        if not equal:
            print(f"{sampling}, {draft}: expects {plain}, but got {got['tokens']}", file=sys.stderr)
        yield draft, {"equal": equal, **{key: got[key] for key in ("steps", "trees", "drafted", "accepted")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/lib/libsprig.so")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--drafts", default="ngram,self,heads,mixed")
    parser.add_argument("--draft-model")
    parser.add_argument("--tree-rule", default="comb")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--alternate", action="store_true")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    for needed in (pathlib.Path(args.package), args.library, args.shared / "reference/smollm2.json",
                   args.shared / "text"):
        if not needed.exists():
            print(f"skipped: {needed} is not there")
            sys.exit(77)
    done = json.loads(args.results.read_text()) if args.results and args.results.exists() else {}
    drafts = args.drafts.split(",")
    session = None if args.report else libsprig.Session(args.library, args.package)
    for i, text in enumerate([] if args.report else make_prompts(args.shared, args.prompts)):
        prompt = None
        for s, sampling in enumerate(SAMPLINGS):
            if args.alternate and s != i // 4 % 2:
                continue
            wanted = [draft for d, draft in enumerate(drafts) if f"{i}/{sampling}/{draft}" not in done
                      and not (args.alternate and d != i % len(drafts))]
            if not wanted:
                continue
            prompt = prompt or session.tokenize(text)
            for draft, row in compare(session, args, prompt, wanted, sampling):
                done[f"{i}/{sampling}/{draft}"] = row
        if prompt and args.results:
            aside = args.results.with_suffix(".part")
            aside.write_text(json.dumps(done))
            aside.replace(args.results)
    if session:
        session.close()
    for sampling in SAMPLINGS:
        for draft in drafts:
            rows = [row for key, row in done.items() if key.endswith(f"/{sampling}/{draft}")]
            if rows:
                total = lambda name: sum(row[name] for row in rows)
                print(f"{draft}, {sampling}: {total('equal')} of {len(rows)} equal; {total('trees')} trees in "
                      f"{total('steps')} steps, {total('accepted')} of {total('drafted')} guesses right")
    sys.exit(0 if all(row["equal"] for row in done.values()) else 1)


if __name__ == "__main__":
    main()
