"""llama.cpp built for this processor, as ../shared/peers/bench_llamacpp.py --native uses it: DIR-native, made where it
is missing or does not run.

Built by GCC 12 on a processor with AMX it dies of an illegal instruction at the first prompt: that compiler's
_tile_loadconfig names eight bytes of the tile configuration as its input, so the stores of the rest of it are dropped,
and tiles without rows are what the processor refuses. Clang has it right, and is what this project needs anyway.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import venv

# Several tokens at once: a prompt, where AMX comes in.
PROBE = ("import sys,llama_cpp\n"
         "m=llama_cpp.Llama(sys.argv[1],n_ctx=256,n_threads=2,verbose=False)\n"
         "m.eval(m.tokenize(b'The capital of France is a city that many people know.'))\n")


def python_of(peers):
    return pathlib.Path(os.path.expanduser(str(peers)) + "-native") / "bin" / "python"


def works(python, model):
    return python.exists() and subprocess.run([str(python), "-c", PROBE, model], capture_output=True).returncode == 0


def ensure(peers, model):
    """Whether there is one that runs; building takes a quarter of an hour."""
    python = python_of(peers)
    if works(python, model):
        return True
    clang = next((name for name in ("clang-22", "clang") if shutil.which(name)), None)
    compilers = {"CC": clang, "CXX": clang.replace("clang", "clang++")} if clang else {}
    print(f"building llama.cpp for this processor with {clang or 'the default compiler'}", file=sys.stderr, flush=True)
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--force-reinstall", "--no-cache-dir", "--no-binary",
                    "llama-cpp-python", "llama-cpp-python"], check=True,
                   env={**os.environ, **compilers, "CMAKE_BUILD_PARALLEL_LEVEL": "2",
                        "CMAKE_ARGS": "-DGGML_NATIVE=ON -DMTMD_BUILD=OFF -DLLAVA_BUILD=OFF"})
    if works(python, model):
        return True
    print("llama.cpp built for this processor does not run; it is left out", file=sys.stderr)
    return False
