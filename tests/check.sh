#!/bin/bash
# Tests duplex check on a network lab of 16 hosts: where all is well it finds nothing in the way, and it finds and names a
# slow link, a closed way, a small MTU, a name that means loopback, a port that is taken, a setting of TCP and a host that is
# down. Each time it takes less than 30 seconds. Exit code 77 means skipped; a message says why.
set -eu
skip() { echo "skipped: $*"; exit 77; }
if [ "${1:-}" != inside ]; then
  cd "$(dirname "$0")/.."
  for program in ip tc; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null || skip "needs $program (iproute2)"
  done
  exec bash make/isolated.sh tests/check.sh
fi

work=$2
export PATH=$PATH:/usr/sbin NETLAB=dxk
hosts=16
duplex=${DUPLEX:-bin/duplex}
fail() { echo "$*"; cat "$work/found" "$work/errors"; exit 1; }
touch "$work/found" "$work/errors"
mount -t tmpfs tmpfs /run  # ip makes a folder here.
bash tools/netlab.sh up $hosts 50mbit > /dev/null || skip "the lab cannot be set up here"

# The hosts have names. The stand-in for ssh reaches them, unless one is down; one may have a file of names of its own.
cp /etc/hosts "$work/hosts"
for ((i = 0; i < hosts; i++)); do
  echo "10.77.0.$((i + 1)) lab$i" >> "$work/hosts"
  echo "lab$i" >> "$work/nodes"
done
mount --bind "$work/hosts" /etc/hosts
cat > "$work/ssh" << EOF
#!/bin/bash
while [ "\$1" = -o ]; do shift 2; done
host=\${1#lab}
shift
[ ! -e "$work/down-\$host" ] || { echo "ssh: connect to host lab\$host port 22: No route to host" >&2; exit 255; }
exec ip netns exec $NETLAB\$host sh -c "[ ! -e $work/hosts-\$host ] || mount --bind $work/hosts-\$host /etc/hosts; \$*"
EOF
chmod 755 "$work/ssh"

# check NAME CODE: runs it on host 0, leaves what it prints in one line, without the breaks of a table.
check() {
  local code=0
  SECONDS=0
  bash tools/netlab.sh exec 0 "$duplex" check --nodefile "$work/nodes" --ssh "$work/ssh" > "$work/found" 2> "$work/errors" || code=$?
  took=$SECONDS
  [ $code = "$2" ] || fail "$1: exit code $code, not $2"
  ((took < 30)) || fail "$1: it took $took s"
  tr '\n' ' ' < "$work/found" | tr -s ' ' > "$work/line"
}
# says TEXT: fails unless that was found.
says() { grep -qE -e "$1" "$work/line" || fail "not found: $1"; }

check "all is well" 0
says 'reached ok all 16'
says 'MTU ok all 16: 1500'
says 'slow start ok all 16'
says 'names ok all 16'
says 'ports ok all 16'
says 'firewall ok none in the way'
says 'queue note all 16: tbf on eth0'
# 50 Mbit/s less the headers of Ethernet, IP and TCP; the machine may make it slower, but nothing may make it faster.
grep -oE 'usually [0-9.]+ Mbit/s' "$work/line" | awk '{ r = $2 / (50 * 1448 / 1514) } END { exit NR != 1 || r < 0.9 || r > 1.1 }' ||
  fail "the rate between hosts"
for file in /proc/[0-9]*/cmdline; do
  tr '\0' ' ' 2> /dev/null < "$file" | grep -q 'check --here' && fail "something of it still runs"
done

# Everything that can be wrong, each on a host of its own.
bash tools/netlab.sh exec 3 tc qdisc replace dev eth0 root handle 1: tbf rate 10mbit burst 128kb latency 50ms
ip netns exec ${NETLAB}sw tc qdisc replace dev port3 root handle 1: tbf rate 10mbit burst 128kb latency 50ms
bash tools/netlab.sh exec 4 ip link set eth0 mtu 1200
sed 's/^10.77.0.6 lab5$/127.0.1.1 lab5/' "$work/hosts" > "$work/hosts-5"
bash tools/netlab.sh exec 6 sh -c 'echo 1 > /proc/sys/net/ipv4/tcp_slow_start_after_idle'
bash tools/netlab.sh exec 7 ip route add unreachable 10.77.0.3
# A rank of an old run still waits on host 8.
"$duplex" keygen "$work/key" > /dev/null
bash tools/netlab.sh exec 8 timeout 120 "$duplex" dist --net lenet --device replay:0.01 --batches 5 --nodefile "$work/nodes" --index 8 \
  --key "$work/key" --timeout 100 --logdir "$work/old" > "$work/log-old" 2>&1 &
old=$!
touch "$work/down-9"
for ((look = 0; look < 3000; look++)); do
  grep -q 'listens on' "$work/log-old" && break
  sleep 0.01
done
grep -q 'listens on' "$work/log-old" || fail "the old run: $(cat "$work/log-old")"

check "troubles" 1
says 'lab9: ssh: connect to host lab9 port 22: No route to host'
says 'reached .* ok the other 15'
says 'rates spoils lab3 sends [89][0-9.]+ Mbit/s and takes [89][0-9.]+ Mbit/s \(median\), where others have 4[0-9.]+ Mbit/s'
says 'MTU slower all but lab4: 1500; lab4: 1200'
says 'ip link set dev eth0 mtu 1500'
says 'slow start slower lab6: in a pause'
says 'names spoils lab5 is 127.0.1.1 on lab5'
says 'ports spoils lab8: cannot listen on lab8:7117: Address already in use'
says 'firewall spoils lab7 to lab2, port 7117: No route to host'
says 'note lab2 to lab7, port 7117: no answer'
kill $old || fail "the old run ended by itself: $(cat "$work/log-old")"
if wait $old; then fail "the old run, which was killed, ended well: $(cat "$work/log-old")"; fi

trap 'rm -rf "$work"' EXIT
bash tools/netlab.sh down --kill
exit 0
