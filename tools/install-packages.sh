#!/usr/bin/env bash
# Installs the Debian packages that Sprig needs and that are missing. Safe to repeat; a second run installs nothing.
#
# usage: tools/install-packages.sh [runtime|build|test]      (each includes the ones before it; default: build)
set -euo pipefail

runtime=(g++ cmake ninja-build libflatbuffers-dev flatbuffers-compiler libxxhash-dev libzstd-dev libpcre2-dev libutf8proc-dev
         libvulkan-dev nlohmann-json3-dev mesa-vulkan-drivers libvulkan1)
build=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 mold ccache libeigen3-dev libcli11-dev
       spirv-tools python3 python3-pip ca-certificates unzip git)
test=(libgtest-dev libgmock-dev vulkan-validationlayers libclang-rt-22-dev)

case "${1:-build}" in
  runtime) wanted=("${runtime[@]}") ;;
  build) wanted=("${runtime[@]}" "${build[@]}") ;;
  test) wanted=("${runtime[@]}" "${build[@]}" "${test[@]}") ;;
  *) echo "usage: $0 [runtime|build|test]" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ii* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || { echo "error: needs root (or sudo) to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get -qq update
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
