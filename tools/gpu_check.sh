#!/bin/bash
# One command for a machine with an NVIDIA GPU, CUDA and cuDNN, and perhaps nothing else, not even a network. It builds;
# trains LeNet in every precision and layout; runs the tests of core, layers, models and tools on the GPU against the
# reference, and those of cuDNN's engines; runs short trainings under compute-sanitizer if that is there; times the
# networks beside PyTorch if python3 has it; and says where their time goes (docs/gpu.md). It writes the results to a
# page, anew after every figure. It ends within 9 minutes; the page says what there was no time for, and RESUME goes on
# with that. The libraries that it builds with (stb, CLI11, json, OpenSSL, GoogleTest) come from the system or from
# .deps/, which `make carry LIBRARIES=1` fills on a machine that has a network. Without GoogleTest nothing is tested. On
# a machine without a GPU it builds, and the page says so. Paths are relative to the repository's root.
# Usage: tools/gpu_check.sh [FOLDER]     folder of the page, gpu-NAME.md, and of RESUME's files: rows.txt, tests.md,
#                                        layers.md and logs.tar.gz (default: the page to docs/results, the rest to BUILD/results)
# Environment: BUILD (build-gpu), BATCHES ("64 128 32 16"; the first is timed in every way), NETWORKS (compiled ones, and
# those of models/*.net), PRECISIONS, STEPS (20), PYTHON (python3), SECONDS_LEFT (520: nothing runs longer than that), ITEM_SECONDS (limit for each single
# command), COMMIT (the page's name for this code if git does not say).
# RESUME=1 goes on with the files in FOLDER; RESUME=OTHER with a copy of those in OTHER, for example files that were
# brought back from the machine (OUT=...; RESUME=brought/back tools/gpu_check.sh "$OUT"). Results of other sources,
# another GPU or other versions do not count; PyTorch's figures do not depend on our sources, so these stay when only
# ours changed.
# The exit code is 1 if it did not build, tests failed or were cut off (in a former run too), or every timing failed. SIGINT
# (Ctrl-C), SIGTERM and SIGHUP end it and all that it started (130, 143, 129); the page has what was found until then.
set -u
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build-gpu}
folder=${1:-docs/results}
state=${1:-$build/results}
batches=${BATCHES:-64 128 32 16}
first=${batches%% *}
networks=${NETWORKS:-squeezenet googlenet resnet34 resnet50 vgg16e}
precisions=${PRECISIONS:-float32 bf16 tf32}
resume=${RESUME:-}
steps=${STEPS:-20}
python=${PYTHON:-python3}
budget=${SECONDS_LEFT:-520}
longest=${ITEM_SECONDS:-600}
duplex=$build/bin/duplex
logs=$build/logs
rows=$state/rows.txt tests=$state/tests.md layers=$state/layers.md machine=$state/machine.txt
wrong=$logs/wrong.txt
mkdir -p "$folder" "$state" "$logs" || exit 1
export DUPLEX_CACHE=${DUPLEX_CACHE:-$PWD/$build/cache}
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

if [ "$resume" ] && [ "$resume" != 1 ] && ! [ "$resume" -ef "$state" ]; then
  cp "$resume"/{rows.txt,tests.md} "$state" || exit 1
  [ ! -e "$resume/layers.md" ] || cp "$resume/layers.md" "$state" || exit 1
