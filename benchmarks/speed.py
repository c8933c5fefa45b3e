#!/usr/bin/env python3
"""Every figure of speed, start-up, memory and size of the default model, beside what is asked of it.

usage: speed.py --measure [--rounds 3] [--native] [--no-peers] [--only stock|mesa25]   measures, then prints
       speed.py                                                       prints the table of results/speed.json

Measures this build on the stock lavapipe and (where it can be had) that of Mesa 25: decode, prompts of every length from
1 to 64 and of 512, decode at depths of 128 and 4,096, start-up, memory, the package and the time to compile it; beside
it, in the same run, llama.cpp (decode.py, and ../shared/peers/bench_llamacpp.py for prompts) and a kernel that only
reads. --native builds llama.cpp for this processor first, which takes a quarter of an hour. Rates are by processor
seconds where both sides of a ratio compute on the processor, since other work on the machine hardly touches those;
the wall clock is used for start-up, and for prompts beside a peer that gives nothing else.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import decode

RESULTS = decode.HERE / "results" / "speed.json"
PEER = decode.ROOT.parent / "shared" / "peers" / "bench_llamacpp.py"
WIDTHS = range(1, 65)


def resident(command, env):
    """Most memory that a command had resident, in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, **env})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} ended with {status}")
    return usage.ru_maxrss * 1024


def compile_model(model, context, output):
    wall, processor, _ = decode.timed([str(decode.BIN / "llm-compile"), model, "--target=lavapipe", "--no-fallback",
                                       f"--context={context}", "-o", output], {})
    return wall, processor


def bench(package, env, rounds):
    prompts = ",".join(map(str, [*WIDTHS, 512]))
    _, _, out = decode.timed([str(decode.BIN / "llm-bench"), package, "--json", f"--runs={rounds}", "--depth=128,4096",
                              "--decode-tokens=16", f"--prompt-tokens={prompts}", "--profile=1"], env)
    return json.loads(out)


def measure(arguments):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    model = arguments.model
    with tempfile.TemporaryDirectory() as folder:
        long, usual = folder + "/long.sprig", folder + "/usual.sprig"
        compile_model(model, 4608, long)
        wall, processor = compile_model(model, 2048, usual)
        tiny = folder + "/tiny.sprig"
        subprocess.run([str(decode.BIN / "sprig-tiny-package"), tiny], check=True)
        for driver, env in decode.drivers().items():
            if arguments.only and (arguments.only == "stock") != (not env):
                continue
            print(f"{driver}: llm-bench", file=sys.stderr, flush=True)
            figures = results[driver] = bench(long, env, arguments.rounds)
            figures["compile_s"], figures["compile_processor_s"] = wall, processor
            figures["usual_package_bytes"] = os.path.getsize(usual)
            figures["model_bytes"] = os.path.getsize(model)
            run = [str(decode.BIN / "llm-run"), usual, "-p", decode.PROMPT, "--ignore-eos", "-n", "8"]
            print(f"{driver}: memory", file=sys.stderr, flush=True)
            figures["resident_bytes"] = resident(run, env)
            figures["empty_bytes"] = resident([str(decode.BIN / "llm-inspect"), tiny, "--pipelines"], env)
            inspected = subprocess.run([str(decode.BIN / "llm-inspect"), usual, "--json"], capture_output=True,
                                       text=True, check=True).stdout
            figures["kv_bytes"] = sum(map(int, decode.re.findall(r'"kv_bytes": (\d+)', inspected)[:1]))
            figures["load"] = os.getloadavg()[0]
            if not arguments.no_peers and PEER.exists():
                command = [sys.executable, str(PEER), model, "--venv", os.path.expanduser(arguments.peers), "--items",
                           "5", "--prefill"]
                command += ["--vulkan-prefill"] if env else []
                command += ["--native"] if arguments.native else []
                print(f"{driver}: llama.cpp, minutes of pipelines", file=sys.stderr, flush=True)
                done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
                if done.returncode == 0:
                    figures["peer"] = json.loads(done.stdout)
                else:
                    print(done.stderr[-500:], file=sys.stderr)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if not arguments.no_peers:
        decode.measure(arguments)


def medians(driver):
    """Processor seconds of what decode.py measured."""
    runs = json.loads(decode.RESULTS.read_text()) if decode.RESULTS.exists() else []
    found = {}
    for run in runs:
        if run["driver"] == driver and run["seconds"]:
            found.setdefault(run["what"], []).append(run["seconds"][1])
    return {what: decode.statistics.median(list(values)) for what, values in found.items()}


