"""Checks that each line of each mlir example of a page stands in a test, where llm-opt parses it.

usage: check-examples.py PAGE.md FOLDER   prints each example that no test holds; exits 1 when there is one
"""
import pathlib
import re
import sys


def plain(text):
    """Without comments, and with one space wherever there is white space."""
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
tests = [plain(path.read_text()) for path in sorted(folder.glob("**/*.mlir"))]
examples = re.findall(r"```mlir\n(.*?)```", page.read_text(), re.S)
missing = 0
for example in examples:
    # A statement goes on over lines that are indented further than its first.
    for statement in re.split(r"\n(?=\S)", example.strip("\n")):
        if not any(plain(statement) in test for test in tests):
            missing += 1
            print(f"{page.name}: expects a test with this example, but got none:\n{statement}\n")
if not examples:
    print(f"{page.name}: expects examples, but got none")
sys.exit(1 if missing or not examples else 0)
