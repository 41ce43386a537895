#!/bin/bash
# Tests tools/benchmarks/memory: on LeNet alone and with a central server, that what it says and what a run takes are there
# and agree, that it goes on where it stopped, and that it tells of a run that takes something else.
# Usage: DUPLEX=bin/duplex tests/benchmarks/bench_memory.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
[ "${SANITIZE:-}" ] && { echo "sanitizers take memory of their own"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
check() { if ! eval "$2"; then echo "FAILED: $1"; tail -n 40 "$work/log"; failed=1; fi; }
# bench: runs the benchmark once; leaves its exit code in $code.
bench() {
  NETWORKS=lenet BATCHES=lenet:48 WAYS='alone central' STEPS=2 OUT=$work/out PAGE=$work/page.md \
    timeout 100 python3 tools/benchmarks/memory >"$work/log" 2>&1
  code=$?
}

bench
check 'what is said is what runs take' '[ $code = 0 ]'
check 'the page has a row for each role' \
  '[ "$(grep -c -e "^    lenet  *48  alone  *alone " -e "^    lenet  *48  central  *worker " -e "^    lenet  *48  central  *central server " "$work/page.md")" = 3 ]'
check 'both runs were made' '[ "$(grep -c "^bench: lenet" "$work/log")" = 2 ]'
bench
check 'it goes on where it stopped' '[ $code = 0 ] && ! grep -q "^bench: lenet" "$work/log"'
sed -i 's/"took": [0-9.]*/"took": 80.0/' "$work/out/rows.jsonl"
bench
check 'another figure is a failure' '[ $code = 1 ]'
exit $failed
