#!/bin/bash
# make demo trains LeNet on Fashion-MNIST alone, then with two workers and a central server, then with two workers
# and a distributed server, as real processes with real TCP on loopback. Every worker computes with one thread, so
# that each stands for a machine with one core. At the end it prints what each run cost.
# Environment: FASHION_MNIST (folder with the IDX files), RUNS (folder for the run directories), EPOCHS, BATCH,
# DUPLEX (bin/duplex).
set -eu
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"; exit ;; esac
duplex=${DUPLEX:-bin/duplex}
packaged=usr/share/datasets/fashion-mnist
data=${FASHION_MNIST:-/$packaged}
[ -n "${FASHION_MNIST:-}" ] || [ -d "$data" ] || data=.deps/$packaged
runs=${RUNS:-runs/demo}
if ! ls "$data"/train-images-idx3-ubyte* > /dev/null 2>&1; then
  echo "demo: no Fashion-MNIST in $data; install Debian's package dataset-fashion-mnist," >&2
  echo "or name the folder that holds its four IDX files: make demo FASHION_MNIST=DIR" >&2
  exit 1
fi
common=(--net lenet --datadir "$data" --batch "${BATCH:-64}" --epochs "${EPOCHS:-3}" --optimizer adam
        --lr 0.001 --threads 1 --accuracy)

mkdir -p "$runs"
children=()
stop() { [ ${#children[@]} = 0 ] || kill "${children[@]}" 2> /dev/null || true; }
trap stop EXIT
trap 'exit 130' INT TERM

# free_port prints a port on which nobody listens.
port=$((20000 + RANDOM % 20000))
free_port() {
  while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do port=$((port + 1)); done
  echo "$port"
}

# ranks NAME SERVER COUNT starts a dist process for each rank; the first that fails ends the others.
ranks() {
  local name=$1 server=$2 count=$3 rank status=0
  : > "$runs/$name.nodes"
  for rank in $(seq "$count"); do
    port=$(free_port)
    echo "127.0.0.1:$port" >> "$runs/$name.nodes"
    port=$((port + 1))
  done
  children=()
  for rank in $(seq 0 $((count - 1))); do
    "$duplex" dist "${common[@]}" --nodefile "$runs/$name.nodes" --index "$rank" --server "$server" \
      --job "$name-$$" --logdir "$runs/$name" &
    children+=($!)
  done
  for rank in "${children[@]}"; do
    wait -n || { status=$?; break; }
  done
  if [ "$status" != 0 ]; then
    echo "demo: a rank of the $name run failed" >&2
    exit "$status"
  fi
  children=()
}

# link measures what moving the weights over loopback takes.
link() {
  local role mine=$port other
  mine=$(free_port)
  port=$((mine + 1))
  other=$(free_port)
  port=$((other + 1))
  children=()
  for role in ps worker; do
    "$duplex" transport --net lenet --my-role $role --my-address "127.0.0.1:$mine" --other-address "127.0.0.1:$other" \
      --repeats 50 --logdir "$runs/link" > "$runs/link-$role.txt" &
    children+=($!)
    local swap=$mine
    mine=$other other=$swap
  done
  wait "${children[0]}" && wait "${children[1]}" || { echo "demo: transport failed" >&2; exit 1; }
  children=()
  cat "$runs/link-worker.txt"
}

rm -rf "$runs/alone" "$runs/link" "$runs/central" "$runs/distributed"
echo "== alone"
"$duplex" local "${common[@]}" --logdir "$runs/alone"
echo
echo "== the link"
link
echo
echo "== two workers, central server"
ranks central central 3
echo
echo "== two workers, distributed server"
ranks distributed distributed 2
echo
"$duplex" compare "$runs/alone" "$runs/link" "$runs/central" "$runs/distributed"
