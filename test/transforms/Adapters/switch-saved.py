#!/usr/bin/env python3
"""A text that was saved with one adapter goes on with another, or none, as a prompt of the same tokens would.

usage: switch-saved.py PACKAGE SESSION JSON     JSON: of the run that saved it after the prompt 1,70,80, with adapter two
"""
import json
import subprocess
import sys

package, session, first = sys.argv[1:]
text = [1, 70, 80] + json.load(open(first))["tokens"]


def tokens(*options):
    command = ["llm-run", package, "-n", "6", "--ignore-eos", "--json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["tokens"]


prompt = "--tokens=" + ",".join(map(str, text))
answers = {}
for adapter in "one", "two", "":
    answers[adapter] = tokens(prompt, "--adapter=" + adapter)
    loaded = tokens("--load-session=" + session, "--adapter=" + adapter)
    assert loaded == answers[adapter], (adapter, loaded, answers[adapter])
assert answers["one"] != answers["two"] != answers[""], answers
kept = tokens("--load-session=" + session)
assert kept == answers["two"], (kept, answers)