fi
[ "$resume" ] || rm -f "$rows" "$tests" "$layers"
rm -f "$logs"/*
touch "$rows" "$tests" "$layers" "$machine" "$wrong"

say() { printf 'gpu_check: %3d s: %s\n' "$SECONDS" "$*" >&2; }
left() { echo $((budget - SECONDS)); }
in_time() { [ "$(left)" -ge $(($1 < longest ? $1 : longest)) ]; }
cap() { local l; l=$(left); printf '%s\n' "$1" "$longest" $((l > 1 ? l : 1)) | sort -n | head -n 1; }
# capped SECONDS COMMAND... runs it for at most so long, in the background: a trap waits for what runs in the foreground. It is
# for this shell alone, since finish() does not see what a subshell runs.
capped() { local most; most=$(cap "$1"); shift; timeout -k 5 "$most" "$@" & wait $!; }
cut_off() { [ "$1" = 124 ] || [ "$1" = 137 ]; }  # Whether `capped` stopped a command with this exit code.
# finish ends what is running, and writes the page. Each job is a timeout, which passes the signal on to all that its command
# has started, or a pipeline that begins with one.
finish() {
  local running
  trap '' HUP INT TERM
  running=$(jobs -p)
  { [ ! "$running" ] || kill $running; wait; } 2>/dev/null
  page
}

# ---- The machine, and the marks of what results depend on.
sum_of() { find "$@" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-12; }
mark() { printf '%s\n' "$@" | sha256sum | cut -c 1-12; }
code=$(sum_of Makefile make core layers models datasets net tools -not -name '*.py' -not -path 'tools/*.sh' -not -name '*.awk' \
  -not -path '*/lab/*' -not -path '*/benchmarks/*' -not -path '*/thesis/*')
commit=$(git describe --always --dirty 2>/dev/null || echo "${COMMIT:-}")
gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
name=$(echo "${gpu%%,*}" | tr -c 'A-Za-z0-9\n' '-' | tr '[:upper:]' '[:lower:]')
page=$folder/gpu${name:+-$name}.md
make=(make BUILD="$build" CUDA=1 ONEDNN=0 PYTHON="$python")
asked=$logs/torch.txt
# shellcheck source-path=SCRIPTDIR
. tools/gpu_check/page.sh
. tools/gpu_check/tests.sh
. tools/gpu_check/timing.sh
unbuilt='' warned='' torch='' of_ours=''
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
timeout -k 5 "$(cap 60)" "$python" -W ignore -c 'import torch; print(torch.__version__, "cuDNN", torch.backends.cudnn.version())' >"$asked" 2>&1 &
asking=$!
capped 60 "${make[@]}" report >"$logs/probe.log" 2>&1
built=$(sed -n 's/^ *found *CUDA *//p' "$build/config.txt" 2>/dev/null)
nvcc=$(sed -n 's/^CONFIG_NVCC := *\([^ ]*\).*/\1/p' "$build/config.mk" 2>/dev/null)
{
  echo "$(date '+%F %R'), commit ${commit:-of no checkout}, sources $code"
  if [ "$gpu" ]; then
    nvidia-smi --format=csv --query-gpu=name,driver_version,memory.total,memory.used,compute_mode
    nvidia-smi --format=csv --query-gpu=clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit,temperature.gpu
  fi
  "${nvcc:-nvcc}" --version | grep release
  echo "headers: CUDA ${built:-not found}"
  g++ --version | head -n 1
  "$python" --version
  echo "$(nproc) cores, $(awk '/MemTotal/ { printf "%.0f GiB of memory", $2 / 1048576 }' /proc/meminfo)"
} >"$machine" 2>&1
cat "$machine" >&2

# ---- Build. A compiler that was never tried here may warn; the page then says so, and the check goes on.
targets=(all)
grep -q '^CONFIG_GTEST := 1' "$build/config.mk" 2>/dev/null && targets+=("$build"/tests/{core,layers,models,tools,cudnn})
say "building"
werror=1 status=1
[ "$(head -n 1 "$build/warned" 2>/dev/null)" = "$code" ] && werror=
if [ "$werror" ]; then
  capped 400 "${make[@]}" WERROR=1 "${targets[@]}" >"$logs/werror.log" 2>&1
  status=$?
fi
if [ $status != 0 ] && ! cut_off $status; then
  say "building without WERROR=1"
  capped 400 "${make[@]}" "${targets[@]}" >"$logs/build.log" 2>&1
  status=$?
  if [ $status = 0 ]; then
    [ ! "$werror" ] || printf '%s\n' "$code" "$(grep -m 1 -i error "$logs/werror.log" | cut -c 1-200)" >"$build/warned"
    warned=$(tail -n 1 "$build/warned")
  fi
fi
wait $asking && torch=$(tail -n 1 "$asked")
echo "PyTorch ${torch:-is not there: $(tail -n 1 "$asked")}" >>"$machine"
tail -n 1 "$machine" >&2
if [ $status != 0 ]; then
  unbuilt=$logs/build.log
  [ -s "$unbuilt" ] || unbuilt=$logs/werror.log
  cut_off $status && echo "stopped after $SECONDS s; RESUME=1 goes on from there, where $build is still there" >>"$unbuilt"
  tail -n 30 "$unbuilt" >&2
  say "it does not build: $page"
  exit 1
fi
if [ ! "$gpu" ]; then
  say "no GPU here: $page says so"
  exit 0
fi
say "built"

# ---- Drop results of other sources, GPUs or versions.
of_tests=$(mark "$code" "$(sum_of tests)" "$gpu" "$built")
of_ours=$(mark "$code" "$gpu" "$built" "$steps")
of_theirs=$(mark "$(sum_of tools/benchmarks/torch_step.py tools/benchmarks/gpu_torch_step.py)" "$gpu" "$torch" "$steps")
keep_tests
keep_rows

# ---- Tests, then times; the most important come first.
smoke
if [ ${#targets[@]} = 1 ]; then
  section suites lacking "- not built: there is no GoogleTest here (make carry LIBRARIES=1 brings it)"
else
  for folder_of_tests in core layers models tools; do suite "$folder_of_tests" '*cudnn*:Gpu*:*OnAGpu*'; done
  suite cudnn '*'
fi
sanitizers
page
timeout "$(cap "$budget")" nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader,nounits -l 5 \
  >"$logs/clocks.csv" 2>/dev/null &
time_all
page
cat "$page"
say "done; $page"
if tests_failed; then exit 1; fi
if [ -s "$wrong" ] && ! grep -q '^duplex' "$rows"; then exit 1; fi
