#!/bin/bash
# Tests duplex launch with distributed servers on three hosts of a network lab, each with a disk of its own, of which one
# goes away for good, rank 0's among them: the others go on to the weights that ranks with one common disk come to. Exit code
# 77 means skipped; a message says why.
set -eu
skip() { echo "skipped: $*"; exit 77; }
if [ "${1:-}" != inside ]; then
  cd "$(dirname "$0")/.."
  for program in ip tc; do command -v $program > /dev/null || skip "needs $program (iproute2)"; done
  exec bash make/isolated.sh tests/lost_machine.sh
fi

work=$2
export NETLAB=dxm
duplex=${DUPLEX:-bin/duplex}
fail() { echo "$*"; tail -n 30 "$work"/log-*; exit 1; }
mount -t tmpfs tmpfs /run  # ip makes a folder here.
bash tools/netlab.sh up 3 none > /dev/null || skip "the lab cannot be set up here"
bash tools/netlab.sh nodefile > "$work/nodes"
"$duplex" keygen "$work/key" > /dev/null

# Images of noise, in ten classes: IDX files of 28x28.
byte() { printf '%b' "\\0$(printf %o "$1")"; }
images() {
  { printf '\0\0\10\3\0\0\0'; byte "$2"; printf '\0\0\0\34\0\0\0\34'; head -c $(($2 * 784)) /dev/urandom; } \
    > "$work/data/$1-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0\0'; byte "$2"; for ((i = 0; i < $2; i++)); do byte $((i % 10)); done; } > "$work/data/$1-labels-idx1-ubyte"
}
mkdir "$work/data"
images train 96
images t10k 20

# ssh to a host of the lab, unless that is dead. A host's disk is the folder of the run with the host's name behind it; the
# launcher's own has no name.
cat > "$work/ssh" << EOF
#!/bin/bash
[ ! -e "$work/dead-\$3" ] || { echo "ssh: connect to host \$3 port 22: No route to host" >&2; exit 255; }
exec bash tools/lab/netlab-ssh.sh "\${@:1:3}" "\$(printf '%s' "\${*:4}" | sed "s#--logdir [^ ]*#&-\$3#")"
EOF
chmod 755 "$work/ssh"
flags=(--net lenet --datadir "$work/data" --batch 6 --threads 1 --key "$work/key" --timeout 50 --checkpoint-every 5)

# launch HOST LAUNCH-FLAGS... -- FLAGS...: launches the ranks from that host.
launch() {
  local from=$1
  shift
  bash tools/netlab.sh exec "$from" timeout -k 2 100 "$duplex" launch --nodefile "$work/nodes" "$@"
}
# lose LOST FLAGS...: loses that host while they train.
lose() {
  local lost=$1 from=$((($1 + 1) % 3)) host=10.77.0.$(($1 + 1)) steps leader=0
  shift
  rm -rf "$work"/own* "$work"/dead-* "$work/common"
  launch $from --ssh "$work/ssh" --restarts 5 -- "${flags[@]}" "$@" --batches 300 --logdir "$work/own" \
    > "$work/log-$lost" 2> "$work/log-$lost-errors" &
  local launched=$!
  SECONDS=0
  until compgen -G "$work/own*/checkpoints/step-*[1-9]?/rank-$lost-copy.safetensors" > /dev/null; do
    ((SECONDS < 50)) || fail "there is no checkpoint"
    sleep 0.05
  done
  : > "$work/dead-$host"
  mapfile -t ranks < <(ip netns pids "$NETLAB$lost")
  kill -KILL "${ranks[@]}"
  rm -rf "$work/own-$host"
  wait $launched || fail "launch: exit code $?"
  grep -q "^launch: $host could not be reached 2 times in a row: the run goes on with the 2 ranks that are left (--without $lost)" \
    "$work/log-$lost-errors" || fail "launch does not say what it does"
  steps=$(sed -n 's/.*goes on after \([0-9]*\) steps, which 3 ranks trained, with 2.*/\1/p' "$work/log-$lost-errors" | head -n1)
  [ "$steps" ] || fail "the two do not say where they go on"
  # The same on a common disk.
  launch $from --ssh tools/lab/netlab-ssh.sh -- "${flags[@]}" "$@" --batches "$steps" --logdir "$work/common" \
    > "$work/log-common" 2>&1 || fail "the first part on a common disk"
  launch $from --ssh tools/lab/netlab-ssh.sh --without "$lost" -- "${flags[@]}" "$@" --batches 300 --resume \
    --logdir "$work/common" > "$work/log-common" 2>&1 || fail "the second part on a common disk"
  ((lost != 0)) || leader=1
  local disk=$work/own-10.77.0.$((leader + 1))
  ((leader != from)) || disk=$work/own
  cmp "$disk/checkpoint.safetensors" "$work/common/checkpoint.safetensors" || fail "other weights"
}
lose 2 --momentum 0.9
lose 0 --optimizer adam --sync split
bash tools/netlab.sh down --kill
