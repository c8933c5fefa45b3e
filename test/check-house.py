#!/usr/bin/env python3
"""Checks the rules of the house that a compiler does not: who may include whom, the top level, banned calls.

usage: check-house.py      prints each breach as FILE:LINE: what is wrong; exits 1 when there is one
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP = {"CMakeLists.txt", "dialects", "lib", "transforms", "codegen", "runtime", "test", "tools", "README.md",
       "docs", "cmake", "benchmarks", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"}
MLIR = ("mlir/", "llvm/", "llvm-c/")

# folder -> the project's folders (and MLIR) that its files may include, besides itself.
DIALECTS = ("dialects/",)
TEXT = ("runtime/Text/", "runtime/Support/")
MAY = {
    "dialects/LLM/": MLIR,
    "dialects/Plan/": MLIR,
    "lib/Quant/": (),
    "lib/Weights/": MLIR + DIALECTS + ("lib/Quant/",),
    "lib/Calibration/": MLIR + DIALECTS,
    "lib/Import/": MLIR + DIALECTS + ("lib/Quant/", "lib/Weights/", "lib/Calibration/") + TEXT,
    "lib/Reference/": MLIR + DIALECTS + ("lib/Quant/", "lib/Weights/", "lib/Calibration/"),
    "transforms/": MLIR + DIALECTS + ("lib/Quant/", "lib/Weights/", "lib/Calibration/", "codegen/Target/") + TEXT,
    "codegen/": MLIR + DIALECTS + ("lib/Quant/", "lib/Weights/", "runtime/Format/") + TEXT,
    "runtime/": (),
}
RUNTIME_TOOLS = {"llm-run.cpp", "llm-bench.cpp", "llm-inspect.cpp"}
PROJECT = ("dialects/", "lib/", "transforms/", "codegen/", "runtime/", "tools/", "test/") + MLIR

BANNED = [
    (re.compile(r"\bstd::regex\b"), "std::regex recurses; use PCRE2"),
    (re.compile(r"\b(abort|exit)\s*\("), "a library neither aborts nor exits"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "finish it or file an issue"),
]

breaches = []


def rules_of(path):
    for folder, allowed in sorted(MAY.items(), key=lambda item: -len(item[0])):
        if path.startswith(folder):
            return folder, allowed
    if path.startswith("tools/") and pathlib.Path(path).name in RUNTIME_TOOLS:
        return "tools/", ("runtime/",)
    return None, None


files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
for top in {f.split("/")[0] for f in files if f}:
    if top not in TOP and not top.startswith("."):
        breaches.append(f"{top}:1: not a name of the top level")
for path in files:
    if not re.search(r"\.(cpp|h|c|td|py|sh|md|txt|cmake|fbs)$", path) or path == "test/check-house.py":
        continue
    text = (ROOT / path).read_text(errors="replace")
    folder, allowed = rules_of(path)
    code = path.endswith((".cpp", ".h", ".c"))
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}:{number}"
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if include and folder is not None and include[1].startswith(PROJECT):
            if not include[1].startswith((folder,) + tuple(allowed)):
                breaches.append(f"{where}: {folder} may not include {include[1]}")
        library = code and path.startswith(("lib/", "runtime/", "codegen/", "transforms/", "dialects/"))
        if library and not path.startswith("runtime/examples/") and not line.lstrip().startswith(("//", "*")):
            for pattern, why in BANNED:
                if pattern.search(line):
                    breaches.append(f"{where}: {why}")
        if re.search(r"(^|[\s\"'(=])/(root|home|work)/", line):
            breaches.append(f"{where}: a path of one machine")
    if code and text.count("\n") > 600:
        breaches.append(f"{path}:1: {text.count(chr(10))} lines: split it")

# Tests that docs/failures.md names are there.
tests = {"suites": set()}
for path in files:
    if path.startswith("test/") and path.endswith(".cpp"):
        for suite, test in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", (ROOT / path).read_text(errors="replace")):
            tests["suites"].add(suite)
            tests.setdefault(suite, set()).add(test)
for number, line in enumerate((ROOT / "docs/failures.md").read_text().split("\n"), 1):
    for name in re.findall(r"`([^`]+)`", line.split("|")[2]) if line.count("|") == 3 else []:
        suite, _, test = name.partition(".")
        known = True
        if name.endswith(".test"):
            known = (ROOT / "test/tools" / name).exists()
        elif re.fullmatch(r"[A-Z]\w*(\.(\w+|\*))?", name):
            known = suite in tests["suites"] and test in {"", "*"} | tests[suite]
        if not known:
            breaches.append(f"docs/failures.md:{number}: there is no test {name}")

print("\n".join(sorted(breaches)) if breaches else f"house rules hold in {len(files) - 1} files")
sys.exit(1 if breaches else 0)
