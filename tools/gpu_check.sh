#!/bin/bash
# One command for a machine with an NVIDIA GPU, CUDA and cuDNN, and perhaps nothing else, not even a network: builds,
# runs the tests of core, layers and models on the GPU against the reference, a short training under compute-sanitizer
# if it is there, times the networks beside PyTorch if python3 has it, and writes what it found to a page. What it needs
# to build (stb, CLI11, json, OpenSSL, GoogleTest) is taken from the system or from .deps/: make/carry.sh fills that
# folder on a machine that has a network. On a machine without a GPU it builds, and the page says so.
# Usage: tools/gpu_check.sh [FOLDER]     where the page goes (default docs/results)
# Environment: BUILD (build-gpu), BATCHES ("64 16 32 128", the first beside torch.compile), NETWORKS, PRECISIONS, STEPS
# (20), PYTHON (python3), SECONDS_LEFT (520: what has not begun by then is left out, with a word), RESUME=1 (goes on with
# the times that the last run of this commit had no time for; does not test again).
set -u
cd "$(dirname "$0")/.." || exit 1
folder=${1:-docs/results}
build=${BUILD:-build-gpu}
batches=${BATCHES:-64 16 32 128}
networks=${NETWORKS:-squeezenet googlenet resnet34 vgg16e}
precisions=${PRECISIONS:-float32 bf16 tf32}
resume=${RESUME:-}
steps=${STEPS:-20}
python=${PYTHON:-python3}
budget=${SECONDS_LEFT:-520}
duplex=$build/bin/duplex
mkdir -p "$folder" "$build"
page=$build/page.md
rows=$build/rows.txt
: >"$page"

say() { echo "gpu_check: $*" >&2; }
write() { printf '%s\n' "$@" >>"$page"; }
in_time() { [ "$SECONDS" -lt "$budget" ]; }
left() { echo $((budget - SECONDS > 10 ? budget - SECONDS : 10)); }

# ---- Build.
say "building"
if ! make BUILD="$build" CUDA=1 ONEDNN=0 WERROR=1 all "$build"/tests/{core,layers,models,tools} >"$build/build.log" 2>&1; then
  grep -E 'error|lacks|Cannot|missing' "$build/build.log" | head -n 10 >&2
  say "it does not build; the whole log is $build/build.log"
  exit 1
fi
built=$(sed -n 's/^ *found *CUDA *//p' "$build/config.txt")
gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
name=$(echo "${gpu%%,*}" | tr -c 'A-Za-z0-9\n' '-' | tr 'A-Z' 'a-z')
commit=$(git describe --always --dirty 2>/dev/null || echo 'of no checkout')
[ "$resume" ] && [ "$(cat "$build/commit.txt" 2>/dev/null)" = "$commit" ] || resume=
[ "$resume" ] || { : >"$rows"; : >"$build/tests.md"; : >"$build/bench.log"; }
echo "$commit" >"$build/commit.txt"

write "# The GPU${gpu:+: ${gpu%%,*}}" "" "What \`tools/gpu_check.sh\` found." "" \
  "- $(date +%F), commit $commit" "- built with CUDA $built, $(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p')"
if [ -z "$gpu" ]; then
  write "" "Not yet run on a GPU: this machine has none. The device compiles without warnings and links; what its kernels do" \
    "with one element is tested on the host (tests/core/gpu_elements_test.cpp), and the whole device on a stand-in for" \
    "CUDA, cuBLAS and cuDNN (tests/stand_in.sh)."
  mv "$page" "$folder/gpu.md"
  say "no GPU here: $folder/gpu.md says so"
  exit 0
fi
write "- $gpu (driver, memory)"

# ---- Tests.
failed=0
tested() { printf '%s\n' "$@" >>"$build/tests.md"; }
if [ ! "$resume" ]; then
  for tests in core layers models tools; do
    say "tests of $tests"
    timeout "$(left)" "$build/tests/$tests" --gtest_filter='*cudnn*:Gpu*:*OnAGpu*' >"$build/$tests.log" 2>&1
    code=$?
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$build/$tests.log")
    if [ "${passed:-0}" = 0 ] && [ $code = 0 ]; then
      failed=1
      tested "- $tests: they found no GPU: $("$duplex" bench --net lenet --steps 1 --device cuda 2>&1 | tail -n 1)"
      continue
    fi
    tested "- $tests: ${passed:-0} passed$([ $code = 0 ] || echo ", exit code $code")"
    [ $code = 0 ] && continue
    failed=1
    tested "" '```' "$(grep -E '^\[  FAILED  \].*ms\)' "$build/$tests.log" | head -n 40)" "$(tail -n 3 "$build/$tests.log")" '```' ""
  done
  # Memory errors.
  if command -v compute-sanitizer >/dev/null && in_time; then
    say "compute-sanitizer"
    if timeout "$(left)" compute-sanitizer --error-exitcode 9 "$duplex" bench --net lenet --batch 16 --steps 2 \
      --layout nhwc --device cuda >"$build/sanitizer.log" 2>&1; then
      tested "- compute-sanitizer, LeNet, 4 steps: $(grep 'ERROR SUMMARY' "$build/sanitizer.log" | sed 's/=* *//')"
    else
      failed=1
      tested "- compute-sanitizer, LeNet: failed" "" '```' "$(grep -v '^$' "$build/sanitizer.log" | head -n 20)" '```'
    fi
  else
    tested "- compute-sanitizer: not run"
  fi
fi
write "" "## Tests on the GPU, against the reference" "" "$(cat "$build/tests.md")"

