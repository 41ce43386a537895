#!/bin/bash
# Runs test programs and ends with one line, `N passed, N failed, N skipped`. A program gets one
# line; what failed is shown in full, what was skipped with its reason. A program that crashes or
# ends without GoogleTest's summary counts as one failure.
# Usage: make/test.sh PROGRAM...    A program ending in .sh is one test: exit code 0 passes.
set -u
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

count() { sed -n "s/^\[  $1  \] \([0-9]*\) test.*/\1/p" "$log" | tail -n1; }

for program; do
  name=${program##*/}
  start=$(date +%s%N)
  if [[ $program == *.sh ]]; then bash "$program" >"$log" 2>&1; else "$program" --gtest_color=no >"$log" 2>&1; fi
  code=$?
  seconds=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.1f", ns / 1e9 }')
  if [[ $program == *.sh ]]; then
    ok=$((code == 0)) bad=$((code != 0)) skip=0
  else
    # GoogleTest names a failed or skipped test with a full stop in it; the summary has a count.
    ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n1)
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*listed below:$/\1/p' "$log" | tail -n1)
    skip=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*listed below:$/\1/p' "$log" | tail -n1)
    ok=${ok:-0} bad=${bad:-0} skip=${skip:-0}
    if ((code != 0 && bad == 0)); then bad=1; fi
  fi
  printf '%-24s %4d passed, %d failed, %d skipped  (%s s)\n' "$name" "$ok" "$bad" "$skip" "$seconds"
  if ((code != 0)); then
    echo "---- $name (exit code $code)"
    # Without the lines of what went well.
    grep -v -e '^\[       OK ' -e '^\[-----' -e '^$' -e '^\[ RUN  .*' "$log" | tail -n 400
    last=$(grep '^\[ RUN ' "$log" | tail -n1)
    if ((code > 128)) && [ "$last" ]; then echo "died of signal $((code - 128)) in ${last#*] }"; fi
    echo "----"
  elif ((skip > 0)); then
    awk '/^\[ RUN /{delete said; n = 0} /^\[  SKIPPED \].*\(/{for (i = 0; i < n; i++) print "  " said[i]; print "  " $0; n = 0} {said[n++] = $0}' "$log" |
      grep -v '^  \[ RUN' | sort -u | head -n 40
  fi
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
