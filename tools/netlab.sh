#!/bin/bash
# netlab.sh makes N hosts, joined by a full-duplex switch, on one machine: each host is a network namespace, a bridge in
# one more is the switch, and a token bucket is at both ends of every cable. Needs ip and tc (package iproute2), and root
# or a kernel that lets users make namespaces of their own (package util-linux).
#
#   netlab.sh up N RATE     makes the hosts 0 .. N-1, each with a cable of RATE (as tc writes it: 1gbit, 100mbit;
#                           none: as fast as the machine is) and the address 10.77.0.(I+1)
#   netlab.sh exec I CMD    runs a command on host I
#   netlab.sh nodefile      prints the hosts' addresses, a line each, as duplex dist --nodefile takes them
#   netlab.sh counters      prints how much every cable's ends sent and dropped
#   netlab.sh down          removes the lab; names processes that still run there, and with --kill ends them
#
# Environment: NETLAB (prefix of the namespaces' names, default dxl; labs of different names do not meet),
# NETLAB_MTU (1500), NETLAB_BURST (128kb), NETLAB_CONGESTION (TCP's congestion control on the hosts; default: the
# machine's), NETLAB_SLOW_START (1: TCP starts slowly again after a pause of some tenths of a second, which is Linux's
# default; default here 0, as clusters are set), NETLAB_OUTPUT (bytes that a connection may have waiting in its host's
# own queue; default 131072, with which a host's connections have equal parts of its cable; Linux's: 4194304),
# NETLAB_MIN_RTT (seconds for which TCP remembers the shortest round trip; default 86400, for the same reason; Linux's:
# 300), NETLAB_BUFFER (size of the queue of each of the switch's ports, which drops packets beyond it, as tc writes
# sizes: 500kb; default: as much as leaves it in 50 ms), NETLAB_DELAY and NETLAB_LOSS (one way, as netem takes them:
# 1ms, 0.1%; the kernel must have netem).
# Without root the lab lies in a user's own namespaces, which a process called netlab-dxl holds until the lab is down. There
# commands run as root of the namespaces, /run is empty, congestion control is one of those that the machine allows to
# everyone, and packets may overtake one another at high rates, since receiving processors are root's to choose.
# A token bucket counts 1,514 bytes for 1,448 of payload; real Gigabit Ethernet takes 1,538: 984mbit equals it.
set -eu

lab=${NETLAB:-dxl}
switch=${lab}sw
network=10.77.0

manual() { sed -n '2,/^set -eu/p' "$0" | sed '$d; s/^# \{0,1\}//'; }
fail() { echo "netlab: $*" >&2; exit 1; }
namespaces() { ip netns list | awk '{print $1}' | grep -xE "$lab([0-9]+|sw)" | sort -V || true; }

# require WORDS makes sure that namespaces may be made and changed: without root, this script begins again, with these
# words, in the user's own.
require() {
  for program in ip tc; do
    command -v $program > /dev/null || fail "needs $program (package iproute2)"
  done
  [ "$(id -u)" = 0 ] || enter "$@"
}

# holder prints the process that holds the namespaces of this user's lab, if there is one.
holder() {
  local process
  for process in /proc/[0-9]*; do
    if [ -O "$process" ] && [ "$(tr '\0' ' ' < "$process/cmdline" 2> /dev/null)" = "netlab-$lab -c $hold " ]; then
      echo "${process#/proc/}"
      return
    fi
  done
}
# This reads from a pipe that nobody writes to, and so waits until it is ended, without a further process.
hold='read -r <> <(:)'

# begin makes namespaces for this user's lab, with a process that holds them, and prints the process.
begin() {
  local process i
  command -v nsenter > /dev/null || fail "needs unshare and nsenter (package util-linux), or root"
  # shellcheck disable=SC2016  # The inner shell expands it.
  setsid unshare --user --map-root-user --net --mount bash -c '
    mount -t tmpfs netlab /run && mkdir -p /run/netns && exec -a "$0" bash -c "$1"' "netlab-$lab" "$hold" \
    < /dev/null > /dev/null 2>&1 &
  for ((i = 0; i < 100; i++)); do
    process=$(holder)
    [ -z "$process" ] || { echo "$process"; return; }
    kill -0 $! 2> /dev/null || break
    sleep 0.05
  done
  fail "needs root, since this kernel lets no user make namespaces of his own (sysctl user.max_user_namespaces," \
    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
}

