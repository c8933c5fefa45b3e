#!/usr/bin/env python3
"""Times the default model beside llama.cpp on lavapipe, the stock driver and (where it can be had) Mesa 25.

usage: decode.py --measure [--rounds 3] [--model X.gguf] [--peers DIR]   measures, adds to results/decode.json
       decode.py                                                          prints the table of results/decode.json

Everything here runs on the processor, so beside the wall clock each figure is given in processor seconds, which other
work on the machine hardly touches. Each round measures every system once, one after the other; the table has medians.
A figure of a run is the difference of a long and a short one, so that loading cancels out; a difference that is not
positive (a disturbed run) is thrown away and counted. Stopped and started again with the same build, it does the rounds
that are missing; runs of other builds are dropped.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

import native_peer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "decode.json"
BIN = ROOT / "build" / "bin"
PROMPT = "The capital of France is"
LONG = " ".join(f"Item {i} of the list costs {i * 7 % 100} coins." for i in range(5)) + " " + PROMPT
WEIGHT_BYTES = 96_645_120  # what a token reads of SmolLM2-135M Q4_1


def timed(command, env):
    """Wall and processor seconds of a command, and its output."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def inspected(package):
    """What llm-inspect says of a package."""
    return json.loads(timed([str(BIN / "llm-inspect"), package, "--json"], {})[2])


def difference(short, long, count):
    """Seconds for each of `count` things, wall and processor; None where the run was disturbed."""
    wall, processor = (long[i] - short[i] for i in (0, 1))
    return [wall / count, processor / count] if wall > 0 and processor > 0 else None


def sprig(package, env, count, prompt=None):
    command = [str(BIN / "llm-run"), package, "-p", prompt or PROMPT, "--ignore-eos", "-n", str(count)]
    return timed(command, env)


def llama(python, model, env, count, prompt=None):
    command = [python, "-m", "cyllama", "gen", "-m", model, "-p", prompt or PROMPT, "-n", str(count),
               "--temperature", "0", "-c", "1024"]
    return timed(command, env)


def native(python, model):
    code = ("import sys,time,resource,llama_cpp\n"
            "m=llama_cpp.Llama(sys.argv[1],n_ctx=1024,n_threads=2,verbose=False)\n"
            "m.eval(m.tokenize(b'The capital of France is'))\n"
            "u=lambda:sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\n"
            "m.eval([5]);t,c=time.perf_counter(),u()\n"
            "for i in range(64): m.eval([5+i])\n"
            "print((time.perf_counter()-t)/64,(u()-c)/64)\n")
    done = subprocess.run([python, "-c", code, model], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()[-2:]]


def read_rate(env):
    """Seconds to read the weights of a token with nothing but loads: the faster of buffers and texel views."""
    best = None
    for texels in (0, 1):
        spec = f"{{bytes = {WEIGHT_BYTES // 16 * 16} : i64, texels = {texels} : i64}}"
        _, _, out = timed([str(BIN / "sprig-test-kernel"), "read", spec, "--time", "--dispatches=3"], env)
        wall, processor = (float(x) / 1e3 for x in re.search(r"([\d.]+) ms, ([\d.]+) ms of processor", out).groups())
        if best is None or processor < best[1]:
            best = [wall, processor]
    return best


def drivers():
    found = {"stock lavapipe": {}}
    script = ROOT.parent / "shared" / "peers" / "newer_mesa.sh"
    if script.exists():
        done = subprocess.run(["sh", str(script)], capture_output=True, text=True)
        values = dict(re.findall(r"(\w+)='?([^' ;]+)'?", done.stdout))
        if "LAVAPIPE25" in values:
            found["lavapipe of Mesa 25"] = {"LD_LIBRARY_PATH": values["MESA25_LIBS"],
                                            "VK_ICD_FILENAMES": values["LAVAPIPE25"]}
        else:
            print("Mesa 25 cannot be had; only the stock driver is measured", file=sys.stderr)
    return found


def build():
    """What tells this build and its model's figures from others'."""
    digest = hashlib.sha256()
    for name in ("llm-compile", "llm-run", "llm-bench"):
        digest.update((BIN / name).read_bytes())
    return digest.hexdigest()[:16]


def measure(arguments):
    peers = pathlib.Path(os.path.expanduser(arguments.peers))
    python, native_python = str(peers / "bin" / "python"), str(native_peer.python_of(peers))
    has_native = not getattr(arguments, "no_peers", False) and native_peer.works(pathlib.Path(native_python), arguments.model)
    package = str(ROOT / "build" / "bench.sprig")
    subprocess.run([str(BIN / "llm-compile"), arguments.model, "--target=lavapipe", "-o", package], check=True)
    runs = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    mine = build()
    runs = [run for run in runs if run.get("build") == mine]
    for number in range(arguments.rounds):
        for driver, env in drivers().items():
            if getattr(arguments, "only", None) and (arguments.only == "stock") != (not env):
                continue
            plan = {
                "sprig decode": lambda: difference(sprig(package, env, 4), sprig(package, env, 36), 32),
                "sprig prefill": lambda: difference(sprig(package, env, 1), sprig(package, env, 1, LONG), 63),
                "read": lambda: read_rate(env),
            }
            if os.path.exists(python) and not getattr(arguments, "no_peers", False):
                vulkan = {**env, "GGML_VK_VISIBLE_DEVICES": "0"}
                plan["llama.cpp Vulkan decode"] = lambda: difference(llama(python, arguments.model, vulkan, 2),
                                                                     llama(python, arguments.model, vulkan, 5), 3)
            if has_native and not env:
                plan["llama.cpp native decode"] = lambda: native(native_python, arguments.model)
            for what, run in plan.items():
                before = sum((run["driver"], run["what"]) == (driver, what) for run in runs)
                if before > number:
                    continue
                if before == 0 and "Vulkan" in what:  # its pipelines, which take minutes, are in Mesa's cache from here on
                    llama(python, arguments.model, vulkan, 1)
                seconds = run()
                print(f"{driver}: {what}: {seconds}", file=sys.stderr, flush=True)
                runs.append({"driver": driver, "what": what, "seconds": seconds, "load": os.getloadavg()[0],
                             "build": mine})
                RESULTS.write_text(json.dumps(runs, indent=1) + "\n")


def table():
    runs = json.loads(RESULTS.read_text())
    print("| driver | what | runs (thrown away) | a second, by the wall clock | a processor second |\n|---|---|---|---|---|")
    for driver, what in dict.fromkeys((run["driver"], run["what"]) for run in runs):
        mine = [run["seconds"] for run in runs if (run["driver"], run["what"]) == (driver, what)]
        good = [seconds for seconds in mine if seconds]
        if not good:
            continue
        rates = [1 / statistics.median(seconds[i] for seconds in good) for i in (0, 1)]
        print(f"| {driver} | {what} | {len(mine)} ({len(mine) - len(good)}) | {rates[0]:.2f} | {rates[1]:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure before the table is printed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default=str(ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("--peers", default="~/.cache/sprig-peers", help="virtual environment of bench_llamacpp.py")
    given = parser.parse_args()
    if given.measure:
        measure(given)
    table()
