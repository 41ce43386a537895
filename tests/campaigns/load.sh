#!/bin/bash
# The campaign of load, on this machine alone: 32 ranks of LeNet; 500 connections of strangers (load/strangers.cpp) while
# four ranks meet, and while they train; 10,000 batches on four ranks, synchronous and asynchronous. The ranks must meet, a
# batch may take at most 5% longer with strangers than without, and each rank's resident memory at the end may be at most 2%
# above that after 500 batches. Writes the section "Load" of docs/reliability.md.
# It needs `make campaigns`; the times are worth something only where nothing else runs. About 20 minutes.
# Usage: tests/campaigns/load.sh [PART]...     ranks rendezvous train memory (default: all)
# Environment: PAIRS    runs with strangers, and as many without, by turns (default 10)
#              BATCHES  of the runs whose memory is read (default 10000)
#              OUT      where results are kept (default runs/campaigns/load)
#              BUILD    the folder of the build (default build), DUPLEX the program
# Exit code: 0 if every promise was kept, 1 if not, 2 usage.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/campaigns/page.sh
build=$(realpath "${BUILD:-build}") out=${OUT:-runs/campaigns/load} pairs=${PAIRS:-10} batches=${BATCHES:-10000}
duplex=$(realpath "${DUPLEX:-$([ "${BUILD:-build}" = build ] && echo bin || echo "$build/bin")/duplex}")
kills=$build/campaigns/kills strangers=$build/campaigns/strangers
for needed in "$duplex" "$kills" "$strangers"; do
  [ -f "$needed" ] || { echo "load: $needed is not there: make campaigns" >&2; exit 2; }
done
parts=("$@")
[ $# -gt 0 ] || parts=(ranks rendezvous train memory)
for part in "${parts[@]}"; do
  case $part in ranks | rendezvous | train | memory) ;; *) echo "load: unknown part $part (known: ranks rendezvous train memory)" >&2; exit 2 ;; esac
done
mkdir -p "$out" || exit 1
rows=$out/rows  # A line a measurement: part|what|result|1 if a promise was broken. A new one replaces that of the same name.
touch "$rows"
export OMP_WAIT_POLICY=passive
work=$(mktemp -d)
began=()
# Everything that still runs was started here.
trap 'for process in "${began[@]}"; do kill "$process" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
"$kills" data "$work/data" 960 20
common=(--net lenet --datadir "$work/data" --batch 8 --threads 1)
first_port=20000  # The kernel hands out ports from 32768 on.

# nodes COUNT: a nodefile with so many ports that were not used before; $ports are these.
nodes() {
  ports=()
  local i
  for ((i = 0; i < $1; i++)); do ports+=($((first_port++))); done
  printf '127.0.0.1:%d\n' "${ports[@]}" >"$work/nodes"
}

# note PART WHAT RESULT BROKEN
note() {
  grep -vF "$1|$2|" "$rows" >"$work/rows"
  { cat "$work/rows"; echo "$1|$2|$3|$4"; } >"$rows"
  echo "load: $1, $2: $3$([ "$4" = 0 ] || echo '  BROKEN')"
}

launched() { # launched [FLAG]...: runs all ranks of the nodefile in $work/run
  rm -rf "$work/run"
  "$duplex" launch --nodefile "$work/nodes" -- "${common[@]}" --logdir "$work/run" "$@" >"$work/log" 2>&1
}

# seconds COMMAND...: runs it, with the seconds that it took in $took.
seconds() {
  local begin=$EPOCHREALTIME
  "$@"
  local code=$?
  took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  return $code
}

# median: of the numbers on standard input.
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# step_s FILE: the median seconds of a step in metrics.csv, without its first tenth.
step_s() {
  local steps
  steps=$(($(wc -l <"$1") - 1))
  tail -n $((steps - steps / 10)) "$1" | cut -d , -f 5 | median
}

many_ranks() {
  local server code
  for server in distributed central; do
    nodes 32
    seconds launched --server $server --batches 20 --timeout 60
    code=$?
    local left
    left=$(find "$work/run" -name 'rank-*.json' | wc -l)
    note "32 ranks" "$server" "exit code $code, $left ranks trained to the end, $took s in all" $((code != 0 || left != 32))
  done
}