# enter WORDS replaces this process by one that runs the script in the namespaces of this user's lab; `up` makes them.
enter() {
  local process
  process=$(holder)
  if [ -z "$process" ]; then
    case $1 in
    up) process=$(begin) ;;
    exec) fail "there is no host ${2:-} in lab '$lab'; netlab.sh up makes it" ;;
    *) exit 0 ;;
    esac
  fi
  # shellcheck disable=SC2016  # The inner shell expands it.
  NETLAB_HOLDER=$process exec nsenter --target "$process" --user --net --mount --preserve-credentials \
    bash -c 'cd "$0" && exec bash "$@"' "$PWD" "$(readlink -f "$script")" "$@"
}
script=$0

# shape NAMESPACE DEVICE RATE QUEUE adds a token bucket, and delay and loss if asked for.
shape() {
  local ns=$1 device=$2 rate=$3 queue=$4 parent=root
  if [ "$rate" != none ]; then
    # shellcheck disable=SC2086  # Two words.
    ip netns exec "$ns" tc qdisc add dev "$device" root handle 1: tbf \
      rate "$rate" burst "${NETLAB_BURST:-128kb}" $queue ||
      fail "tc does not take rate $rate with $queue: try 1gbit or 100mbit, and NETLAB_BUFFER=500kb or none"
    parent="parent 1:"
  fi
  [ -n "${NETLAB_DELAY:-}${NETLAB_LOSS:-}" ] || return 0
  # shellcheck disable=SC2086  # Two words, or one.
  ip netns exec "$ns" tc qdisc add dev "$device" $parent netem \
    ${NETLAB_DELAY:+delay $NETLAB_DELAY} ${NETLAB_LOSS:+loss $NETLAB_LOSS} ||
    fail "this kernel has no netem, so there is no delay and no loss"
}

# steer NAMESPACE DEVICE has one processor receive all packets of a connection. With several processors packets would
# overtake one another, which no switch lets them do, and which TCP takes for loss.
steer() {
  local processors
  processors=$(nproc)
  ip netns exec "$1" sh -c "echo $(printf '%x' $(((1 << (processors < 32 ? processors : 32)) - 1))) \
    > /sys/class/net/$2/queues/rx-0/rps_cpus" 2> /dev/null || true  # Not every kernel can do this.
}

# tcp NAMESPACE NAME VALUE changes a setting of TCP there. (The program sysctl is not on every machine.)
tcp() { ip netns exec "$1" sh -c 'echo "$2" > "/proc/sys/net/ipv4/tcp_$1"' sh "$2" "$3"; }

