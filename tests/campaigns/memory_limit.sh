#!/bin/bash
# A network that one rank may not hold trains on several: trains VGG16E alone, and on four ranks by the plan that `plan
# --fits` finds for a part of the memory that it took alone. Each rank is in a memory cgroup of its own with that limit, so
# that the kernel ends a rank that takes more. To show that the limit counts, a rank that has the whole network runs into it.
# Writes docs/results/memory-limit.md. It needs root, a memory controller (cgroup v1 or v2), 14 GiB of memory, python3 and
# ten minutes.
# Usage: tests/campaigns/memory_limit.sh
# Environment: NET (vgg16e), BATCH (32, of the process that trains alone, and of all four ranks together), PART (45: per
#              cent of its memory), DUPLEX (bin/duplex), PAGE (the file to write; empty: none)
# Exit code: 0 if all four ranks end well within the limit, and the whole network does not; 1 if not; 77 skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "$(id -u)" = 0 ] || { echo "skipped: making cgroups needs root"; exit 77; }
duplex=$(realpath "${DUPLEX:-bin/duplex}")
net=${NET:-vgg16e} batch=${BATCH:-32} part=${PART:-45} ranks=4 page=${PAGE-docs/results/memory-limit.md}
groups=() running=()
work=$(mktemp -d)
clean() {
  local process group
  for process in "${running[@]}"; do kill -KILL "$process" 2> /dev/null; done
  wait
  for group in "${groups[@]}"; do rmdir "$group"; done
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
fail() { echo "memory_limit: $*"; exit 1; }

# new_group NAME BYTES: makes a cgroup with a limit, and sets `group' to its folder.
new_group() {
  if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
    group=/sys/fs/cgroup/memory/$1 limit_file=memory.limit_in_bytes peak_file=memory.max_usage_in_bytes
  elif grep -qw memory /sys/fs/cgroup/cgroup.controllers 2> /dev/null; then
    group=/sys/fs/cgroup/$1 limit_file=memory.max peak_file=memory.peak
    echo +memory > /sys/fs/cgroup/cgroup.subtree_control
  else
    echo "skipped: there is no memory controller here"
    exit 77
  fi
  mkdir "$group" || { echo "skipped: cgroups may not be made here"; exit 77; }
  groups+=("$group")
  echo "$2" > "$group/$limit_file" || fail "$group takes no limit"
}
# within GROUP COMMAND: runs a command in a cgroup.
within() { (echo "$BASHPID" > "$1/cgroup.procs" && shift && exec "$@"); }
peak_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["peak_memory_bytes"])' "$1"; }
mib() { awk -v bytes="$1" 'BEGIN { printf "%.0f", bytes / 1048576 }'; }

python3 - "$work" "$duplex" $((2 * batch)) << 'END' || fail "there are no images"
import subprocess, sys
sys.path[:0] = ["tools/benchmarks/memory"]
import images
print(images.packed(sys.argv[1], 224, int(sys.argv[3]), sys.argv[1], lambda words: subprocess.run([sys.argv[2], *words], check=True, stdout=subprocess.DEVNULL)))
END
data=$(echo "$work"/*.pack)
flags=(--net "$net" --classes 1000 --datadir "$data" --momentum 0.9 --lr 1e-6 --threads 1 --batches 2)

"$duplex" local "${flags[@]}" --batch "$batch" --logdir "$work/alone" > "$work/log-alone" 2>&1 || fail "$(tail -n 1 "$work/log-alone")"
alone=$(peak_of "$work/alone/summary.json")
limit=$((alone * part / 100))
echo "alone: $(mib "$alone") MiB; limit of a rank: $(mib $limit) MiB"

planning=(--net "$net" --classes 1000 --batch $((batch / ranks)) --machines $ranks --rate 1Gbit/s --t-grad 2 --momentum 0.9 --threads 1)
"$duplex" plan "${planning[@]}" --fits $((limit >> 20))MiB --file "$work/plan.json" > "$work/log-plan" 2>&1 || fail "$(tail -n 1 "$work/log-plan")"
way=$(sed -n 's/.*plan.json: \([^;]*\);.*/\1/p' "$work/log-plan")
said=$("$duplex" plan "${planning[@]}" --fits $((limit >> 20))MiB --output csv | python3 -c '
import csv, sys
rows = [row for row in csv.DictReader(sys.stdin) if row["memory_bytes"]]
print({row["way"] + "@" + row["workers"]: row["memory_bytes"] for row in rows}.get(sys.argv[1], 0))' "$way")
echo "plan: $way, $(mib "$said") MiB"

# run NAME LIMIT PLAN-FLAGS...: the ranks, each within the limit. Sets codes, and peaks by the kernel.
run() {
  local name=$1 most=$2 rank
  shift 2
  for ((rank = 0; rank < ranks; rank++)); do echo "127.0.0.1:$((23400 + rank))"; done > "$work/nodes"
  running=() codes=() peaks=()
  for ((rank = 0; rank < ranks; rank++)); do
    new_group "duplex-$name-$rank" "$most"
    within "$group" "$duplex" dist "${flags[@]}" --batch $((batch / ranks)) --nodefile "$work/nodes" --index $rank --timeout 120 \
      --logdir "$work/$name" "$@" > "$work/log-$name-$rank" 2>&1 &
    running+=($!)
  done
  for ((rank = 0; rank < ranks; rank++)); do
    wait "${running[rank]}"
    codes+=($?)
    peaks+=("$(cat "${groups[${#groups[@]} - ranks + rank]}/$peak_file")")
  done
  running=()
}
run cut $limit --plan "$work/plan.json"
rows= bad=0
for ((rank = 0; rank < ranks; rank++)); do
  if [ "${codes[rank]}" = 0 ]; then
    took=$(peak_of "$work/cut/rank-$rank.json")
    rows+="| $rank | $(mib "$took") | $((100 * took / alone))% | $(mib "${peaks[rank]}") |"$'\n'
  else
    bad=1
    echo "rank $rank: exit code ${codes[rank]}: $(tail -n 1 "$work/log-cut-$rank")"
  fi
done
printf '%s' "$rows"
run whole $limit
whole="${codes[*]}"
echo "exit codes with the whole network on each rank: $whole"
[ "$whole" != "0 0 0 0" ] || bad=1
if [ $bad = 0 ] && [ "$page" ]; then
  {
    echo '# A network that one rank may not hold'
    echo
    echo "Written by \`tests/campaigns/memory_limit.sh\` on $(date -u +%F), commit $(git rev-parse --short HEAD): $net, batch $batch, SGD with momentum, a"
    echo "thread for each rank. Alone it took $(mib "$alone") MiB (the kernel's VmHWM). Four ranks on loopback trained the same steps, of"
    echo "$batch images together, each in a memory cgroup with $part% of that, $(mib $limit) MiB: \`plan --fits $((limit >> 20))MiB\` found $way, and said"
    echo "$(mib "$said") MiB for the rank that needs the most. The kernel's cgroup also counts what it keeps of files, which it gives back"
    echo 'when memory is short.'
    echo
    echo '| rank | MiB | of one machine | cgroup, at most |'
    echo '|---|---|---|---|'
    printf '%s' "$rows"
    echo
    echo "With the whole network on each rank (\`dist\` without a plan) and the same limits, the kernel ended ranks: exit codes $whole."
  } > "$page"
fi
exit $bad
