#!/bin/bash
# Tests the network lab: its hosts reach each other at the rate asked for, and nothing is left afterwards. Exit code 77
# means skipped; a message says why.
set -eu
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "the lab of root needs root"
command -v ip > /dev/null && command -v tc > /dev/null || skip "the network lab needs ip and tc (iproute2)"
export NETLAB=dxt$$
ip netns add "${NETLAB}probe" 2> /dev/null || skip "network namespaces may not be made here"
ip netns del "${NETLAB}probe"
trap 'bash tools/netlab.sh down --kill' EXIT
fail() { echo "$*"; exit 1; }

bash tools/netlab.sh up 3 80mbit || fail "the lab cannot be set up"
[ "$(bash tools/netlab.sh nodefile | tr '\n' ' ')" = "10.77.0.1 10.77.0.2 10.77.0.3 " ] || fail "nodefile"
bash tools/netlab.sh up 3 80mbit 2> /dev/null && fail "a second lab of the same name was made"
bash tools/netlab.sh exec 7 true 2> /dev/null && fail "there is no host 7"

# 4 MB of weights at 80 Mbit/s less headers take 0.43 s; the machine may make it slower, but nothing may make it faster.
work=$(mktemp -d)
trap 'bash tools/netlab.sh down --kill; rm -rf "$work"' EXIT
duplex=${DUPLEX:-bin/duplex}
"$duplex" keygen "$work/key" > /dev/null
common=(transport --net squeezenet --classes 500 --key "$work/key" --repeats 2 --logdir "$work/run")
bash tools/netlab.sh exec 0 "$duplex" "${common[@]}" --my-address 10.77.0.1 --other-address 10.77.0.3 --my-role ps \
  > "$work/log" 2>&1 &
bash tools/netlab.sh exec 2 "$duplex" "${common[@]}" --my-address 10.77.0.3 --other-address 10.77.0.1 --my-role worker \
  >> "$work/log" 2>&1 || { cat "$work/log"; fail "transport"; }