# ---- Speed: a process each. A row: who, network, batch, precision, way or layout, pictures a second (median, low, high), bytes.
torch=$("$python" -c 'import torch; print(torch.__version__, "cuDNN", torch.backends.cudnn.version())' 2>/dev/null)

# known WHO NET BATCH PRECISION [WAY]: whether it has been measured.
known() { cut -f 1-$# "$rows" | grep -qxF "$(printf '%s\t' "$@" | sed 's/\t$//')"; }

# ours NET BATCH PRECISION LAYOUT: where the layout is measured, the one that was the faster is timed.
ours() {
  known duplex "$1" "$2" "$3" && return
  in_time || { say "no time left for $1, batch $2, $3"; return; }
  local layout=$4
  if [ "$layout" = measured ]; then
    layout=$(timeout "$(left)" "$duplex" bench --net "$1" --batch "$2" --precision "$3" --steps 1 --device cuda 2>>"$build/bench.log" |
      sed -n 's/^layout \(N...\):.*/\1/p' | tr 'A-Z' 'a-z')
    [ "$layout" ] || return
  fi
  timeout "$(left)" "$duplex" bench --net "$1" --batch "$2" --precision "$3" --layout "$layout" --steps "$steps" --device cuda \
    --row 2>>"$build/bench.log" | awk -F'\t' -v OFS='\t' -v precision="$3" -v layout="$layout" \
    '{ print "duplex", $1, $2, precision, layout, $3, $4, $5, $9 }' >>"$rows"
}

# theirs NET BATCH PRECISION WAY
theirs() {
  [ "$torch" ] || return
  known torch "$1" "$2" "$3" "$4" && return
  in_time || return
  timeout "$(left)" "$python" tools/bench_gpu_torch.py "$1" "$2" "$3" "$4" "$steps" 2>>"$build/bench.log" | sed 's/^/torch\t/' >>"$rows"
}

# best NET PRECISION: what was the fastest at the first batch.
layout_of() { awk -F'\t' -v n="$1" -v p="$2" '$1 == "duplex" && $2 == n && $4 == p { print $5; exit }' "$rows"; }
way_of() { awk -F'\t' -v n="$1" -v p="$2" '$1 == "torch" && $2 == n && $4 == p && $5 != "compile" && $6 > best { best = $6; way = $5 } END { print way }' "$rows"; }

first=${batches%% *}
for precision in $precisions; do
  for net in $networks; do
    say "$net, batch $first, $precision"
    ours "$net" "$first" "$precision" measured
    theirs "$net" "$first" "$precision" eager
    theirs "$net" "$first" "$precision" channels_last
  done
done
for precision in $precisions; do
  for net in $networks; do
    say "$net, batch $first, $precision, compiled"
    theirs "$net" "$first" "$precision" compile
  done
done
for batch in ${batches#"$first"}; do
  for precision in $precisions; do
    for net in $networks; do
      say "$net, batch $batch, $precision"
      layout=$(layout_of "$net" "$precision")
      way=$(way_of "$net" "$precision")
      ours "$net" "$batch" "$precision" "${layout:-measured}"
      theirs "$net" "$batch" "$precision" "${way:-channels_last}"
    done
  done
done
write "" "## Training speed" "" \
  "Pictures a second: median (quartiles) of $steps steps; a batch comes from the host, forward, loss, backward, SGD with" \
  "momentum. duplex: in the layout that is the faster at batch $first. PyTorch ${torch:-is not installed here}: cudnn.benchmark on; eager in its" \
  "default layout and in channels_last, torch.compile in channels_last; float32 without TF32, bf16 by autocast. ratio: to the" \
  "faster of the two eager ones, and to torch.compile. MiB: of the GPU's memory, at most. -: not measured, or no time was left." ""
awk -F'\t' '
  function cell(value, format) { return value > 0 ? sprintf(format, value) : "-" }
  { key = $2 " " $3 " " $4; if (!(key in seen)) { order[++count] = key; seen[key] = 1 } }
  $1 == "duplex" { layout[key] = toupper($5); ours[key] = $6; low[key] = $7; high[key] = $8; memory[key] = $9 }
  $1 == "torch" { theirs[key, $5] = $6; peak[key, $5] = $9 }
  END {
    print "| network | batch | precision | duplex | layout | MiB | eager | channels_last | MiB | ratio | compile | MiB | ratio |"
    print "|---|---:|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (i = 1; i <= count; i++) {
      key = order[i]; split(key, word, " ")
      plain = theirs[key, "eager"]; last = theirs[key, "channels_last"]; compiled = theirs[key, "compile"]
      best = plain > last ? plain : last
      mine = ours[key] > 0 ? sprintf("%.0f (%.0f..%.0f)", ours[key], low[key], high[key]) : "-"
      printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", word[1], word[2], word[3],
        mine, layout[key], cell(memory[key] / 1048576, "%.0f"), cell(plain, "%.0f"),
        cell(last, "%.0f"), cell(peak[key, plain > last ? "eager" : "channels_last"] / 1048576, "%.0f"),
        cell(best > 0 ? ours[key] / best : 0, "%.2f"), cell(compiled, "%.0f"), cell(peak[key, "compile"] / 1048576, "%.0f"),
        cell(compiled > 0 ? ours[key] / compiled : 0, "%.2f")
    }
  }' "$rows" >>"$page"
[ -s "$build/bench.log" ] && write "" "What went wrong while timing:" "" '```' "$(grep -v '^ *$' "$build/bench.log" | tail -n 12)" '```'
mv "$page" "$folder/gpu-$name.md"
cat "$folder/gpu-$name.md"
say "$SECONDS s; $folder/gpu-$name.md"
exit $failed
