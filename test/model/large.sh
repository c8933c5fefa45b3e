#!/usr/bin/env bash
# Two layers of the shape of an 8-billion-parameter model (K = 4,096 and 14,336, 32 query and 8 key heads of 128,
# 128,256 tokens), in Q4_K and Q8_0: compiled for every target, compared with the reference evaluator on the default
# device. Run by hand: it takes a few minutes, 3 GB of memory and 3 GB of disk.
#
# usage: test/model/large.sh [BIN-FOLDER [WORK-FOLDER]]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${1:-$root/build/bin}
work=${2:-$(mktemp -d)}
mkdir -p "$work"
[[ $# -ge 2 ]] || trap 'rm -rf "$work"' EXIT
for format in q4_k q8_0; do
  gguf=$work/8b-$format.gguf package=$work/8b-$format.sprig
  echo "== $format: generating"
  [[ -e $gguf ]] || "$bin/sprig-make-tiny" "$gguf" "8b-$format"
  echo "== $format: compiling for every target"
  /usr/bin/time -f '%e s, peak %M KB resident' "$bin/llm-compile" "$gguf" -o "$package" --json
  echo "== $format: against the reference, one token at a time and eight at once"
  "$bin/llm-eval" "$package" --against "$gguf" --tokens 1,40,97,200,13,77,5,150 --json | python3 -c '
import json, sys
result = json.load(sys.stdin)
print("KL", result["kl"], "top-1 agreement", result["top1_agreement"])
sys.exit(0 if result["kl"] < 1e-5 and result["top1_agreement"] == 1 else "expects KL < 1e-5 and equal arg-max")'
done
