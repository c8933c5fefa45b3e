#!/usr/bin/env python3
"""Checks that docs/failures.md names tests that there are."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent
page = (root.parent / "docs" / "failures.md").read_text()
sources = "\n".join(path.read_text() for path in root.rglob("*Test.cpp"))
known = set(re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", sources))
suites = {suite for suite, _ in known}
problems = []
for row in page.splitlines():
    if not row.startswith("| ") or row.startswith("| kind"):
        continue
    names = re.findall(r"`([A-Za-z0-9]+(?:\.[A-Za-z0-9*]+)?|[\w-]+\.test)`", row.split("|")[2])
    found = 0
    for name in names:
        suite, _, case = name.partition(".")
        if name.endswith(".test"):
            ok = (root / "tools" / name).exists()
        elif suite in suites or suite[0].isupper():
            ok = suite in suites and (case in ("", "*") or (suite, case) in known)
        else:
            continue  # a value of a parameter
        found += ok
        if not ok:
            problems.append(f"expects a test {name}, but there is none: {row}")
    if not found:
        problems.append(f"expects a test, but got none: {row}")
print("\n".join(problems) or "every kind of failure has a test")
sys.exit(bool(problems))
