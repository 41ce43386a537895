#!/bin/bash
# The campaign of the network: trains LeNet on four hosts of tools/netlab.sh, in five modes, and disturbs the network in each
# phase of the run, at a worker and at the coordinator: cables pulled, for shorter and for longer than the deadline, in both
# directions or in one; hosts that vanish; a way that lets through a byte a second (network/slow.cpp); frames of Ethernet
# that come twice or out of order, during a whole run (network/wire.cpp).
# Promises: where it is shorter than the deadline, all ranks end well, with the bits of an undisturbed run. Where it is
# longer, every rank ends with exit code 3 or 4 within the deadline and 5 s (or well, if it had all that it needed) and
# blames a rank behind the cut and no other; the rank behind the cut blames another. Then the cable is mended, and the
# training that goes on with --resume ends with the bits of an undisturbed run. Asynchronous runs have no bits to compare,
# and go on without a worker; a central server that has lost all of them waits one deadline more for one to come back. Writes the section "Network" of docs/reliability.md.
# It needs `make campaigns`, root, ip and tc, and about 15 s a run, of which there are some 330. It may be interrupted, and
# the same command goes on. What breaks a promise stays in OUT/broken-* with all output.
# Usage: tests/campaigns/network.sh [WHAT]...     pull-short pull-long in-short in-long out-short out-long reboot vanish slow
#                                                 disorder (default: all)
#        tests/campaigns/network.sh page          writes the section again
# Environment: ONLY     a text that "WHAT; MODE; ROLE; PHASE" must contain, as "central; worker; rendezvous"; such runs write
#                       no section
#              TIMEOUT  the deadline in seconds (default 6)
#              OUT      where results are kept (default runs/campaigns/network)
#              BUILD    the folder of the build (default build), DUPLEX the program
# Exit code: 0 if every promise was kept, 1 if not, 2 usage, 77 skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/campaigns/page.sh
build=$(realpath "${BUILD:-build}") out=${OUT:-runs/campaigns/network} timeout=${TIMEOUT:-6} only=${ONLY:-}
duplex=$(realpath "${DUPLEX:-$([ "${BUILD:-build}" = build ] && echo bin || echo "$build/bin")/duplex}")
kills=$build/campaigns/kills slow=$build/campaigns/slow wire=$build/campaigns/wire
known=(pull-short pull-long in-short in-long out-short out-long reboot vanish slow disorder)
disturbances=("$@")
[ $# -gt 0 ] || disturbances=("${known[@]}")
for one in "${disturbances[@]}"; do
  [[ " ${known[*]} page " = *" $one "* ]] || { echo "network: unknown $one (known: ${known[*]} page)" >&2; exit 2; }
done
for needed in "$duplex" "$kills" "$slow" "$wire"; do
  [ -f "$needed" ] || { echo "network: $needed is not there: make campaigns" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: the network lab needs root"; exit 77; }
command -v ip >/dev/null && command -v tc >/dev/null || { echo "skipped: the network lab needs ip and tc (iproute2)"; exit 77; }
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
rows=$out/rows  # A line a run: WHAT; MODE; ROLE; PHASE|seconds until the last had ended|1 if wrong|late|blames wrongly|not loaded|other bits|a note.
touch "$rows"

page() {
  {
    echo "Written by \`tests/campaigns/network.sh\` on $(date -u +%F) ($(machine)), whose head says how it is done."
    echo "Deadlines (\`--timeout\`) are $timeout s. short: the way is open again 2 s earlier. ended: seconds from the disturbance"
    echo "until the last rank had ended, the slowest run. On kernels before 6.15 TCP doubles its pauses between two tries, so that a way"
    echo "which was cut for half of the deadline or longer may be found too late (docs/machines.md); this one is $(uname -r)."
    echo
    echo "| what | runs | wrong ending | late | blames wrongly | not loaded | other bits | ended |"
    echo "|---|---|---|---|---|---|---|---|"
    awk -F'|' '{ split($1, cell, "; "); what = cell[1]; runs[what]++; if ($2 > most[what]) most[what] = $2
                 for (i = 3; i < 8; i++) bad[what, i] += $i }
               END { for (what in runs) {
                       printf "| %s | %d |", what, runs[what]
                       for (i = 3; i < 8; i++) printf " %d |", bad[what, i]
                       printf " %.1f |\n", most[what] } }' "$rows" | sort
  } | section Network
}
[ "${disturbances[*]}" != page ] || { page; exit; }

# ---- The lab: hosts 0 to 3 for the ranks, host 4 for the slow way.
export NETLAB=dxn$$ OMP_WAIT_POLICY=passive
ranks=4 sw=${NETLAB}sw
work=$(mktemp -d)
began=()
trap 'for process in "${began[@]}"; do kill "$process" 2>/dev/null; done; bash tools/netlab.sh down --kill; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
bash tools/netlab.sh up 5 none >/dev/null || exit 77
on() { local host=$1; shift; ip netns exec "$NETLAB$host" "$@"; }
for host in 0 1 2 3 4; do
  # What is sent to this end goes nowhere: a filter cannot drop in every kernel, but redirect.
  ip -n "$NETLAB$host" link add nowhere type veth peer name no-end
  [ $host != 0 ] || ip -n "$sw" link add nowhere type veth peer name no-end
  on $host "$wire" plain eth0 || exit 77
done
for ((rank = 0; rank < ranks; rank++)); do ip -n "${NETLAB}4" addr add 10.77.0.$((101 + rank))/24 dev eth0 || exit 77; done

swallow() { # swallow NAMESPACE DEVICE: what comes in there is lost.
  tc -n "$1" qdisc add dev "$2" ingress &&
    tc -n "$1" filter add dev "$2" parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev nowhere
}
pull() { # pull HOW HOST
  case $1 in
    in) swallow "$NETLAB$2" eth0 ;;
    out) swallow "$sw" "port$2" ;;
    *) ip -n "$sw" link set "port$2" down ;;
  esac
}
mend() { # mend HOST: undoes every pull.
  tc -n "$NETLAB$1" qdisc del dev eth0 ingress 2>/dev/null
  tc -n "$sw" qdisc del dev "port$1" ingress 2>/dev/null
  ip -n "$sw" link set "port$1" up
}
# A relay in the cable of a host.
disorder() {
  ip -n "$sw" link add "wire$1" type veth peer name "tap$1"
  ip -n "$sw" link set "wire$1" up
  ip -n "$sw" link set "tap$1" master bridge0 up
  ip -n "$sw" link set "port$1" nomaster
  ip netns exec "$sw" "$wire" relay "port$1" "wire$1" "$2" >"$work/wire" 2>&1 &
  relay=$!
}
in_order() {
  kill $relay
  wait $relay
  ip -n "$sw" link del "wire$1"
  ip -n "$sw" link set "port$1" master bridge0
}

