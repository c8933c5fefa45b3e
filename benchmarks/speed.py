#!/usr/bin/env python3
"""Every figure of speed, start-up, memory and size of the default model, beside what is asked of it.

usage: speed.py --measure [--rounds 3] [--prompt-rounds 15] [--native] [--no-peers] [--only stock|mesa25] [--again]   measures, then prints
       speed.py                                                       prints the table of results/speed.json

Every part is kept when it is done: stopped and started again with the same build, it goes on where it was (--again
starts over). Another build starts over by itself.

Measures this build on the stock lavapipe and (where it can be had) that of Mesa 25: decode, prompts of every length from
1 to 64 and of 512, decode at depths of 128 and 4,096, start-up, memory, the package and the time to compile it; beside
it, in the same run, llama.cpp (decode.py, and ../shared/peers/bench_llamacpp.py for prompts) and a kernel that only
reads. --native builds llama.cpp for this processor first where there is none that runs (native_peer.py), which takes a
quarter of an hour. Machines drift by a third within a minute, so lengths that are compared are measured one after the
other: rounds go through all lengths in turn, or through each length and its doubles, from both ends, and a ratio is the
median of the ratios within the rounds that have both. Rates are by processor seconds where both sides of a ratio
compute on the processor, since other work on the machine hardly touches those; the wall clock is used for start-up, and
for prompts beside a peer that gives nothing else.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import decode
import native_peer

RESULTS = decode.HERE / "results" / "speed.json"
PEER = decode.ROOT.parent / "shared" / "peers" / "bench_llamacpp.py"
WIDTHS = range(1, 65)
DOUBLES = [m << k for m in range(1, 33, 2) for k in range(7) if m << k <= 64]


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


def bench(package, env, rounds, prompts, depths="0", startup=False):
    """What llm-bench prints, for a part of what is asked."""
    command = [str(decode.BIN / "llm-bench"), package, "--json", f"--runs={rounds}", f"--depth={depths}",
               "--prompt-tokens=" + ",".join(map(str, prompts))]
    return json.loads(decode.timed(command + ([] if startup else ["--no-startup"]), env)[2])


class Sheet:
    """The results of this build, kept as they come, so that a run that was stopped goes on."""

    def __init__(self, again):
        self.all = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if again or self.all.get("build") != decode.build():
            self.all = {"build": decode.build(), "drivers": {}}

    def figures(self, driver):
        return self.all["drivers"].setdefault(driver, {"parts": [], "load": []})

    def part(self, driver, name, measure):
        """Figures that `measure` returns, unless they are there. Maps by length or depth are joined."""
        figures = self.figures(driver)
        if name in figures["parts"]:
            return
        print(f"{driver}: {name}", file=sys.stderr, flush=True)
        new = measure()
        if new is None:
            return
        for key, value in new.items():
            if isinstance(value, dict) and isinstance(figures.get(key), dict):
                figures[key].update(value)
            else:
                figures[key] = value
        figures["parts"].append(name)
        figures["load"].append(round(os.getloadavg()[0], 1))
        RESULTS.write_text(json.dumps(self.all, indent=1) + "\n")


def peer_figures(arguments, env):
    command = [sys.executable, str(PEER), arguments.model, "--venv", os.path.expanduser(arguments.peers),
               "--items", str(arguments.items), "--prefill"]
    command += ["--vulkan-prefill"] if env else []
    command += ["--native"] if arguments.native else []
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode == 0:
        return {"peer": json.loads(done.stdout)}
    print(done.stderr[-500:], file=sys.stderr)  # asked again the next time
    return None


def measure_driver(arguments, sheet, driver, env, folder):
    """All parts of one driver that are not there yet."""
    model, rounds = arguments.model, arguments.rounds
    long, usual, tiny = folder + "/long.sprig", folder + "/usual.sprig", folder + "/tiny.sprig"

    def sizes():
        inspected = decode.timed([str(decode.BIN / "llm-inspect"), usual, "--json"], {})[2]
        run = [str(decode.BIN / "llm-run"), usual, "-p", decode.PROMPT, "--ignore-eos", "-n", "8"]
        return {"usual_package_bytes": os.path.getsize(usual), "model_bytes": os.path.getsize(model),
                "kv_bytes": sum(map(int, decode.re.findall(r'"kv_bytes": (\d+)', inspected)[:1])),
                "resident_bytes": resident(run, env),
                "empty_bytes": resident([str(decode.BIN / "llm-inspect"), tiny, "--pipelines"], env)}

    def compiled():
        wall, processor = compile_model(model, 2048, folder + "/again.sprig")
        return {"compile_s": wall, "compile_processor_s": processor}

    sheet.part(driver, "time to compile", compiled)
    sheet.part(driver, "memory and sizes", sizes)
    sheet.part(driver, "start-up", lambda: bench(usual, env, rounds, [8], startup=True))
    for i in range(arguments.prompt_rounds):
        def lengths():
            order = DOUBLES if i % 2 else list(WIDTHS)
            seen = bench(long, env, 1, order[::-1 if i // 2 % 2 else 1])
            return {"prompt_rounds": {str(i): {"doubles": bool(i % 2), "processor_ms": seen["prefill_processor_ms"],
                                               "rate": seen["prefill_at"]}}}
        sheet.part(driver, f"prompts of 1 to 64, round {i + 1}", lengths)
    for i in range(rounds):
        def long_ones():
            seen = bench(long, env, 1, [512], "128,4096")
            return {"long_rounds": {str(i): {"prompt_ms": seen["prefill_processor_ms"]["512"],
                                             "rate": seen["prefill_at"]["512"],
                                             "decode_ms": seen["decode_processor_ms"]}}}
        sheet.part(driver, f"a prompt of 512, decode at depths of 128 and 4,096, round {i + 1}", long_ones)
    if not arguments.no_peers and PEER.exists():
        sheet.part(driver, "llama.cpp, minutes of pipelines", lambda: peer_figures(arguments, env))


def measure(arguments):
    sheet = Sheet(arguments.again)
    arguments.native = (arguments.native and not arguments.no_peers
                        and native_peer.ensure(arguments.peers, arguments.model))
    with tempfile.TemporaryDirectory() as folder:
        compile_model(arguments.model, 4608, folder + "/long.sprig")
        compile_model(arguments.model, 2048, folder + "/usual.sprig")
        subprocess.run([str(decode.BIN / "sprig-tiny-package"), folder + "/tiny.sprig"], check=True)
        for driver, env in decode.drivers().items():
            if not arguments.only or (arguments.only == "stock") == (not env):
                measure_driver(arguments, sheet, driver, env, folder)
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


def prompts(figures, key, part):
    """What llm-bench says by length; of lengths to 64 the median of all rounds."""
    found = {int(m): value for m, value in figures.get(key, {}).items()}
    rounds = figures.get("prompt_rounds", {}).values()
    for m in WIDTHS if rounds else []:
        found[m] = decode.statistics.median(one[part][str(m)] for one in rounds if str(m) in one[part])
    return found


def within_rounds(figures, m, other):
    """t(m) ÷ t(other): the median of the ratios within the rounds that measure one soon after the other."""
    rounds = list(figures.get("prompt_rounds", {}).values())
    doubled = m not in (other - 1, other + 1)
    rounds = [one for one in rounds if one.get("doubles", doubled) == doubled] or rounds
    return decode.statistics.median(one["processor_ms"][str(m)] / one["processor_ms"][str(other)] for one in rounds)


def figures_asked(driver, figures):
    """(what, what is asked, how to say what was measured)"""
    seconds, peer, newer = medians(driver), figures.get("peer", {}), driver != "stock lavapipe"
    t, wall = prompts(figures, "prefill_processor_ms", "processor_ms"), prompts(figures, "prefill_at", "rate")
    median, lasting = decode.statistics.median, list(figures.get("long_rounds", {}).values())
    start, mine = figures.get("startup", {}), seconds.get("sprig decode")

    def worst(pairs):
        if not figures.get("prompt_rounds"):
            raise KeyError("no rounds")
        ratios = {other: within_rounds(figures, m, other) for m, other in pairs}
        at = max(ratios, key=ratios.get)
        return f"{ratios[at]:.2f} at m = {at}"

    def most():
        return 1.05 * (figures["memory"]["weight_bytes"] + figures["kv_bytes"]) + 40e6

    def over():
        return figures["resident_bytes"] - figures["empty_bytes"]

    def within(value):
        """The median of what each round of long prompts and depths says."""
        if not lasting:
            raise KeyError("no rounds")
        return median(value(one) for one in lasting)

    yield "decode, tokens a processor second", "", lambda: f"{1000 / within(lambda one: one['decode_ms']['128']):.1f}"
    yield ("decode ÷ llama.cpp Vulkan", "≥ 15" if newer else "≥ 12",
           lambda: ratio(seconds.get("llama.cpp Vulkan decode"), mine, 1))
    if newer:
        yield ("decode ÷ llama.cpp on this processor", "≥ 0.28",
               lambda: ratio(medians("stock lavapipe").get("llama.cpp native decode"), mine))
    yield ("decode ÷ a token's weights only read", "≥ 0.3" if newer else "≥ 0.75",
           lambda: ratio(seconds.get("read"), mine))
    if newer:
        yield ("prefill of 64 ÷ llama.cpp Vulkan, wall clock", "≥ 5",
               lambda: ratio(wall[64], peer.get("vulkan_prefill_tokens_per_s"), 1))
        yield ("prefill of 512 ÷ llama.cpp on this processor, wall clock", "≥ 0.3",
               lambda: ratio(within(lambda one: one["rate"]), peer.get("native_cpu_prefill_tokens_per_s")))
    yield ("prefill of 512, tokens a processor second", "",
           lambda: f"{512e3 / within(lambda one: one['prompt_ms']):.0f}")
    yield ("prefill of 512 ÷ decode", "≥ 4",
           lambda: f"{within(lambda one: 512 * one['decode_ms']['128'] / one['prompt_ms']):.1f}")
    yield ("greatest t(m+1) ÷ t(m), every m to 64", "≤ 1.5", lambda: worst([(m + 1, m) for m in range(1, 64)]))
    yield ("greatest t(2m) ÷ t(m), every m to 64", "≤ 2.2", lambda: worst([(2 * m, m) for m in range(1, 33)]))
    yield ("greatest t(m−1) ÷ t(m), every m to 64", "≤ 1.1", lambda: worst([(m - 1, m) for m in range(2, 65)]))
    yield "t(8) ÷ t(1)", "≤ 3.5", lambda: f"{within_rounds(figures, 8, 1):.2f}"
    yield "rate at depth 4,096 ÷ at 128", "≥ 0.4", \
        lambda: f"{within(lambda one: one['decode_ms']['128'] / one['decode_ms']['4096']):.2f}"
    yield "first token, Mesa's cache off, s", "≤ 4", lambda: f"{start['cold_s']:.2f}"
    yield "first token, caches warm, s", "≤ 0.6", lambda: f"{start['warm_s']:.2f}"
    yield ("resident over an empty program, context 2,048, MB (and what is allowed)", "1.05 × (weights + KV) + 40 MB",
           lambda: f"{over() / 1e6:.0f} ({most() / 1e6:.0f})")
    yield ("package ÷ GGUF", "≤ 1.03", lambda: ratio(figures["usual_package_bytes"], figures["model_bytes"], 3))
    yield ("compile with all widths, s (of processor)", "≤ 15",
           lambda: f"{figures['compile_s']:.1f} ({figures['compile_processor_s']:.1f})")


def rows(driver, figures):
    """The rows of the table; a dash where a part was not measured yet."""
    for what, asked, measured in figures_asked(driver, figures):
        try:
            yield what, asked, measured()
        except KeyError:
            yield what, asked, "–"


def table():
    for driver, figures in json.loads(RESULTS.read_text())["drivers"].items():
        low, high = min(figures["load"]), max(figures["load"])
        print(f"{driver} ({figures.get('driver', 'not measured')}), load {low:.0f} to {high:.0f}:\n")
        print("| figure | asked | measured |\n|---|---|---|")
        for row in rows(driver, figures):
            print("| " + " | ".join(row) + " |")
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure before the table is printed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-rounds", type=int, default=15, help="of prompts of every length from 1 to 64")
    parser.add_argument("--native", action="store_true", help="llama.cpp built for this processor, too")
    parser.add_argument("--no-peers", action="store_true", help="this build alone")
    parser.add_argument("--again", action="store_true", help="start over")
    parser.add_argument("--items", type=int, default=5, help="of the peer's prompt: 5 are about 63 tokens")
    parser.add_argument("--only", choices=["stock", "mesa25"])
    parser.add_argument("--model", default=str(decode.ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("--peers", default="~/.cache/sprig-peers", help="virtual environment of bench_llamacpp.py")
    given = parser.parse_args()
    if given.measure:
        measure(given)
    table()
