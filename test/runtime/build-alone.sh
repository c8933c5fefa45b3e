#!/usr/bin/env bash
# Proves that the runtime and its tools build without the compiler: `cmake -S runtime` with Debian's g++, for this
# machine and, cross, for 64-bit Arm. Installs what the cross build needs. Safe to repeat.
#
# usage: test/runtime/build-alone.sh [native|arm64]      (default: both)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

build() { # NAME MACHINE CMAKE-ARGUMENT...
  local name=$1 machine=$2 folder=$root/build/alone/$1
  shift 2
  cmake -G Ninja -S "$root/runtime" -B "$folder" "$@" >"$folder.log" 2>&1 || { cat "$folder.log" >&2; exit 1; }
  ninja -C "$folder" --quiet
  local tool
  for tool in llm-run llm-bench llm-inspect generate; do
    readelf -h "$folder/bin/$tool" | grep -q "Machine:.*$machine" \
      || { echo "error: expects $tool for $machine, but got another machine" >&2; exit 1; }
    if readelf -d "$folder/bin/$tool" | grep -qE 'NEEDED.*(LLVM|MLIR|vulkan)'; then
      echo "error: expects $tool to link neither LLVM nor Vulkan, but it does" >&2
      exit 1
    fi
  done
  echo "$name: built"
}

check_size() { # what a phone would carry
  local stripped=$root/build/alone/llm-run.stripped bytes
  strip -o "$stripped" "$root/build/alone/native/bin/llm-run"
  bytes=$(stat -c %s "$stripped")
  if [[ $bytes -gt 2000000 ]]; then
    echo "error: expects a stripped llm-run of at most 2000000 bytes, but got $bytes" >&2
    exit 1
  fi
  echo "llm-run with the runtime has $bytes bytes stripped"
}

install_cross() {
  local wanted=(g++-aarch64-linux-gnu libpcre2-dev:arm64 libutf8proc-dev:arm64
                libzstd-dev:arm64) missing=() package
  for package in "${wanted[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true) == ii* ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  local as_root=()
  [[ $(id -u) == 0 ]] || as_root=(sudo)
  dpkg --print-foreign-architectures | grep -qx arm64 || "${as_root[@]}" dpkg --add-architecture arm64
  "${as_root[@]}" apt-get -qq update
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq install --yes --no-install-recommends "${missing[@]}" \
    >/dev/null
}

mkdir -p "$root/build/alone"
if [[ ${1:-native} == native ]]; then
  CC=gcc CXX=g++ build native 'X86-64\|AArch64'
  check_size
fi
if [[ ${1:-arm64} == arm64 ]]; then
  install_cross
  # The proof is that it builds; without optimisation it takes half the time.
  build arm64 AArch64 -DCMAKE_BUILD_TYPE=Unoptimised \
    -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64-toolchain.cmake"
fi
