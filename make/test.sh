#!/bin/bash
# Runs test programs and ends with one line, `N passed, N failed, N skipped`. It prints one line for
# each program, all output of what failed, and the reason of what was skipped. A program that crashes,
# hangs, or ends before GoogleTest's summary counts as one failure.
# Usage: make/test.sh PROGRAM...    A program ending in .sh is one test: exit code 0 passes, 77 is skipped, with
# the reason as its last line.
# Long programs run in parts (GTEST_TOTAL_SHARDS), so that none is left over at the end, when the others are done; the longest
# come first. Three run at a time on two cores (TEST_JOBS= another number), since many tests wait for deadlines and for each
# other's ranks; those that measure a network run alone, behind the others.
set -u
# Threads that wait for work give their core away, since tests share it with ranks and with other programs.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# A sanitizer's report fails the test that was running.
case ${SANITIZE:-} in
  1) export LSAN_OPTIONS="suppressions=$(dirname "$0")/leaks.supp:print_suppressions=0" ;;
  # ThreadSanitizer does not see how OpenMP's threads wait for each other, so there is one of them, nor how oneDNN guards
  # what it keeps: what libraries that it did not compile do is left out.
  thread) export OMP_THREAD_LIMIT=1 TSAN_OPTIONS="halt_on_error=1:exitcode=66:ignore_noninstrumented_modules=1" ;;
esac
limit=${TEST_TIMEOUT:-$([ "${SANITIZE:-}" ] && echo 3600 || echo 1800)}  # Seconds a program may take.
alone=' netlab.sh check.sh '
longest=' stand_in.sh async_accuracy.sh probe.sh lost_machine.sh report.sh '

# parts_of PROGRAM: prints in how many parts it runs.
parts_of() { case ${1##*/} in tools) echo 8 ;; models | net) echo 4 ;; *) echo 1 ;; esac; }

# lines PATTERN: prints how many lines of the log match.
lines() { grep -c -e "$1" "$log"; }

# run_one PROGRAM PART PARTS: runs it, or a part from 1 on, and prints what there is to say of it. Sets `ok`, `bad` and
# `skip`.
run_one() {
  local program=$1 name=${1##*/} script start code seconds last child
  if (($3 > 1)); then
    name+=:$2/$3
    export GTEST_TOTAL_SHARDS=$3 GTEST_SHARD_INDEX=$(($2 - 1))
  fi
  script=$([[ $program == *.sh ]] && echo yes)
  start=$(date +%s%N)
  # `timeout` has a process group of its own, which a terminal's Ctrl-C does not reach. Without job control what runs in
  # the background would ignore SIGINT.
  set -m
  if [ "$script" ]; then
    timeout -k 10 "$limit" bash "$program" >"$log" 2>&1 &
  else
    timeout -k 10 "$limit" "$program" --gtest_color=no >"$log" 2>&1 &
  fi
  child=$!
  set +m
  trap 'kill -TERM "$child" 2>/dev/null; wait "$child"; exit 130' INT TERM HUP
  # The redirection drops the shell's own notice of a crash.
  wait "$child" 2>/dev/null
  code=$?
  trap - INT TERM HUP
  seconds=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.1f", ns / 1e9 }')
  last=
  if [ "$script" ]; then
    skip=$((code == 77))
    ok=$((code == 0)) bad=$((code != 0 && code != 77))
    ((code == 77)) && code=0
  else
    ok=$(lines '^\[       OK \] ')
    bad=$(lines '^\[  FAILED  \] .* ms)$')
    skip=$(lines '^\[  SKIPPED \] .* ms)$')
    if ! grep -q '^\[=*\] .* ran\.' "$log"; then
      last=$(grep '^\[ RUN ' "$log" | tail -n1)
      bad=$((bad + 1))
      code=$((code == 0 ? 1 : code))
    elif ((code != 0 && bad == 0)); then
      bad=1  # Something outside the tests failed: a suite's fixture, or a sanitizer at the end.
    fi
  fi
  printf '%-20s %4d passed, %d failed, %d skipped   %s s\n' "$name" "$ok" "$bad" "$skip" "$seconds"
  if ((code != 0)); then
    grep -v -e '^\[       OK ' -e '^\[-----' -e '^\[ RUN ' -e '^\[=====' -e '^Running main' -e '^$' "$log" |
      head -n 600 | sed 's/^/    /'
    case $code in
      124 | 137) echo "    stopped after $limit s${last:+ in ${last#*] }}" ;;
      *) if [ "$last" ]; then echo "    ended with exit code $code in ${last#*] }"; fi ;;
    esac
  elif ((skip > 0)) && [ "$script" ]; then
    tail -n1 "$log" | sed 's/^/    /'
  elif ((skip > 0)); then
    # The reason stands between RUN and SKIPPED, and is often the same for many tests.
    awk '/^\[ RUN /      { reason = ""; next }
         /^\[  SKIPPED / { if ($0 ~ / ms\)$/) { count[reason]++; example[reason] = $4 }; next }
         /: Skipped$/    { next }
                         { reason = reason (reason == "" ? "" : " ") $0 }
         END { for (r in count) printf("    skipped %d (%s%s): %s\n", count[r], example[r],
                                       count[r] > 1 ? ", ..." : "", r) }' "$log"
  fi
}

# The script calls itself for each program, or part of one: test.sh --one RESULTS PROGRAM PART PARTS.
if [ "${1:-}" = --one ]; then
  results=$2
  log=$(mktemp -p "$results")
  text=$(run_one "${@:3}"; echo "$ok $bad $skip" >"$log.counts")
  # The output of two programs does not mix.
  flock "$results/said" printf '%s\n' "$text"
  exit 0
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
# Each is three words: program, part, parts.
long=() parted=() short=() behind=()
for program; do
  word=" ${program##*/} "
  parts=$(parts_of "$program")
  for ((part = 1; part <= parts; part++)); do
    one=("$program" "$part" "$parts")
    if [[ $alone = *$word* ]]; then
      behind+=("${one[@]}")
    elif [[ $longest = *$word* ]]; then
      long+=("${one[@]}")
    elif ((parts > 1)); then
      parted+=("${one[@]}")
    else
      short+=("${one[@]}")
    fi
  done
done
# run JOBS [PROGRAM PART PARTS]...: runs them, so many at a time.
run() { [ $# = 1 ] || printf '%s\0' "${@:2}" | xargs -0 -n 3 -P "$1" bash "$0" --one "$results"; }
jobs=1
if (($(nproc) > 1)); then jobs=$([ "${SANITIZE:-}" ] && echo 2 || echo 3); fi
# Bash before 4.4 takes an empty array for one that is not set.
run "${TEST_JOBS:-$jobs}" ${long+"${long[@]}"} ${parted+"${parted[@]}"} ${short+"${short[@]}"}
run 1 ${behind+"${behind[@]}"}
all=$(((${#long[@]} + ${#parted[@]} + ${#short[@]} + ${#behind[@]}) / 3))
# A program without counts was killed together with the script that ran it.
read -r passed failed skipped <<<"$(find "$results" -name '*.counts' -exec cat {} + | awk -v programs="$all" '
  { p += $1; f += $2; s += $3 } END { print p + 0, f + programs - NR, s + 0 }')"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
