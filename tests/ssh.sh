#!/bin/bash
# Tests duplex launch by ssh, with a real sshd on the hosts of a network lab, all in namespaces of their own. Exit code 77
# means skipped; a message says why.
set -eu
skip() { echo "skipped: $*"; exit 77; }
if [ "${1:-}" != inside ]; then
  cd "$(dirname "$0")/.."
  for program in ssh sshd ssh-keygen ip tc; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null || skip "needs $program (openssh-server, iproute2)"
  done
  exec bash make/isolated.sh tests/ssh.sh
fi

work=$2
export PATH=$PATH:/usr/sbin NETLAB=dxs
fail() { echo "$*"; tail -n 20 "$work"/log-*; exit 1; }
host() { bash tools/netlab.sh exec "$@"; }
mount -t tmpfs tmpfs /run  # sshd wants a folder here, and ip makes one.
mkdir -p /run/sshd
bash tools/netlab.sh up 3 none > /dev/null || skip "the lab cannot be set up here"

# ---- The hosts 1 and 2 run an sshd. The second lacks a file that the others have.
ssh-keygen -q -t ed25519 -N '' -f "$work/host-key"
ssh-keygen -q -t ed25519 -N '' -f "$work/user-key"
cp "$work/user-key.pub" "$work/authorized"
cat > "$work/sshd_config" << EOF
HostKey $work/host-key
AuthorizedKeysFile $work/authorized
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
EOF
cat > "$work/ssh_config" << EOF
IdentityFile $work/user-key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile $work/known
LogLevel ERROR
EOF
printf '#!/bin/sh\nexec ssh -F "%s/ssh_config" "$@"\n' "$work" > "$work/ssh"
chmod 755 "$work/ssh"
mkdir "$work/not-on-2"
sshd=$(command -v sshd)
host 1 "$sshd" -f "$work/sshd_config" -E "$work/sshd-1"
host 2 sh -c "mount -t tmpfs tmpfs '$work/not-on-2' && exec '$sshd' -f '$work/sshd_config' -E '$work/sshd-2'"
for i in 2 3; do
  host 0 timeout 5 "$work/ssh" -o BatchMode=yes 10.77.0.$i true || skip "sshd lets nobody in here: $(tail -n1 "$work/sshd-$((i - 1))")"
done

duplex=${DUPLEX:-bin/duplex}
"$duplex" keygen "$work/key" > /dev/null
cp "$work/key" "$work/not-on-2/key"
# processes COMMAND WORDS: prints the ids of the processes of this duplex command, on whichever host, that have these words
# one after the other.
processes() {
  local file words
  for file in /proc/[0-9]*/cmdline; do
    mapfile -d '' -t words 2> /dev/null < "$file" || continue
    [[ ${words[0]-} == *duplex && ${words[1]-} == "$1" && " ${words[*]} " == *" $2 "* ]] || continue
    file=${file%/cmdline}
    echo "${file#/proc/}"
  done
}
# signal NAME COMMAND WORDS: sends the signal to those processes; fails if there are none.
signal() {
  local found
  mapfile -t found < <(processes "$2" "$3")
  [ ${#found[@]} -gt 0 ] && kill -"$1" "${found[@]}"
}
# launch NAME PORT HOSTS FLAGS...: launches one rank on each of the hosts, from host 0. Leaves the exit code in a file.
launch() {
  local name=$1 port=$2 hosts=$3 i code=0
  shift 3
  for i in $hosts; do echo "10.77.0.$i:$port"; done > "$work/nodes-$name"
  host 0 timeout -k 2 30 "$duplex" launch --nodefile "$work/nodes-$name" --ssh "$work/ssh" -- --net lenet \
    --device replay:0.01 --logdir "$work/$name" "$@" > "$work/log-$name" 2> "$work/log-$name-errors" || code=$?
  echo $code > "$work/code-$name"
}
# ended NAME CODES: fails unless launch ended with one of these codes, and nothing of it runs any more.
ended() {
  [[ " $2 " == *" $(cat "$work/code-$1") "* ]] || fail "$1: exit code $(cat "$work/code-$1"), not $2"
  SECONDS=0
  while [ "$(processes dist "$work/nodes-$1")" ]; do
    ((SECONDS < 5)) || fail "$1: still running: $(processes dist "$work/nodes-$1" | tr '\n' ' ')"
    sleep 0.05
  done
}
# begun NAME: waits until all ranks train.
begun() {
  SECONDS=0
  until [ -s "$work/$1/metrics.csv" ] && (($(wc -l < "$work/$1/metrics.csv") > 2)); do
    ((SECONDS < 10)) || fail "$1: training does not begin"
    sleep 0.05
  done
  [ "$(processes dist "$work/nodes-$1 --index 1")" ] || fail "$1: no rank 1 is seen"
}

# A rank ends before the others know it: launch gives them ten seconds, then ends them.
(
  launch early 7200 '1 2 3' --batches 5 --key "$work/not-on-2/key"
  ended early 1
) > "$work/log-case-early" 2>&1 &
early=$!

launch good 7117 '1 2 3' --batches 5 --key "$work/key"
ended good 0
[ -s "$work/good/rank-2.json" ] || fail "rank 2 left nothing"
grep -q '^\[0\] replay ' "$work/log-good" || fail "rank 0's output lacks its number"
grep -q '^\[2\] rank 2 of 3 (from --index; ' "$work/log-good-errors" || fail "rank 2's errors lack its number"

launch killed 7118 '1 2 3' --batches 100000 --key "$work/key" &
running=$!
begun killed
signal KILL dist "$work/nodes-killed --index 2" || fail "rank 2 is not there to be killed"
wait $running
grep -q '^launch: rank [0-2] ended with exit code' "$work/log-killed-errors" || fail "a killed rank is not told"
ended killed '3 255'  # A peer that noticed gives 3, and ssh gives 255 for a signal over there.

launch interrupted 7119 '1 2 3' --batches 100000 --key "$work/key" &
running=$!
begun interrupted
signal INT launch "--nodefile $work/nodes-interrupted" || fail "launch is not there to be interrupted"
wait $running
ended interrupted 130

launch lost 7120 '2 3' --batches 100000 --key "$work/key" &
running=$!
begun lost
signal KILL launch "--nodefile $work/nodes-lost" || fail "launch is not there to be killed"
wait $running
ended lost 137

launch stopped 7121 '2 3' --batches 100000 --key "$work/key" &
running=$!
begun stopped
host 0 "$duplex" launch stop --nodefile "$work/nodes-stopped" --ssh "$work/ssh" > "$work/log-stop" 2>&1 || fail "stop: exit code $?"
[ -z "$(processes dist "$work/nodes-stopped")" ] || fail "stop did not wait for the ranks' end"
# The hosts see the same processes, so either may have stopped a rank first.
grep -q '^launch: stopped [12] ranks\? on 10\.77\.0\.[23]$' "$work/log-stop" || fail "stop does not say what it did"
wait $running
ended stopped '3 255'

wait $early || { cat "$work/log-case-early"; exit 1; }
grep -q '^launch: rank 2 ended with exit code 1' "$work/log-early-errors" || fail "the rank without its key is not told"
grep -q '^\[2\] .*not-on-2/key' "$work/log-early-errors" || fail "rank 2 does not say what it lacks"
