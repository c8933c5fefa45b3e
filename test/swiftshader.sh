#!/usr/bin/env bash
# Unpacks SwiftShader, a CPU Vulkan driver with the barest features, from Debian's chromium-common into
# build/swiftshader (nothing is installed) and prints the path of its ICD file for VK_ICD_FILENAMES.
# Safe to repeat.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/swiftshader
if [[ ! -s $folder/icd.json ]]; then
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/unpack.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  apt-get -qq -o APT::Sandbox::User=root download chromium-common >&2 ||
    { apt-get -qq update >&2 && apt-get -qq -o APT::Sandbox::User=root download chromium-common >&2; }
  dpkg-deb --fsys-tarfile chromium-common*.deb | tar -x --wildcards '*libvk_swiftshader.so'
  mv "$(find . -name libvk_swiftshader.so | head -1)" "$folder/"
  printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' \
    "$folder/libvk_swiftshader.so" >"$folder/icd.json"
fi
echo "$folder/icd.json"
