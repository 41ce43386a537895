#!/bin/bash
# Trains LeNet on Fashion-MNIST on 4 ranks: asynchronous training must reach the accuracy of join within 2 points after half an
# epoch, in which both learn most of it. It makes four updates where join makes one by the mean, so each is by a quarter of
# the rate. Exit code 77 means skipped.
set -eu
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 77; }
data=${FASHION_MNIST:-}
for place in .deps/usr/share/datasets/fashion-mnist /usr/share/datasets/fashion-mnist; do
  [ -z "$data" ] && [ -d $place ] && data=$place
done
[ -n "$data" ] || skip "no Fashion-MNIST here (package dataset-fashion-mnist)"
duplex=${DUPLEX:-bin/duplex}
[ -x "$duplex" ] || skip "$duplex is not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=$((20000 + $$ % 10000))
for i in 0 1 2 3; do echo "127.0.0.1:$((port + i))"; done > "$work/nodes"
export OMP_WAIT_POLICY=passive  # Four ranks may share two cores.

# accuracy SYNC RATE: trains, and prints the top-1 accuracy in per cent.
accuracy() {
  "$duplex" launch --nodefile "$work/nodes" -- --net lenet --datadir "$data" --batch 16 --batches 450 --threads 1 \
    --sync "$1" --lr "$2" --accuracy --logdir "$work/$1" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  sed -n 's/.*accuracy top-1 \([0-9.]*\)%.*/\1/p' "$work/log"
}
join=$(accuracy join 0.05)
none=$(accuracy none 0.0125)
echo "join $join%, asynchronous $none%"
awk -v join="$join" -v none="$none" 'BEGIN { exit !(join > 80 && none > join - 2) }'
