# Part of tools/gpu_check.sh: tests on the GPU. The result of each test program is a section of tests.md. A line at its
# head has the program's name, how it ended (passed, failed, cut, open, lacking), and the mark of the sources. A run
# that goes on repeats those that have neither passed nor failed.

# section NAME HOW LINE... adds a section.
section() {
  local name=$1 how=$2
  shift 2
  { echo "<!-- gpu_check $name $how $of_tests -->"; printf '%s\n' "$@"; } >>"$tests"
}

keep_tests() {
  awk -v mark="$of_tests" '/^<!-- gpu_check / { keep = $5 "" == mark && ($4 == "passed" || $4 == "failed") } keep' "$tests" >"$tests.new"
  mv "$tests.new" "$tests"
}

tested() { grep -q "^<!-- gpu_check $1 " "$tests"; }
tests_failed() { grep -qE '^<!-- gpu_check [a-z]+ (failed|cut) ' "$tests"; }

# suite FOLDER FILTER runs a folder's tests on the GPU.
suite() {
  local log=$logs/$1.log status passed skipped told
  tested "$1" && return
  in_time 20 || { section "$1" cut "- $1: not run, no time was left"; return; }
  say "tests of $1"
  capped 200 "$build/tests/$1" --gtest_color=no --gtest_filter="$2" >"$log" 2>&1
  status=$?
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log")
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/, \1 skipped/p' "$log")
  told="- $1: ${passed:-$(grep -c '^\[       OK \]' "$log")} passed$skipped"
  if [ $status = 0 ] && { [ "${passed:-0}" = 0 ] || grep -q '^\[  SKIPPED \] MakeDevice.RunsEveryTestOnAGpu' "$log"; }; then
    section "$1" failed "$told; they found no GPU: $(capped 20 "$duplex" bench --net lenet --steps 1 --device cuda 2>&1 | tail -n 1)"
  elif [ $status = 0 ]; then
    section "$1" passed "$told"
  else
    cut_off $status && told+=", then stopped after its time"
    section "$1" "$(cut_off $status && echo cut || echo failed)" "$told, exit code $status" "" '```' \
      "$(awk -f tools/gpu_check/failures.awk "$log")" '```' ""
  fi
  page
}

# sanitizer runs a training of four steps under compute-sanitizer, which lies beside nvcc or close to it.
sanitizer() {
  local log=$logs/sanitizer.log status folder program=
  tested sanitizer && return
  folder=$(dirname "$(readlink -f "$(command -v "${nvcc:-nvcc}")")")
  for program in "$(command -v compute-sanitizer)" "$folder/compute-sanitizer" "$folder/../compute-sanitizer/compute-sanitizer" \
    /usr/local/cuda*/bin/compute-sanitizer ''; do
    [ -x "$program" ] && break
  done
  [ "$program" ] || { section sanitizer open "- compute-sanitizer: not here"; return; }
  in_time 30 || { section sanitizer open "- compute-sanitizer: not run, no time was left"; return; }
  say "compute-sanitizer"
  capped 90 "$program" --error-exitcode 9 --report-api-errors no "$duplex" bench --net lenet --batch 16 --steps 2 --layout nhwc \
    --device cuda >"$log" 2>&1
  status=$?
  if [ $status = 0 ]; then
    section sanitizer passed "- compute-sanitizer, LeNet, 4 steps: $(grep 'ERROR SUMMARY' "$log" | sed 's/=* *//')"
  elif cut_off $status; then
    section sanitizer open "- compute-sanitizer, LeNet: stopped after its time; it had not ended"
  else
    section sanitizer failed "- compute-sanitizer, LeNet: exit code $status" "" '```' "$(grep -v '^ *$' "$log" | head -n 30)" '```' ""
  fi
}
