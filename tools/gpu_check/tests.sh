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
    capped 20 "$duplex" bench --net lenet --steps 1 --device cuda >"$logs/no-gpu.log" 2>&1
    section "$1" failed "$told; they found no GPU: $(tail -n 1 "$logs/no-gpu.log")"
  elif [ $status = 0 ]; then
    section "$1" passed "$told"
  else
    cut_off $status && told+=", then stopped after its time"
    section "$1" "$(cut_off $status && echo cut || echo failed)" "$told, exit code $status" "" '```' \
      "$(awk -f tools/gpu_check/failures.awk "$log")" '```' ""
  fi
  page
}

# smoke trains LeNet for some steps in every precision and layout. It fails where float32 trains in no layout: an older GPU
# may lack tf32 and bf16, and a layout.
smoke() {
  local log=$logs/smoke.log precision layout status trains= lacks=
  tested smoke && return
  in_time 30 || { section smoke open "- smoke: not run, no time was left"; return; }
  say "smoke"
  for precision in float32 tf32 bf16; do
    for layout in nchw nhwc; do
      echo "== $precision $layout" >>"$log"
      capped 30 "$duplex" bench --net lenet --batch 16 --steps 2 --precision $precision --layout $layout --device cuda --row >>"$log" 2>&1
      status=$?
      if cut_off $status; then
        section smoke open "- smoke: stopped after its time, in $precision in ${layout^^}"
        return
      elif [ $status = 0 ]; then
        trains+="$precision "
      else
        lacks+="${lacks:+, }$precision in ${layout^^}"
      fi
    done
  done
  if [ ! "$lacks" ]; then
    section smoke passed "- smoke: LeNet trains in float32, tf32 and bf16, in NCHW and NHWC"
  else
    section smoke "$(case $trains in *float32*) echo passed ;; *) echo failed ;; esac)" "- smoke: LeNet does not train in $lacks" \
      "" '```' "$(grep -v '^ *$' "$log" | tail -n 30 | cut -c 1-300)" '```' ""
  fi
}

# sanitizers runs LeNet under the tools of compute-sanitizer, which lies beside nvcc or close to it.
sanitizers() {
  local folder program= tool
  folder=$(dirname "$(readlink -f "$(command -v "${nvcc:-nvcc}")")")
  for program in "$(command -v compute-sanitizer)" "$folder/compute-sanitizer" "$folder/../compute-sanitizer/compute-sanitizer" \
    /usr/local/cuda*/bin/compute-sanitizer ''; do
    [ -x "$program" ] && break
  done
  for tool in memcheck racecheck initcheck; do sanitizer $tool "$program"; done
}

# sanitizer TOOL PROGRAM: LeNet trains for four steps.
sanitizer() {
  local log=$logs/$1.log status
  tested "$1" && return
  [ "$2" ] || { section "$1" lacking "- $1: there is no compute-sanitizer here"; return; }
  in_time 30 || { section "$1" open "- $1: not run, no time was left"; return; }
  say "compute-sanitizer, $1"
  capped 90 "$2" --tool "$1" --error-exitcode 9 --report-api-errors no "$duplex" bench --net lenet --batch 16 --steps 2 --layout nhwc \
    --device cuda >"$log" 2>&1
  status=$?
  if [ $status = 0 ]; then
    section "$1" passed "- $1, LeNet, 4 steps: $(sed -n 's/^=* *\([A-Z]* SUMMARY: .*\)/\1/p' "$log" | tail -n 1)"
  elif cut_off $status; then
    section "$1" open "- $1, LeNet: stopped after its time; it had not ended"
  elif [ "$1" = initcheck ] && ! grep -q duplex:: "$log"; then  # A library may read what it does not use.
    section "$1" passed "- $1, LeNet: $(grep -c 'Uninitialized' "$log") reads of values that nobody wrote, all in kernels of libraries"
  else
    section "$1" failed "- $1, LeNet: exit code $status" "" '```' "$(grep -v '^ *$' "$log" | head -n 30)" '```' ""
  fi
}