# Three ranks wait for the fourth for five seconds, in which the strangers come.
rendezvous() {
  local with rank codes begin
  for with in without with; do
    nodes 4
    began=()
    codes=0
    rm -rf "$work/run"
    for rank in 0 1 2 3; do
      if [ $rank = 3 ]; then
        if [ $with = with ]; then
          "$strangers" 500 0 "${ports[@]:0:3}" >"$work/strangers" &
          began+=($!)
        fi
        sleep 5
        begin=$EPOCHREALTIME
      fi
      "$duplex" dist "${common[@]}" --nodefile "$work/nodes" --index $rank --logdir "$work/run" --job rendezvous --batches 20 \
        --timeout 60 >"$work/log-$rank" 2>&1 &
      began+=($!)
    done
    wait "${began[-1]}" || codes=1
    took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    for rank in 0 1 2; do wait "${began[rank]}" || codes=1; done
    if [ $with = with ]; then kill "${began[3]}"; wait "${began[3]}"; fi
    began=()
    note "rendezvous" "$with 500 strangers" \
      "exit codes $([ $codes = 0 ] && echo 'all 0' || echo 'not all 0'), the last rank took $took s in all$([ $with = with ] && sed 's/^strangers: /; /' "$work/strangers")" $codes
  done
}

# By turns, so that what else the machine does falls on both.
training() {
  local pair with code bad=0
  : >"$work/with"
  : >"$work/without"
  for ((pair = 0; pair < pairs; pair++)); do
    for with in without with; do
      nodes 4
      began=()
      if [ $with = with ]; then
        "$strangers" 500 0 "${ports[@]}" >"$work/strangers" &
        began=($!)
      fi
      launched --batches 400 --timeout 60
      code=$?
      if [ $with = with ]; then kill "${began[0]}"; wait "${began[0]}"; began=(); fi
      [ $code = 0 ] || bad=1
      step_s "$work/run/metrics.csv" >>"$work/$with"
    done
  done
  local ratio
  paste "$work/without" "$work/with" | awk '{ print $2 / $1 }' | sort -g >"$work/ratios"
  ratio=$(median <"$work/ratios")
  awk -v ratio="$ratio" 'BEGIN { exit ratio > 1.05 }' || bad=1
  note "training" "500 strangers at 4 ranks" \
    "$(median <"$work/without") s a batch without, $(median <"$work/with") s with; ratio of a pair $ratio ($(head -n 1 "$work/ratios") to $(tail -n 1 "$work/ratios")), $pairs pairs" $bad
}

# resident PID: KiB of its resident memory.
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status" 2>/dev/null; }

# watch: what each rank has after 500 batches goes to $work/early, and all that it has in the last tenth to
# $work/late, until the launcher has ended.
watch() {
  local step process rank
  : >"$work/early"
  : >"$work/late"
  while kill -0 "${began[0]}" 2>/dev/null; do
    step=$(wc -l 2>/dev/null <"$work/run/metrics.csv" || echo 0)
    for process in $(pgrep -f "dist.*$work/run.*--index"); do
      rank=$(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline" | sed -n 's/.*--index \([0-9]*\).*/\1/p')
      [ "$rank" ] || continue
      if [ "$step" -ge 500 ] && ! grep -q "^$rank " "$work/early"; then echo "$rank $(resident "$process")" >>"$work/early"; fi
      if [ "$step" -ge $((batches * 9 / 10)) ]; then echo "$rank $(resident "$process")" >>"$work/late"; fi
    done
    sleep 0.5
  done
}

memory() {
  local mode code bad text
  for mode in "join distributed" "join central" "none distributed" "none central"; do
    nodes 4
    rm -rf "$work/run"
    "$duplex" launch --nodefile "$work/nodes" -- "${common[@]}" --logdir "$work/run" --sync "${mode% *}" --server "${mode#* }" \
      --batches "$batches" --timeout 60 >"$work/log" 2>&1 &
    began=($!)
    watch
    wait "${began[0]}"
    code=$?
    began=()
    awk '$2 > most[$1] { most[$1] = $2 } END { for (rank in most) print rank, most[rank] }' "$work/late" | sort >"$work/last"
    sort "$work/early" | join - "$work/last" >"$work/both"
    text=$(awk '{ printf "%srank %s %.1f to %.1f MiB (%+.1f%%)", (NR > 1 ? ", " : ""), $1, $2 / 1024, $3 / 1024, 100 * ($3 / $2 - 1) }' "$work/both")
    bad=$(awk '$3 > 1.02 * $2 { bad = 1 } END { print (bad || NR != 4) + 0 }' "$work/both")
    note "memory" "$batches batches, --sync ${mode% *}, ${mode#* }" "exit code $code; $text" $((bad || code != 0))
  done
}

for part in "${parts[@]}"; do
  case $part in ranks) many_ranks ;; rendezvous) rendezvous ;; train) training ;; memory) memory ;; esac
done
{
  echo "Written by \`tests/campaigns/load.sh\` on $(date -u +%F) ($(machine)), whose head says how it is done. All of it is LeNet"
  echo "on one machine. Memory is what is resident after 500 batches, and the most of the last tenth."
  echo
  echo "| part | what | result | promise |"
  echo "|---|---|---|---|"
  awk -F'|' '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 == 0 ? "kept" : "broken" }' "$rows"
} | section Load
! grep -q '|1$' "$rows"
