#!/bin/bash
# The campaign of storage: trains LeNet, alone and on three ranks, on disks that are full, on folders that may not be
# written, and through kills at every call that writes a checkpoint. The training must end by itself and say which file it
# could not write; what it has must load, from the newest checkpoint that is whole; and the training that goes on from there
# must end with the bits of an undisturbed one. Writes the section "Storage" of docs/reliability.md.
# A disk is a tmpfs, in a mount namespace of its own; its size goes from nothing to all that the run needs, in steps of STEP,
# so that every write meets its end. It needs `make campaigns`, root, and some 20 minutes; it may be interrupted, and the
# same command goes on.
# Usage: tests/campaigns/storage.sh [PART]...     full read-only kill (default: all)
# Environment: STEP   KiB between two sizes of the disk (default 64, what is written at one time)
#              OUT    where results are kept (default runs/campaigns/storage)
#              BUILD  the folder of the build (default build), DUPLEX the program
# Exit code: 0 if every promise was kept, 1 if not, 2 usage, 77 skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${IN_OWN_MOUNTS:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "skipped: mounting a small disk needs root"; exit 77; }
  unshare --mount true 2>/dev/null || { echo "skipped: mount namespaces may not be made here"; exit 77; }
  IN_OWN_MOUNTS=1 exec unshare --mount --propagation private bash tests/campaigns/storage.sh "$@"
fi
. tests/campaigns/page.sh
build=$(realpath "${BUILD:-build}") out=${OUT:-runs/campaigns/storage} step=${STEP:-64}
duplex=$(realpath "${DUPLEX:-$([ "${BUILD:-build}" = build ] && echo bin || echo "$build/bin")/duplex}")
kills=$build/campaigns/kills library=$build/campaigns/at_call.so
for needed in "$duplex" "$kills" "$library"; do
  [ -f "$needed" ] || { echo "storage: $needed is not there: make campaigns" >&2; exit 2; }
done
parts=("$@")
[ $# -gt 0 ] || parts=(full read-only kill)
for part in "${parts[@]}"; do
  case $part in full | read-only | kill) ;; *) echo "storage: unknown part $part (known: full read-only kill)" >&2; exit 2 ;; esac
done
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
rows=$out/rows  # A line a run: what|where|1 if it ended wrongly|did not load|has other bits|a note.
touch "$rows"
export OMP_WAIT_POLICY=passive
umask 022
work=$(mktemp -d)
chmod 755 "$work"
disk=$work/disk
mkdir "$disk"
trap 'umount "$disk" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP
"$kills" data "$work/data" 96 20
cp "$duplex" "$work/duplex"  # Others than root can run it there.
common=(--net lenet --datadir "$work/data" --batch 6 --threads 1 --batches 16 --checkpoint-every 4 --optimizer adam)
as=()  # A command that the program is run by.
port=20000  # The kernel hands out ports from 32768 on.

# alone LOGDIR [FLAG]...: trains on one machine. Output goes to $work/log-0; returns the exit code.
alone() {
  local logdir=$1
  shift
  # The redirection of the group drops the shell's own notice of a kill.
  { timeout -k 1 60 "${as[@]}" "$work/duplex" local "${common[@]}" --logdir "$logdir" "$@" >"$work/log-0" 2>&1; } 2>/dev/null
}

# together LOGDIR [FLAG]...: trains on three ranks, of which rank 1 writes to LOGDIR and the others to $work/others. Returns
# rank 1's exit code, or 99 where another rank ends otherwise than with 0, 1 or 3.
together() {
  local logdir=$1 rank codes=() pids=()
  shift
  port=$((port >= 32000 ? 20000 : port + 3))
  for rank in 0 1 2; do echo "127.0.0.1:$((port + rank))"; done >"$work/nodes"
  for rank in 0 1 2; do
    timeout -k 1 60 "${as[@]}" "$work/duplex" dist "${common[@]}" --timeout 10 --job "storage$port" --nodefile "$work/nodes" \
      --index $rank --logdir "$([ $rank = 1 ] && echo "$logdir" || echo "$work/others")" "$@" >"$work/log-$rank" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1 2; do wait "${pids[rank]}"; codes[rank]=$?; done
  for rank in 0 2; do case ${codes[rank]} in 0 | 1 | 3) ;; *) return 99 ;; esac; done
  return "${codes[1]}"
}

