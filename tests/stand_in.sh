#!/bin/bash
# Tests the device of NVIDIA GPUs on a stand-in for CUDA, cuBLAS and cuDNN (tests/stand_in): it runs
# the tests of core, layers, models and tools that run on a GPU where there is one. STAND_IN names the
# library.
# Usage: STAND_IN=build/stand-in/duplex-cudnn.so tests/stand_in.sh
set -eu
if [ ! "${STAND_IN:-}" ]; then
  echo "there is no CUDA to compile the device of GPUs with, or this is a build for sanitizers"
  exit 77
fi
export DUPLEX_CUDNN=$STAND_IN
tests=$(dirname "$STAND_IN")/../tests

logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
# The tests that run first time engines, and those behind them find their choices there.
export DUPLEX_CACHE=$logs/cache

# run FOLDER FILTER: runs these tests, and does not print what passed.
run() {
  local log
  log=$(mktemp -p "$logs")
  "$tests/$1" --gtest_color=no --gtest_filter="$2" >"$log" 2>&1 ||
    { grep -v -e '^\[       OK ' -e '^\[-----' -e '^$' "$log"; return 1; }
  ! grep '^\[  SKIPPED' "$log" || { echo "tests/$1: on the stand-in nothing is skipped"; return 1; }
  grep -q '^\[  PASSED  \] [1-9]' "$log" || { echo "tests/$1: no test is called $2"; return 1; }
}

# The larger models would take minutes on a CPU. These take as long as all other tests, and run beside them.
ORACLE_STEPS=3 run models '*/squeezenet_64_cudnn_nhwc:*/googlenet_80_cudnn' &
models=$! failed=0
run models '*/lenet_cudnn*' || failed=1
run core '*cudnn*:-*Gradients*/cudnn_nhwc' || failed=1
run tools 'Gpu*' || failed=1
run layers '*cudnn*:Gpu*' || failed=1
run layers 'StandIn*' || failed=1
wait $models || failed=1
exit $failed
