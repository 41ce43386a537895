#!/bin/bash
# The campaign of kills: trains LeNet on three ranks of this machine again and again, and sends SIGKILL, SIGSTOP (and
# SIGCONT after the deadline) or SIGTERM to one rank or to the launcher, at a call that a library for LD_PRELOAD counts
# (preload/watch.h): in each mode, role and phase, with ranks that are started by hand and by launch. Who is left must end
# or go on as promised within the deadline of 2 s and 5 s more, and name the culprit; a checkpoint must load; and the
# training that goes on from it must end with the bits of an undisturbed one. Writes the section "Kills" of
# docs/reliability.md.
# It needs `make campaigns`, oneDNN (whose primitives are the steps of computing), and about 3 s a run. It may be
# interrupted: the same command goes on, and more RUNS add to those that are there. A run that breaks a promise
# stays in OUT/PART/broken-RUN with all output.
# Usage: tests/campaigns/kills.sh [RUNS]      default 2200; each cell comes once before one comes twice
#        tests/campaigns/kills.sh page        writes the section again
# Environment: SEED   of the order and of the places (default 1)
#              JOBS   runs at one time (default 1)
#              ONLY   a text that "MODE; ROLE; PHASE; START; SIGNAL" must contain, as "write; launched; KILL"; such runs write
#                     no section
#              OUT    where results are kept (default runs/campaigns/kills)
#              BUILD  the folder of the build (default build), DUPLEX the program
# Exit code: 0 if every promise was kept, 1 if not, 2 usage.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/campaigns/page.sh
build=$(realpath "${BUILD:-build}") out=${OUT:-runs/campaigns/kills} jobs=${JOBS:-1} seed=${SEED:-1} runs=${1:-2200}
DUPLEX=$(realpath "${DUPLEX:-$([ "${BUILD:-build}" = build ] && echo bin || echo "$build/bin")/duplex}")
export DUPLEX
kills=$build/campaigns/kills library=$build/campaigns/at_call.so
case $runs in page | [0-9]*) ;; *) sed -n '/^# Usage/,/^# Exit/s/^# //p' "$0" >&2; exit 2 ;; esac
for needed in "$DUPLEX" "$kills" "$library"; do
  [ -f "$needed" ] || { echo "kills: $needed is not there: make campaigns" >&2; exit 2; }
done

if [ "$runs" != page ]; then
  mkdir -p "$out"
  running=()
  trap '[ ${#running[@]} = 0 ] || kill "${running[@]}" 2>/dev/null; exit 130' INT TERM HUP
  for ((part = 0; part < jobs; part++)); do
    "$kills" run "$out" "$library" "$runs" "$seed" "$part" "$jobs" ${ONLY:+"$ONLY"} >>"$out/$part.log" 2>&1 &
    running+=($!)
  done
  bad=0
  for process in "${running[@]}"; do wait "$process" || bad=1; done
  [ $bad = 0 ] || grep -h -A 5 'BROKEN\|^kills: ' "$out"/*.log | tail -n 40
  [ -z "${ONLY:-}" ] || { "$kills" table "$out"/*.csv; exit $bad; }
fi
bad=0
{
  echo "Written by \`tests/campaigns/kills.sh\` on $(date -u +%F) ($(machine)), whose head says how it is done."
  echo "Deadlines (\`--timeout\`) are 2 s. ended: seconds from the signal until the last survivor had ended; again: until all ranks"
  echo "trained again, where launch started them again."
  echo
  "$kills" table "$out"/*.csv || bad=1
  [ $bad = 0 ] || touch "$out/bad"
} | section Kills
[ ! -e "$out/bad" ] || { rm "$out/bad"; exit 1; }
