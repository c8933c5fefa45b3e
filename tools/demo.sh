#!/usr/bin/env bash
# The whole way, on a bare Debian 12: installs packages, builds, fetches SmolLM2-135M, compiles it for Vulkan and
# generates text on whatever Vulkan device there is (lavapipe, a CPU driver, where there is no GPU).
# The first run takes a few minutes, a second one seconds.
#
# usage: tools/demo.sh ["prompt"]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
prompt=${1:-"Once upon a time, there was a little girl named"}
say() { printf '== %s\n' "$*" >&2; }

say "1/5 packages"
"$root/tools/install-packages.sh" build >&2
say "2/5 build"
"$root/tools/build.sh" llm-compile llm-run >&2
say "3/5 model"
"$root/tools/fetch-model.sh" >&2
model=$root/build/models/SmolLM2-135M-Instruct.Q4_1.gguf
package=$root/build/models/SmolLM2-135M-Instruct.Q4_1.sprig
say "4/5 compile"
if [[ ! $package -nt $root/build/bin/llm-compile || ! $package -nt $model ]]; then
  "$root/build/bin/llm-compile" "$model" --target=lavapipe,generic -o "$package"
fi
say "5/5 generate"
exec "$root/build/bin/llm-run" "$package" -p "$prompt" -n 48 --stats
