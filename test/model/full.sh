#!/usr/bin/env bash
# All prompts of the default model on every device at hand, with and without the validation layers: what ctest runs in
# part. By hand: it takes about half an hour on two cores. Each line says what was compared; the exit code is 0 only if
# all agree.
#
# usage: test/model/full.sh [ICD.json...]      (further drivers, such as a newer Mesa's lvp.json)
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/build/bin
gguf=$root/build/models/SmolLM2-135M-Instruct.Q4_1.gguf
reference=$root/../shared/reference/smollm2.json
for needed in "$gguf" "$reference"; do
  [[ -e $needed ]] || { echo "skipped: $needed is not there"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/llm-compile" "$gguf" --target=lavapipe,generic -o "$work/model.sprig" || exit 1

failed=0
compare() { # NAME ARGUMENT...: with the environment of the caller
  local name=$1 started=$SECONDS
  shift
  if python3 "$root/test/model/reference.py" "$work/model.sprig" "$reference" --bin "$bin" --source "$gguf" "$@" \
      >"$work/log" 2>&1; then
    echo "$name: equal ($((SECONDS - started)) s)"
  else
    echo "$name: DIFFERS" >&2
    cat "$work/log" >&2
    failed=1
  fi
}

swiftshader=$("$root/test/swiftshader.sh") || echo "SwiftShader could not be had"
compare "default device, 8 prompts, logits and 32 tokens" --logits
SPRIG_VALIDATION=1 compare "default device under validation, 8 prompts, 8 tokens" --tokens 8
if [[ -e $swiftshader ]]; then
  VK_ICD_FILENAMES=$swiftshader compare "SwiftShader, 8 prompts, 32 tokens"
  SPRIG_VALIDATION=1 VK_ICD_FILENAMES=$swiftshader compare "SwiftShader under validation, 8 prompts, 2 tokens" --tokens 2
fi
for icd in "$@"; do
  VK_ICD_FILENAMES=$icd compare "$icd, 8 prompts, logits and 32 tokens" --logits
done
exit $failed