wait
awk '/"t_comm_s"/ { on = 1 } on && /"(up|down)(_both)?":/ {
       gsub(/[",:]/, " "); ratio = $2 * 80e6 * 1448 / 1514 / 8 / bytes; n++
       if (ratio < 0.93 || ratio > 3) { print $1, "took", $2, "s,", ratio, "of what the rate allows"; bad = 1 }
     }
     /"bytes"/ { gsub(/[",:]/, " "); bytes = $2 }
     /"link_s"/ { exit }
     END { exit bad || n != 4 }' "$work/run/transport-ps.json" || fail "the link's rate"
# launch starts a rank on each of the three hosts, in the way in which it uses ssh.
bash tools/netlab.sh nodefile > "$work/nodes"
bash tools/netlab.sh exec 1 sh -c 'echo 1 > /proc/sys/net/ipv4/tcp_slow_start_after_idle'
"$duplex" launch --nodefile "$work/nodes" --ssh tools/lab/netlab-ssh.sh -- --net lenet --device replay:0.02 --batches 5 \
  --key "$work/key" --logdir "$work/launched" --timeout 20 > "$work/log" 2>&1 || { cat "$work/log"; fail "launch"; }
[ -s "$work/launched/rank-2.json" ] || fail "rank 2 left nothing"
[ "$(grep -c "TCP here forgets its pace" "$work/log")" = 1 ] || { cat "$work/log"; fail "one host of three forgets its pace"; }

# A host keeps what its connections have waiting, though that is more than leaves it in 50 ms.
bash tools/netlab.sh down
bash tools/netlab.sh up 3 10mbit > /dev/null
"$duplex" launch --nodefile "$work/nodes" --ssh tools/lab/netlab-ssh.sh -- --net lenet --device replay:0.02 --batches 2 \
  --key "$work/key" --logdir "$work/slow" --timeout 20 > "$work/log" 2>&1 || { cat "$work/log"; fail "launch"; }
bash tools/netlab.sh counters | awk '/^[0-9]+ eth0/ { sent += $3; lost += $(NF - 1); print }
  END { exit lost > 0 || sent < 8e6 }' || fail "hosts dropped packets of their own, or sent little"

# Ranks that only exchange are paced as their links are: the coordinator finds the pace for all, and a rank's two peers share
# its link.
bash tools/netlab.sh down
bash tools/netlab.sh up 3 500mbit > /dev/null
"$duplex" launch --nodefile "$work/nodes" --ssh tools/lab/netlab-ssh.sh -- --net googlenet --device replay:0.000001 --batches 12 \
  --key "$work/key" --logdir "$work/paced" --timeout 20 > "$work/log" 2>&1 || { cat "$work/log"; fail "launch"; }
for rank in 0 1 2; do
  awk '/"pace"/ { gsub(/[",:]/, " "); part = $2 * 2 / (500e6 * 1448 / 1514 / 8); n++
                  if (part < 0.95 || part > 1.05) { print "a pace of", $2, "bytes a second"; bad = 1 } }
       END { exit bad || n != 2 }' "$work/paced/rank-$rank.json" || fail "rank $rank is not paced as its link is"
done

# One port of this switch holds little: it drops what two peers send to rank 2 at once, until all three ranks have less
# under way, though nothing is dropped on the way to the others.
bash tools/netlab.sh down
bash tools/netlab.sh up 3 200mbit > /dev/null
ip netns exec "${NETLAB}sw" tc qdisc replace dev port2 root handle 1: tbf rate 200mbit burst 128kb limit 40kb
"$duplex" launch --nodefile "$work/nodes" --ssh tools/lab/netlab-ssh.sh -- --net squeezenet --device replay:0.001 --batches 14 \
  --key "$work/key" --logdir "$work/dropped" --timeout 20 > "$work/log" 2>&1 || { cat "$work/log"; fail "launch"; }
bash tools/netlab.sh counters | awk '/sw port/ { print; lost[$2] = $(NF - 1) }
  END { exit lost["port2:"] == 0 || lost["port0:"] + lost["port1:"] > 0 }' || fail "what which port dropped"
for rank in 0 1 2; do
  window=$(awk '/"window"/ { gsub(/[",:]/, " "); print $2; exit }' "$work/dropped/rank-$rank.json")
  again=$(awk '/"kernel_sent_again"/ { gsub(/[",:]/, " "); n += $2 } END { print n }' "$work/dropped/rank-$rank.json")
  [ "$window" = 65536 ] || fail "rank $rank lets its peers have $window bytes under way"
  awk '/"step_sent"/ { gsub(/[",:]/, " "); exit $2 < 6e6 }' "$work/dropped/rank-$rank.json" || fail "rank $rank sent less"
  [ "$rank" = 2 ] || [ "$again" -gt 0 ] || fail "rank $rank sent nothing again"
done

# A cable that is pulled for most of the deadline costs no more than that time, since TCP tries again every second.
if [ -e /proc/sys/net/ipv4/tcp_rto_max_ms ]; then
  bash tools/netlab.sh down
  bash tools/netlab.sh up 3 none > /dev/null
  "$duplex" launch --nodefile "$work/nodes" --ssh tools/lab/netlab-ssh.sh -- --net lenet --device replay:0.02 --batches 200 \
    --key "$work/key" --logdir "$work/pulled" --timeout 10 > "$work/log" 2>&1 &
  launch=$!
  for ((look = 0; look < 2000; look++)); do
    [ "$(wc -l 2> /dev/null < "$work/pulled/metrics.csv")" -ge 20 ] 2> /dev/null && break
    sleep 0.01
  done
  ip -n "${NETLAB}sw" link set port1 down
  sleep 7
  [ ! -e "$work/pulled/summary.json" ] || fail "the run was over before the cable was back"
  ip -n "${NETLAB}sw" link set port1 up
  wait $launch || { cat "$work/log"; fail "a pulled cable"; }
fi

trap 'rm -rf "$work"' EXIT
bash tools/netlab.sh down
ip netns list | grep "^$NETLAB" && fail "something is left"
exit 0
