#!/bin/bash
# Tests the network lab of an ordinary user (tools/netlab.sh without root), in namespaces of his own: two ranks meet there at the
# lab's rate, and nothing is left afterwards. Root plays such a user. Exit code 77 means skipped; a message says why.
set -eu
cd "$(dirname "$0")/../.."
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "$*"; cat "$work/log"; exit 1; }
for program in ip tc unshare nsenter setpriv; do
  command -v $program > /dev/null || skip "a user's lab needs ip and tc (iproute2), and its test setpriv (util-linux)"
done
duplex=$(readlink -f "${DUPLEX:-bin/duplex}")
export NETLAB=dxu$$

# The user has a copy of what he must be able to read.
work=$(mktemp -d)
mkdir "$work/tools"
cp -r tools/netlab.sh tools/lab "$work/tools"
user=(env "HOME=$work")
if [ "$(id -u)" = 0 ]; then
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups "${user[@]}")
  chown -R 65534:65534 "$work"
fi
cd "$work"
trap '"${user[@]}" bash tools/netlab.sh down --kill; rm -rf "$work"' EXIT
touch log
"${user[@]}" unshare --user --map-root-user --net --mount mount -t tmpfs netlab /run 2> /dev/null ||
  skip "users may not make namespaces here"
"${user[@]}" "$duplex" --version > /dev/null 2>&1 || skip "an ordinary user may not run $duplex"
lab() { "${user[@]}" bash tools/netlab.sh "$@" > log 2>&1; }
# left SAYS: fails where a process holds namespaces for the lab still.
left() { if grep -lz "^netlab-$NETLAB\$" /proc/[0-9]*/cmdline 2> /dev/null; then fail "$1"; fi; }

lab exec 0 true && fail "a host before there is a lab"
lab up 2 80mbit || fail "a user's lab cannot be set up"
lab up 2 80mbit && fail "a second lab of a user"
[ "$(id -u)" != 0 ] || ! ip netns list | grep "^$NETLAB" || fail "a user's lab lies among root's"
lab nodefile && cp log nodes
"${user[@]}" "$duplex" keygen key > /dev/null
# Rank 1 sends 1.7 MB of gradients a step, of which the token bucket lets 10 MB a second pass.
"${user[@]}" "$duplex" launch --nodefile nodes --ssh tools/lab/netlab-ssh.sh -- --net lenet --device replay:0.000001 --batches 6 \
  --server central --key key --logdir run --timeout 20 > log 2>&1 || fail "a user's ranks"
# Records of ranks lie in a folder of temporary files with the user's number; root's is 0.
records=$(dirname "$(TMPDIR='' mktemp -u)")/duplex-0
[ "$(stat -c %u "$records" 2> /dev/null || echo 0)" = 0 ] || fail "ranks in a user's lab took root's folder of records"
lab counters
awk '$1 == 1 && $2 == "eth0:" { found = 1; exit $3 < 6 * 1.7e6 } END { if (!found) exit 1 }' log || fail "a user's ranks met outside of his lab"
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "total_s") column = i }
  NR > 2 { n++; sum += $column } END { exit n != 5 || sum / n < 0.15 }' run/metrics.csv || { cp run/metrics.csv log; fail "the rate of a user's lab"; }
lab down --kill || fail "down"
left "a user's lab is still there"

lab up 2 swift && fail "a rate that is none"
grep -q "does not take rate swift" log || fail "what netlab.sh says of such a rate"
left "a lab that could not be set up is still there"

# This is how a kernel looks that lets users make no namespaces.
mkdir bin
printf '#!/bin/sh\nexit 1\n' > bin/unshare
chmod 755 bin/unshare
PATH=$PWD/bin:$PATH lab up 2 80mbit && fail "a lab without namespaces"
grep -q "needs root, since this kernel" log || fail "what netlab.sh says on such a kernel"