# ---- The runs.
"$kills" data "$work/data" 192 20
"$duplex" keygen "$work/key" >/dev/null
port=20000  # The kernel hands out ports from 32768 on.
declare -A flags=(["join, distributed"]="" ["join, central"]="--server central" ["split"]="--sync split" ["average"]="--average 2"
  ["none, central"]="--sync none --server central")
modes=("join, distributed" "join, central" "split" "average" "none, central")
phases=(rendezvous training checkpoint goodbye)

# begin RANK PREFIX [FLAG]...: starts a rank on its host. At its end $work/PREFIX-end-RANK has the exit code and the time.
begin() {
  local rank=$1 prefix=$2
  shift 2
  # shellcheck disable=SC2086  # Words.
  {
    ip netns exec "$NETLAB$rank" timeout -s KILL $((timeout * 3 + 60)) "$duplex" dist --net lenet --datadir "$work/data" --batch 8 --threads 1 --batches 24 \
      --optimizer adam --accuracy --test-every 1 --key "$work/key" --timeout "$timeout" --job "network$port" --index "$rank" \
      --nodefile "$work/nodes-$rank" --logdir "$work/run-$rank" $(echo --checkpoint-every 6) ${flags[$mode]} "$@" \
      >"$work/$prefix-log-$rank" 2>&1 &
    echo $! >"$work/pid-$rank"
    wait $!
    echo "$? $EPOCHREALTIME" >"$work/$prefix-end-$rank"
  } 2>/dev/null &
  began+=($!)
}
# nodes: new ports for all, each rank with a nodefile of its own.
nodes() {
  local rank
  port=$((port >= 32000 ? 20000 : port + ranks))
  for ((rank = 0; rank < ranks; rank++)); do echo "10.77.0.$((rank + 1)):$((port + rank))"; done >"$work/nodes"
  for ((rank = 0; rank < ranks; rank++)); do cp "$work/nodes" "$work/nodes-$rank"; done
}
wait_for_all() { local process; for process in "${began[@]}"; do wait "$process"; done; began=(); }
leader() { [[ $mode = *central ]] && echo 1 || echo 0; }  # The rank that saves the weights.
code_of() { awk '{ print $1 }' "$work/$1-end-$2"; }
same_bits() { cmp -s "$work/run-$(leader)/checkpoint.safetensors" "$work/whole-$mode.safetensors"; }