# newest FOLDER...: the newest step of which every folder's rank has a whole file; one that has its name is whole.
newest() {
  local folder step found=0
  for step in "$1"/checkpoints/step-*; do
    [ -d "$step" ] || continue
    local all=1
    for folder; do compgen -G "$folder/checkpoints/${step##*/}/rank-*.safetensors" >/dev/null || all=; done
    [ -z "$all" ] || found=$((10#${step##*-}))
  done
  echo "$found"
}

# went_on_after: the step that the last run went on from, as its log says; 0 where it began.
went_on_after() { sed -n 's/.*goes on after \([0-9]*\) steps.*/\1/p' "$work/log-0" | head -n 1 | grep . || echo 0; }

done_already() { grep -qF "$1|$2|" "$rows"; }

# judge WHAT WHERE HOW LOGDIR CODE EXPECTED SAID: goes on, and notes what came of it. HOW is alone or together; the exit
# code must match EXPECTED, and where it is not 0 the log must match SAID.
judge() {
  local what=$1 where=$2 how=$3 logdir=$4 code=$5 expected=$6 said=$7 wrong=0 lost=0 bits=0 note= from
  [[ $code =~ ^($expected)$ ]] || { wrong=1 note="exit code $code"; }
  if [ "$code" != 0 ] && ! grep -qE "$said" "$work"/log-*; then wrong=1 note+="; not said: $said"; fi
  mkdir "$work/said" && mv "$work"/log-* "$work/said/"
  local folders=("$logdir")
  [ "$how" = alone ] || folders+=("$work/others")
  from=$(newest "${folders[@]}")
  "$how" "$logdir" --resume
  code=$?
  [ $code = 0 ] || { lost=1 note+="; going on ends with $code: $(tail -n 1 "$work/log-0")"; }
  [ "$(went_on_after)" -ge "$from" ] || { lost=1 note+="; went on after $(went_on_after), and $from was there"; }
  local trained=$logdir/checkpoint.safetensors
  [ "$how" = alone ] || trained=$work/others/checkpoint.safetensors
  cmp -s "$trained" "$work/whole-$how/checkpoint.safetensors" || { bits=1 note+="; other bits"; }
  echo "$what|$where|$wrong|$lost|$bits|${note//|/;}" >>"$rows"
  if [ "$note" ]; then
    echo "storage: $what, $where: $note"
    mkdir -p "$out/broken-$what-$where/going-on" && cp "$work"/log-* "$out/broken-$what-$where/going-on/"
    cp "$work"/said/log-* "$out/broken-$what-$where/"
  fi
  rm -rf "$work/said"
}

as_fresh() { rm -rf "$work/others" "$work/run" "$work"/log-*; }

# ---- The undisturbed runs, and how much room they need.
alone "$work/whole-alone" || { cat "$work/log-0"; exit 1; }
together "$work/whole-rank" || { cat "$work"/log-*; exit 1; }
mv "$work/others" "$work/whole-together"

# full HOW: a disk of each size.
full() {
  local how=$1 kib need
  need=$(du -sk "$work/whole-$([ "$how" = alone ] && echo alone || echo rank)" | cut -f 1)
  need=$((need + need / 2 + 1024))  # One more checkpoint is there while it is written.
  for ((kib = 4; kib < need; kib += step)); do
    done_already "full disk, $how" "$kib KiB" && continue
    as_fresh
    mount -t tmpfs -o "size=${kib}k" disk "$disk" || return 1
    "$how" "$disk/run"
    local code=$?
    mount -o remount,size=64m "$disk"
    judge "full disk, $how" "$kib KiB" "$how" "$disk/run" $code '0|1' 'No space left on device'
    umount "$disk"
  done
}

# read_only HOW: an ordinary user who may not write the run directory, or may no longer write the folder of checkpoints.
read_only() {
  local how=$1 code process
  as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  chmod 1777 "$work"
  if ! done_already "read-only, $how" "from the beginning"; then
    as_fresh
    mkdir "$work/run"
    chmod 555 "$work/run"
    "$how" "$work/run/below"
    code=$?
    chown 65534 "$work/run" && chmod 755 "$work/run"
    judge "read-only, $how" "from the beginning" "$how" "$work/run/below" $code 1 'Permission denied'
  fi
  local at
  for at in 4 8 12; do
    done_already "read-only, $how" "from step $at" && continue
    as_fresh
    install -d -o 65534 "$work/run"
    # The folder may be written no more from the moment when the checkpoint of that step is whole.
    (
      until compgen -G "$work/run/checkpoints/step-*$at/rank-*.safetensors" >/dev/null; do :; done
      chmod 555 "$work/run/checkpoints"
    ) &
    process=$!
    "$how" "$work/run"
    code=$?
    kill $process 2>/dev/null
    wait $process 2>/dev/null
    chmod 755 "$work/run/checkpoints"
    judge "read-only, $how" "from step $at" "$how" "$work/run" $code '0|1' 'Permission denied'
  done
  as=()
}

# kill_writing: SIGKILL before and after every call that writes a checkpoint of a training on one machine.
kill_writing() {
  local event count number moment
  as_fresh
  AT_CALL_FOLDER=$work LD_PRELOAD=$library alone "$work/run" || { cat "$work/log-0"; return 1; }
  cp "$work/counts-0" "$work/counts"
  for event in open write pwrite fsync rename; do
    count=$(sed -n "s/^$event //p" "$work/counts")
    for ((number = 1; number <= count; number++)); do
      for moment in before after; do
        done_already "kill, alone" "$moment $event $number" && continue
        as_fresh
        rm -f "$work/mark"
        AT_CALL_FOLDER=$work AT_CALL_RANK=0 AT_CALL_EVENT=$event AT_CALL_NUMBER=$number AT_CALL_MOMENT=$moment AT_CALL_SIGNAL=9 \
          LD_PRELOAD=$library alone "$work/run"
        judge "kill, alone" "$moment $event $number" alone "$work/run" $? 137 ''
      done
    done
  done
}

for part in "${parts[@]}"; do
  case $part in
    full) full alone; full together ;;
    read-only) read_only alone; read_only together ;;
    kill) kill_writing ;;
  esac
done

{
  echo "Written by \`tests/campaigns/storage.sh\` on $(date -u +%F) ($(machine)), whose head says how it is done."
  echo "full disk: a size every $step KiB. together: one rank of three has the disk. Kills of ranks while they write are counted"
  echo "under Kills, too."
  echo
  echo "| what | runs | wrong ending | not loaded | other bits |"
  echo "|---|---|---|---|---|"
  awk -F'|' '{ runs[$1]++; wrong[$1] += $3; lost[$1] += $4; bits[$1] += $5 }
             END { for (what in runs) printf "| %s | %d | %d | %d | %d |\n", what, runs[what], wrong[what], lost[what], bits[what] }' \
    "$rows" | sort
} | section Storage
! grep -qE '^[^|]*\|[^|]*\|([01]\|)*1\|' "$rows"