up() {
  local hosts=$1 rate=$2 mtu=${NETLAB_MTU:-1500} buffer="latency 50ms" i host
  [ -z "${NETLAB_BUFFER:-}" ] || buffer="limit $NETLAB_BUFFER"
  [ -z "$(namespaces)" ] || fail "lab '$lab' is up already; netlab.sh down first, or set NETLAB to another name"
  trap 'down --quiet' EXIT  # A failure leaves no incomplete lab behind.
  ip netns add "$switch"
  ip -n "$switch" link add bridge0 type bridge stp_state 0 forward_delay 0
  ip -n "$switch" link set bridge0 up
  for ((i = 0; i < hosts; i++)); do
    host=$lab$i
    ip netns add "$host"
    ip -n "$host" link set lo up
    ip -n "$host" link add eth0 mtu "$mtu" type veth peer name port$i mtu "$mtu" netns "$switch"
    ip -n "$switch" link set port$i master bridge0
    ip -n "$switch" link set port$i up
    ip -n "$host" addr add $network.$((i + 1))/24 dev eth0
    ip -n "$host" link set eth0 up
    # A connection must not start from values that an earlier one measured.
    tcp "$host" no_metrics_save 1
    tcp "$host" slow_start_after_idle "${NETLAB_SLOW_START:-0}"
    # A host's queue is first come, first served, and TCP lets a connection put in as much as it expects to send in a
    # millisecond, so a connection that has had more gets more. With the same limit for all they share the cable, as
    # they do with the queue that most systems give a network card (fq_codel), which not every kernel has.
    tcp "$host" limit_output_bytes "${NETLAB_OUTPUT:-131072}" 2> /dev/null || true
    # On links that are never idle TCP forgets how short a round trip can be, and from then on puts in less at a time,
    # so that a connection that has had more gets more again.
    tcp "$host" min_rtt_wlen "${NETLAB_MIN_RTT:-86400}" 2> /dev/null || true
    if [ -n "${NETLAB_CONGESTION:-}" ]; then
      tcp "$host" congestion_control "$NETLAB_CONGESTION" 2> /dev/null ||
        fail "congestion control '$NETLAB_CONGESTION' is not to be had on this machine"
    fi
    # A host does not drop its own packets: its sockets bound what waits in its queue (TCP: limit_output_bytes each).
    shape "$host" eth0 "$rate" "limit 1gb"
    shape "$switch" port$i "$rate" "$buffer"
    steer "$host" eth0
    steer "$switch" port$i
  done
  trap - EXIT
  echo "netlab: $hosts hosts at $rate, $network.1 to $network.$hosts," \
    "$(ip netns exec "${lab}0" cat /proc/sys/net/ipv4/tcp_congestion_control)"
}

down() {
  local ns pids
  for ns in $(namespaces); do
    pids=$(ip netns pids "$ns" | tr '\n' ' ')
    if [ -n "$pids" ] && [ "${1:-}" = --kill ]; then
      # shellcheck disable=SC2086
      kill $pids 2> /dev/null || true
    elif [ -n "$pids" ]; then
      echo "netlab: still running on ${ns#"$lab"}: $pids(netlab.sh down --kill ends it)" >&2
    fi
    ip netns del "$ns"
  done
  if [ -n "${NETLAB_HOLDER:-}" ] && kill "$NETLAB_HOLDER" 2> /dev/null; then
    while [ -n "$(holder)" ]; do sleep 0.02; done
  fi
}

need_host() {
  [[ ${1:-} =~ ^[0-9]+$ ]] || fail "'${1:-}' is no host's number"
  ip netns list | awk '{print $1}' | grep -qx "$lab$1" || fail "there is no host $1 in lab '$lab'; netlab.sh up makes it"
}

[[ $lab =~ ^[A-Za-z0-9]+$ ]] || fail "NETLAB=$lab: a lab's name has letters and digits only"
case "${1:-}" in
up)
  [ $# = 3 ] || { echo "usage: netlab.sh up N RATE" >&2; exit 2; }
  [[ $2 =~ ^[0-9]+$ ]] && (($2 >= 1 && $2 <= 250)) || fail "$2 is no number of hosts: 1 to 250"
  require "$@"
  up "$2" "$3"
  ;;
exec)
  [ $# -ge 3 ] || { echo "usage: netlab.sh exec I CMD..." >&2; exit 2; }
  require "$@"
  need_host "$2"
  host=$lab$2
  shift 2
  unset NETLAB_HOLDER  # The command's own labs have others.
  exec ip netns exec "$host" "$@"
  ;;
nodefile)
  require "$@"
  for ns in $(namespaces | grep -v "$switch"); do echo "$network.$((${ns#"$lab"} + 1))"; done
  ;;
counters)
  require "$@"
  for ns in $(namespaces); do
    ip netns exec "$ns" tc -s qdisc show | awk -v host="${ns#"$lab"}" '
      /^qdisc tbf/ { device = $5 }
      /^ Sent/ && device { printf "%s %s: %s bytes, %s packets, %s dropped\n", host, device, $2, $4, $7 + 0; device = "" }'
  done
  ;;
down)
  require "$@"
  down "${2:-}"
  ;;
--help | -h)
  manual
  ;;
*)
  manual >&2
  exit 2
  ;;
esac
