#!/usr/bin/env python3
"""Adds up JUnit files of ctest and lit; names what failed; prints `N passed, N failed, N skipped` last.

usage: summarise.py FILE.xml...      exits 1 when a test failed, a file is missing, or nothing ran
"""
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
broken = False
for path in sys.argv[1:]:
    try:
        cases = list(tree.parse(path).getroot().iter("testcase"))
    except (OSError, tree.ParseError) as error:
        print(f"cannot read the results in {path}: {error}")
        broken = True
        continue
    broken |= not cases
    for case in cases:
        name = f"{case.get('classname', '')} {case.get('name', '')}".strip()
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
            print(f"FAILED {name}")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or broken or not passed else 0)
