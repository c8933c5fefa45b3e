#!/usr/bin/env bash
# Configures and builds everything, or the targets named, into build/. Safe to repeat.
#
# usage: tools/build.sh [TARGET ...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [[ ! -f $root/build/build.ninja ]]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake -G Ninja -S "$root" -B "$root/build" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
# Progress is shown on a terminal; elsewhere only what goes wrong.
quiet=--quiet
[[ -t 1 ]] && quiet=
ninja -C "$root/build" $quiet "$@"
