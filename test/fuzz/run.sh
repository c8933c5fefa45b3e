#!/usr/bin/env bash
# Builds the fuzzers with AddressSanitizer and UndefinedBehaviorSanitizer and runs each of them. A crash leaves its
# input in build/fuzz/NAME/ and makes the exit code non-zero. Corpora are kept in build/fuzz/NAME/corpus.
#
# Then every byte of a small package is changed.
#
# usage: test/fuzz/run.sh [SECONDS-EACH [NAME...]]      (default: 5 seconds, all)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/fuzz
seconds=${1:-5}
shift || true
names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=(GGUFFuzzer SafetensorsFuzzer TokenizerFuzzer TokenizerFileFuzzer TemplateFuzzer PackageFuzzer)

# Long inputs are slow, and find little that shorter ones do not; each length holds the seeds.
declare -A lengths=([GGUFFuzzer]=1024 [SafetensorsFuzzer]=512 [TokenizerFuzzer]=512 [TokenizerFileFuzzer]=1280
                    [TemplateFuzzer]=512 [PackageFuzzer]=10300)
compiler=$(command -v clang++-22 || true)
if [[ -z $compiler ]] || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char *, unsigned long) { return 0; }' |
    "$compiler" -x c++ -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null; then
  echo "skipped: clang 22 has no sanitizers here (Debian: libclang-rt-22-dev)"
  exit 77
fi
cmake -G Ninja -S "$root/test/fuzz" -B "$build" -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER=clang-22 >"$build.log" 2>&1 ||
  { cat "$build.log" >&2; exit 1; }
ninja -C "$build" --quiet

seed() { # NAME: prints the folder of its seeds, made anew
  local folder=$build/$1/seeds
  rm -rf "$folder"
  mkdir -p "$folder" "$build/$1/corpus"
  case $1 in
    GGUFFuzzer) python3 "$root/test/fuzz/make_gguf_seeds.py" "$folder" ;;
    SafetensorsFuzzer) python3 - "$folder" <<'PY' ;;
import json, struct, sys
for i, header in enumerate([{"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}},
                            {"__metadata__": {"format": "pt"}, "b\\u00e9": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}]):
    text = json.dumps(header).encode()
    open(f"{sys.argv[1]}/{i}", "wb").write(struct.pack("<Q", len(text)) + text + bytes(16 if i == 0 else 2))
PY
    TemplateFuzzer) python3 - "$folder" "$root/test/runtime/Text/template_cases.json" <<'PY' ;;
import json, sys
def templates(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "template" and isinstance(inner, str):
                yield inner
            else:
                yield from templates(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from templates(inner)
for i, text in enumerate(sorted(set(templates(json.load(open(sys.argv[2])))))):
    open(f"{sys.argv[1]}/{i}", "w").write(text)
PY
    TokenizerFileFuzzer) python3 - "$folder" "$root/test/lib/Import/tokenizer_json_cases.json" <<'PY' ;;
import json, sys
import base64, struct
text = b" The <tool> don't \xc3\xa9 1234 \n"
def write(name, kind, file):
    open(f"{sys.argv[1]}/{name}", "wb").write(kind + bytes([len(text)]) + file + text)
cases = json.load(open(sys.argv[2]))
for i, case in enumerate(cases["cases"]):
    file = cases["vocabularies"][case["vocabulary"]] | {"normalizer": None, "pre_tokenizer": None}
    model = dict(file["model"])
    for key, value in case["changes"].items():
        (file if key in ("normalizer", "pre_tokenizer", "decoder") else model)[key] = value
    # Ten tokens are quicker to change than four hundred.
    short = dict(list(model["vocab"].items())[:10]) if isinstance(model["vocab"], dict) else model["vocab"][:10]
    file |= {"model": model | {"vocab": short, "merges": []}, "added_tokens": file["added_tokens"][:1]}
    write(str(i), b"j", json.dumps(file, separators=(",", ":")).encode())
# A map of one key, 'd' (0x64), in a trie of 102 places: the value is behind it.
units = [0] * 100 + [0x64 | 1 << 8 | (0x64 ^ 0x65) << 10, 1 << 31]
charsmap = struct.pack("<103I", 4 * len(units), *units) + b"x\0"
write("map", b"m", charsmap)
write("mapped", b"j", json.dumps({"normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["x", -1]]}}).encode())
piece = b"\x0a\x0a\x0a\x01a\x15\x00\x00\x80\x3f\x18\x01"
open(f"{sys.argv[1]}/pieces", "wb").write(b"s\x02" + piece * 3 + b"\x12\x02\x18\x02" + b"aa")
PY
    PackageFuzzer) "$build/bin/MakePackageSeed" "$folder" ;;
  esac
  echo "$folder"
}

failed=0
for name in "${names[@]}"; do
  seeds=$(seed "$name")
  # LLVM is not instrumented, so its containers would look overflown.
  if ! (cd "$build/$name" && ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1 \
      "$build/bin/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -close_fd_mask=1 \
      -max_len="${lengths[$name]}" corpus seeds >log 2>&1); then
    echo "$name: FAILED; see $build/$name/log" >&2
    tail -40 "$build/$name/log" >&2
    failed=1
    continue
  fi
  printf '%s: %s executions\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name/log")"
done
# One value of each byte, or more where there is time.
values=$((seconds < 60 ? 1 : 255))
"$build/bin/OneByteChanges" "$values" || failed=1
exit $failed