def ratio(above, below, digits=2):
    return f"{above / below:.{digits}f}" if above and below else "–"


def rows(driver, figures):
    """(what, what is asked, what was measured)"""
    seconds, peer, newer = medians(driver), figures.get("peer", {}), driver != "stock lavapipe"
    prompts = {int(m): ms for m, ms in figures["prefill_processor_ms"].items()}
    t = {m: prompts[m] for m in WIDTHS}
    decoded = {int(depth): ms for depth, ms in figures["decode_processor_ms"].items()}
    mine = seconds.get("sprig decode")
    yield ("decode, tokens a processor second", "", f"{1000 / decoded[128]:.1f}")
    yield ("decode ÷ llama.cpp Vulkan", "≥ 15" if newer else "≥ 12", ratio(seconds.get("llama.cpp Vulkan decode"), mine, 1))
    if newer:
        yield ("decode ÷ llama.cpp on this processor", "≥ 0.28",
               ratio(medians("stock lavapipe").get("llama.cpp native decode"), mine))
    yield ("decode ÷ a token's weights only read", "≥ 0.3" if newer else "≥ 0.75", ratio(seconds.get("read"), mine))
    wall = {int(m): rate for m, rate in figures["prefill_at"].items()}
    if newer:
        yield ("prefill of 64 ÷ llama.cpp Vulkan, wall clock", "≥ 5", ratio(wall[64], peer.get("vulkan_prefill_tokens_per_s"), 1))
        yield ("prefill of 512 ÷ llama.cpp on this processor, wall clock", "≥ 0.3",
               ratio(wall[512], peer.get("native_cpu_prefill")))
    yield ("prefill of 512, tokens a processor second", "", f"{512e3 / prompts[512]:.0f}")
    yield ("prefill of 512 ÷ decode", "≥ 4", f"{512 * decoded[128] / prompts[512]:.1f}")
    for name, asked, pairs in (("t(m+1) ÷ t(m)", "≤ 1.5", [(m + 1, m) for m in range(1, 64)]),
                               ("t(2m) ÷ t(m)", "≤ 2.2", [(2 * m, m) for m in range(1, 33)]),
                               ("t(m−1) ÷ t(m)", "≤ 1.1", [(m - 1, m) for m in range(2, 65)])):
        worst = max(pairs, key=lambda pair: t[pair[0]] / t[pair[1]])
        yield (f"greatest {name}, every m to 64", asked, f"{t[worst[0]] / t[worst[1]]:.2f} at m = {worst[1]}")
    yield ("t(8) ÷ t(1)", "≤ 3.5", ratio(t[8], t[1]))
    yield ("rate at depth 4,096 ÷ at 128", "≥ 0.4", ratio(decoded[128], decoded[4096]))
    start = figures["startup"]
    yield ("first token, Mesa's cache off, s", "≤ 4", f"{start['cold_s']:.2f}")
    yield ("first token, caches warm, s", "≤ 0.6", f"{start['warm_s']:.2f}")
    most = 1.05 * (figures["memory"]["weight_bytes"] + figures["kv_bytes"]) + 40e6
    over = figures["resident_bytes"] - figures["empty_bytes"]
    yield ("resident over an empty program, context 2,048, MB", f"≤ {most / 1e6:.0f}", f"{over / 1e6:.0f}")
    yield ("package ÷ GGUF", "≤ 1.03", ratio(figures["usual_package_bytes"], figures["model_bytes"], 3))
    yield ("compile with all widths, s (of processor)", "≤ 15", f"{figures['compile_s']:.1f} ({figures['compile_processor_s']:.1f})")


def table():
    results = json.loads(RESULTS.read_text())
    for driver, figures in results.items():
        print(f"{driver} ({figures['driver']}), load {figures['load']:.0f}, {figures['runs']} runs:\n")
        print("| figure | asked | measured |\n|---|---|---|")
        for row in rows(driver, figures):
            print("| " + " | ".join(row) + " |")
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure before the table is printed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--native", action="store_true", help="llama.cpp built for this processor, too")
    parser.add_argument("--no-peers", action="store_true", help="this build alone")
    parser.add_argument("--only", choices=["stock", "mesa25"])
    parser.add_argument("--model", default=str(decode.ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("--peers", default="~/.cache/sprig-peers", help="virtual environment of bench_llamacpp.py")
    given = parser.parse_args()
    if given.measure:
        measure(given)
    table()
