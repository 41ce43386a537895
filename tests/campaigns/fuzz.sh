#!/bin/bash
# The campaign of bytes: gives every fuzz target RUNS inputs under AddressSanitizer and UBSan, and what they found to an
# ordinary build (make/fuzz.sh). No input may end a target, make it allocate more than it may, or take 25 s. Writes the
# section "Bytes" of docs/reliability.md. It needs clang and some two hours of two cores; it may be interrupted, and the same
# command goes on with the targets that are left.
# Usage: tests/campaigns/fuzz.sh [TARGET]...     (default: all of tests/fuzz/targets)
# Environment: RUNS   executions of each (default 1000000)
#              OUT    where results are kept (default runs/campaigns/fuzz)
# Exit code: 0 if all targets were clean, 1 if not, 2 usage, 77 skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/campaigns/page.sh
runs=${RUNS:-1000000} out=${OUT:-runs/campaigns/fuzz}
case $runs in '' | *[!0-9]*) echo "fuzz: RUNS=$runs is no number" >&2; exit 2 ;; esac
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(basename -s .cpp tests/fuzz/targets/*.cpp)
for target in "${targets[@]}"; do
  [ -f "tests/fuzz/targets/$target.cpp" ] || { echo "fuzz: unknown target $target" >&2; exit 2; }
done
mkdir -p "$out" || exit 1
rows=$out/rows  # A line a target, as make/fuzz.sh prints it.
touch "$rows"
# enough: prints the targets that have had RUNS executions.
enough() { awk -F'|' -v runs="$runs" '$3 + 0 >= runs + 0 { gsub(/ /, "", $2); print $2 }' "$rows"; }
for target in "${targets[@]}"; do
  enough | grep -qx "$target" && continue
  sed -i "/^| $target /d" "$rows"
  make fuzz RUNS="$runs" ONLY="$target" >"$out/$target.log" 2>&1
  if grep -q 'skipped, since' "$out/$target.log"; then
    tail -n 1 "$out/$target.log"
    exit 77
  fi
  grep "^| $target " "$out/$target.log" | tee -a "$rows" || { tail -n 5 "$out/$target.log" >&2; exit 1; }
done
{
  echo "Written by \`tests/campaigns/fuzz.sh\` on $(date -u +%F) ($(machine)), whose head says how it is done."
  echo "edges: how many branches of the target's code its inputs reach. corpus: inputs that reached something new."
  echo
  echo "| target | executions | seconds | edges | corpus | result |"
  echo "|---|---|---|---|---|---|"
  sed 's/  */ /g' "$rows" | sort
} | section Bytes
short=$(grep -vxF -f <(enough) < <(printf '%s\n' "${targets[@]}"))
[ -z "$short" ] || { echo "fuzz: fewer than $runs executions of" $short >&2; exit 1; }
! grep -qv '| clean *|$' "$rows"