undisturbed() {
  [ ! -f "$work/whole-$mode.safetensors" ] || return 0
  local rank
  rm -rf "$work"/run-*
  nodes
  for ((rank = 0; rank < ranks; rank++)); do begin $rank whole; done
  wait_for_all
  for ((rank = 0; rank < ranks; rank++)); do
    [ "$(code_of whole $rank)" = 0 ] || { cat "$work"/whole-log-*; echo "network: an undisturbed run of $mode fails: $(cat "$work"/whole-end-* | tr "\n" " ")" >&2; exit 1; }
  done
  cp "$work/run-$(leader)/checkpoint.safetensors" "$work/whole-$mode.safetensors"
}

# until_phase PHASE: returns when the run is there; with 1 if it is over.
until_phase() {
  local file=$work/run-$(leader)/metrics.csv trials
  for ((trials = 0; trials < 3000; trials++)); do
    compgen -G "$work/run-end-*" >/dev/null && return 1
    case $1 in
      training) [ "$(wc -l 2>/dev/null <"$file")" -ge 4 ] 2>/dev/null && return ;;
      checkpoint) compgen -G "$work/run-*/checkpoints/*" >/dev/null && return ;;
      goodbye) [ "$(wc -l 2>/dev/null <"$file")" -ge 24 ] 2>/dev/null && return ;;
    esac
    sleep 0.01
  done
}

# blamed RANK: the ranks that a rank's last error blames: "1 3". Where it passes on the word of another, that is whom the
# other blames, or the victim where it is the victim's own word.
blamed() {
  local own=$victim
  [ "$1" != "$victim" ] || own=none
  grep '^duplex: ' "$work/run-log-$1" | tail -n 1 |
    sed -E "s/^duplex: //; s/.* ended the run: //; s/^rank $own waited .*/rank $own/; s/.* in vain for //; s/;.*//" |
    grep -oE 'rank [0-9]+' | sort -u | tr -dc '0-9\n' | tr '\n' ' '
}

# judge: notes what is wrong with the ranks' ends, for a disturbance at $victim that was to be survived or not.
judge() {
  local rank code ended who most
  last=0 wrong=0 late=0 blames=0 note=
  for ((rank = 0; rank < ranks; rank++)); do
    code=$(code_of run $rank)
    ended=$(awk -v a="$struck" '{ printf "%.1f", $2 - a }' "$work/run-end-$rank")
    last=$(awk -v a="$ended" -v b="$last" 'BEGIN { print (a > b ? a : b) }')
    if [ $survives = 1 ]; then
      [ "$code" = 0 ] || { wrong=1 note+="; rank $rank ended with $code: $(tail -n 1 "$work/run-log-$rank")"; }
      continue
    fi
    [ "$code" = 137 ] && [ $rank = "$victim" ] && [ $killed = 1 ] && continue
    case $code in 0 | 3 | 4) ;; *) wrong=1 note+="; rank $rank ended with $code" ;; esac
    most=$((timeout + 5))
    # A central server of an asynchronous run that has lost all workers waits for one to come back.
    [[ $mode = "none, central" && $rank = 0 ]] && most=$((2 * timeout + 5))
    awk -v t="$ended" -v most=$most 'BEGIN { exit t > most }' || { late=1 note+="; rank $rank ended after $ended s"; }
    [ "$code" != 0 ] || continue
    who=$(blamed $rank)
    if [ $rank = "$victim" ]; then
      [[ " $who" = *" $victim "* ]] || [ -z "$who" ] || continue
    else
      [ "$who" != "$victim " ] || continue
    fi
    blames=1 note+="; rank $rank blames '$who': $(grep '^duplex: ' "$work/run-log-$rank" | tail -n 1)"
  done
}

# go_on: all ranks start again on mended cables.
go_on() {
  local rank complete=0 from
  lost=0 bits=0
  if [ $survives = 0 ]; then
    nodes
    for ((rank = 0; rank < ranks; rank++)); do begin $rank again --resume; done
    wait_for_all
    for ((rank = 0; rank < ranks; rank++)); do
      [ "$(code_of again $rank)" = 0 ] || { lost=1 note+="; going on, rank $rank ended with $(code_of again $rank): $(tail -n 1 "$work/again-log-$rank")"; }
    done
    ! grep -q 'the checkpoint before it is tried' "$work"/again-log-* || { lost=1 note+="; a checkpoint was damaged"; }
  fi
  [[ $mode = none* ]] || same_bits || { bits=1 note+="; other bits"; }
}

