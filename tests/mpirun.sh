#!/bin/bash
# Tests ranks that Open MPI's mpirun starts. Exit code 77 means skipped; a message says why.
set -eu
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 77; }
command -v mpirun > /dev/null || skip "needs mpirun (openmpi-bin)"
mpirun --version 2> /dev/null | grep -q 'Open MPI' || skip "mpirun is not Open MPI's"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; cat "$work"/log-*; exit 1; }

duplex=${DUPLEX:-bin/duplex}
# The test has ports of its own.
export MASTER_PORT=$((20000 + $$ % 10000))  # These are below the ephemeral ports.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# ranks NAME FLAGS...: runs three ranks, as processes of this machine.
ranks() {
  local name=$1
  shift
  timeout -k 2 20 mpirun -np 3 --oversubscribe --bind-to none "$duplex" dist --net lenet --device replay:0.01 \
    --batches 5 --job "mpirun $$" --timeout 10 --logdir "$work/$name" "$@" > "$work/log-$name" 2>&1
}

ranks distributed || fail "three ranks of mpirun: exit code $?"
for rank in 0 1 2; do
  grep -q "^rank $rank of 3 (from Open MPI: OMPI_COMM_WORLD_RANK; " "$work/log-distributed" || fail "rank $rank is not told"
  [ -s "$work/distributed/rank-$rank.json" ] || fail "rank $rank left nothing"
done
ranks central --server central || fail "a central server: exit code $?"
[ -s "$work/central/rank-2.json" ] || fail "a worker of the central server left nothing"

printf '127.0.0.1:%d\n' "$MASTER_PORT" $((MASTER_PORT + 1)) $((MASTER_PORT + 2)) > "$work/nodes"
ranks nodefile --nodefile "$work/nodes" || fail "a nodefile: exit code $?"
grep -q '^rank 1 of 3 (from Open MPI: OMPI_COMM_WORLD_RANK; nodefile ' "$work/log-nodefile" || fail "rank 1 of the nodefile is not told"

# A setting that contradicts mpirun ends the whole run with a usage error.
printf '127.0.0.1 slots=2\n' > "$work/nodes"
ranks short --nodefile "$work/nodes" && fail "a nodefile of two ranks was taken for three"
grep -q 'OMPI_COMM_WORLD_SIZE=3 contradict' "$work/log-short" || fail "no word of the nodefile's two ranks"
code=0
RANK=2 ranks other || code=$?
[ $code = 2 ] || fail "RANK=2 for all: exit code $code"
grep -q 'OMPI_COMM_WORLD_RANK=0 and RANK=2 contradict' "$work/log-other" || fail "no word of RANK=2"

if command -v mpiexec.hydra > /dev/null; then
  timeout -k 2 20 mpiexec.hydra -n 2 "$duplex" dist --net lenet --device replay:0.01 --batches 5 --timeout 10 \
    --job "hydra $$" --logdir "$work/hydra" > "$work/log-hydra" 2>&1 || fail "two ranks of MPICH: exit code $?"
  grep -q '^rank 1 of 2 (from MPICH: PMI_RANK; ' "$work/log-hydra" || fail "rank 1 of MPICH is not told"
fi
