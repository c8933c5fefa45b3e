#!/usr/bin/env bash
# Installs what the tests need, builds everything, runs every test (ctest and lit), and prints, last,
# `N passed, N failed` for both together. Safe to repeat.
#
# usage: test/run.sh [--quick]        --quick: only builds and runs, installs and fetches nothing
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
say() { printf '== [%4ds] %s\n' "$SECONDS" "$*"; }

if [[ ${1:-} != --quick ]]; then
  say "packages"
  "$root/tools/install-packages.sh" test || exit 1
  say "model"
  "$root/tools/fetch-model.sh" || echo "the default model could not be fetched: tests on it are skipped"
  say "SwiftShader (the plain Vulkan 1.1 device of the tests)"
  "$root/test/swiftshader.sh" >/dev/null || echo "SwiftShader could not be had: tests on it are skipped"
fi

say "build"
started=$SECONDS
"$root/tools/build.sh" || exit 1
took=$((SECONDS - started))
say "built in $took s"
# Asked are at most twelve minutes for a cold build on two cores; what fails is all of CI past thirty (.ci/run).
if [[ $took -gt 720 ]]; then
  echo "warning: expects a cold build of at most 720 s, but it took $took s" >&2
fi

mkdir -p "$build/results"
rm -f "$build"/results/*.xml
say "ctest"
(cd "$build" && ctest -j 2 --output-on-failure --no-tests=error --output-junit "$build/results/ctest.xml" >"$build/results/ctest.log" 2>&1)
ctest_status=$?
grep -E '^[0-9]+% tests passed|Total Test time' "$build/results/ctest.log"
[[ $ctest_status == 0 ]] || grep -vE '^ *[0-9]+/[0-9]+ Test +#.* Passed|^ +Start ' "$build/results/ctest.log" | tail -200
say "lit"
python3 /usr/lib/llvm-22/bin/lit -j 2 -s -v --xunit-xml-output "$build/results/lit.xml" "$build/test"
lit_status=$?
say "done"
python3 "$root/test/summarise.py" "$build/results/ctest.xml" "$build/results/lit.xml"
summary_status=$?
[[ $ctest_status == 0 && $lit_status == 0 && $summary_status == 0 ]]