# slow_nodes: all that is for or from the victim goes by host 4, which has an address for each rank: who keeps copies of whose
# checkpoints goes by the hosts in the nodefile, and must be the same for all.
slow_nodes() {
  local other doors=() door=$((port + 2000))
  for ((other = 0; other < ranks; other++)); do
    doors+=("$((door + other))=10.77.0.$((other + 1)):$((port + other))")
    [ $other != "$victim" ] || continue
    sed -i "$((victim + 1))s/.*/10.77.0.$((101 + victim)):$((door + victim))/" "$work/nodes-$other"
    sed -i "$((other + 1))s/.*/10.77.0.$((101 + other)):$((door + other))/" "$work/nodes-$victim"
  done
  rm -f "$work/is-slow"
  ip netns exec "${NETLAB}4" "$slow" "$work/is-slow" "${doors[@]}" >"$work/slow-log" 2>&1 &
  slow_way=$!
}

# try WHAT ROLE PHASE, in $mode. Returns 1 where the phase was over before anything was done.
try() {
  local what=$1 role=$2 phase=$3 cell="$1; $mode; $2; $3" rank missed=0
  [[ $cell = *"$only"* ]] || return 0
  ! grep -qF "$cell|" "$rows" || return 0
  victim=0 survives=0 killed=0
  [ "$role" = coordinator ] || victim=2
  case $what in *-short | disorder) survives=1 ;; esac
  undisturbed
  rm -rf "$work"/run-* "$work"/again-*
  nodes
  struck=$EPOCHREALTIME
  [ "$what" != disorder ] || disorder $victim $port
  [ "$what" != slow ] || slow_nodes
  for ((rank = 0; rank < ranks - 1; rank++)); do begin $rank run; done
  if [ "$phase" = rendezvous ]; then sleep 0.5; else begin $((ranks - 1)) run; [ "$what" = disorder ] || until_phase "$phase" || missed=1; fi
  [ "$what" = disorder ] || struck=$EPOCHREALTIME
  case $what in
    pull-* | reboot | vanish) pull both $victim ;;
    in-*) pull in $victim ;;
    out-*) pull out $victim ;;
    slow) : >"$work/is-slow" ;;
  esac
  [ "$phase" != rendezvous ] || begin $((ranks - 1)) run
  case $what in
    *-short) sleep $((timeout - 2)); mend $victim ;;  # TCP tries again every second, and ARP takes up to one more.
    reboot | vanish)
      killed=1
      kill -KILL -- "-$(cat "$work/pid-$victim")" 2>/dev/null  # The group of timeout(1).
      [ "$what" = vanish ] || { sleep 1; mend $victim; }
      ;;
  esac
  wait_for_all
  mend $victim
  if [ "$what" = slow ]; then kill $slow_way; wait $slow_way 2>/dev/null; fi
  if [ "$what" = disorder ]; then in_order $victim; fi
  [ $missed = 0 ] || return 1
  # A central server of an asynchronous run goes on without a worker.
  judge
  go_on
  [ "$what" != disorder ] || note+="; $(cat "$work/wire")"
  note=${note#; }
  echo "$cell|$last|$wrong|$late|$blames|$lost|$bits|${note//|/;}" >>"$rows"
  echo "network: $cell: $last s$([ $((wrong + late + blames + lost + bits)) = 0 ] || echo "  BROKEN")${note:+: $note}"
  if [ $((wrong + late + blames + lost + bits)) != 0 ]; then
    local kept="$out/broken-${cell//[ ;,]/-}"
    rm -rf "$kept"
    mkdir "$kept"
    cp "$work"/*-log-* "$work"/*-end-* "$kept/"
  fi
}

for what in "${disturbances[@]}"; do
  for mode in "${modes[@]}"; do
    for role in coordinator worker; do
      if [ "$what" = disorder ]; then try disorder $role "whole run"; continue; fi
      for phase in "${phases[@]}"; do
        for again in 1 2 3 4 5; do try "$what" $role "$phase" && break; done || echo "network: $what; $mode; $role; $phase: never met"
      done
    done
  done
done
[ "$only" ] || page
! grep -qE '\|[0-9.]+\|([01]\|)*1\|' "$rows"
