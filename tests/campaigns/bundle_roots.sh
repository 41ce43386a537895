#!/bin/bash
# Runs the three trainings of `make demo` from the bundle (make bundle) in minimal roots, as an ordinary user: of Debian 11,
# 12 and 13 (debootstrap's minbase, nothing added) and one that has busybox and nothing else. Compares their weights with
# those of the ordinary program, to the bit, and then the speed of the big networks, in turns. Writes
# docs/results/bundle.md. It is not part of make test: it needs root, debootstrap and Debian's packages, and half an hour.
# Usage: tests/campaigns/bundle_roots.sh [ROOT]...     bullseye bookworm trixie busybox (default: all)
# Environment: ROOTS     a folder that keeps the base systems between runs (default: none is kept); not that of
#                        tests/platforms.sh, whose systems have git and make
#              DUPLEX    the ordinary program (default bin/duplex); its bundle lies beside it
#              EPOCHS    of each training (default 3, as make demo)
#              REPEATS   turns of the speeds (default 5; 0: none)
#              MIRROR    Debian's mirror, for debootstrap
# Exit code: 0 if all weights agree and no network is more than 2% slower from the bundle, in the fastest step of all roots, 1 if
# not, 2 usage, 77 skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1

# ---- The trainings of tools/demo.sh, for a shell that has no more than POSIX asks. Usage: trainings DUPLEX DATA EPOCHS RUNS
trainings='set -e
flags="--net lenet --datadir $2 --batch 64 --epochs $3 --optimizer adam --lr 0.001 --threads 1 --accuracy"
"$1" local $flags --logdir "$4/alone"
"$1" launch --local 3 -- $flags --server central --logdir "$4/central"
"$1" launch --local 2 -- $flags --server distributed --logdir "$4/distributed"
"$1" compare "$4/alone" "$4/central" "$4/distributed"'

# ---- Inside, as root of namespaces of its own. Usage: inside ROOT BUNDLE DATA RUNS WORDS-OF-SHELL...
if [ "${1:-}" = inside ]; then
  root=$2
  mount --make-rprivate /
  mount -t proc proc "$root/proc"
  mount -t tmpfs mnt "$root/mnt"
  mkdir "$root"/mnt/{bundle,data,runs}
  mount --bind -o ro "$3" "$root/mnt/bundle"
  mount --bind -o ro "$4" "$root/mnt/data"
  mount --bind "$5" "$root/mnt/runs"
  exec env -i HOME=/mnt/runs PATH=/bin:/usr/bin OMP_WAIT_POLICY=passive \
    /usr/sbin/chroot --userspec=65534:65534 "$root" /bin/sh -c 'cd /mnt/runs && eval "$0"' "${@:6}"
fi

# ---- Outside.
systems=("$@")
[ $# -gt 0 ] || systems=(bullseye bookworm trixie busybox)
for system in "${systems[@]}"; do
  case $system in bullseye | bookworm | trixie | busybox) ;; *) echo "bundle_roots: unknown root $system (known: bullseye bookworm trixie busybox)" >&2; exit 2 ;; esac
done
[ "$(id -u)" = 0 ] || { echo "skipped: making roots needs root"; exit 77; }
for program in debootstrap unshare busybox; do command -v $program >/dev/null || { echo "skipped: needs $program"; exit 77; }; done
[[ $(readelf -l "$(command -v busybox)") != *INTERP* ]] || { echo "skipped: needs a static busybox (busybox-static)"; exit 77; }
own=(unshare --mount --pid --fork --kill-child)
"${own[@]}" true 2>/dev/null || { echo "skipped: namespaces may not be made here"; exit 77; }
duplex=$(realpath "${DUPLEX:-bin/duplex}")
commit=$("$duplex" --version | sed -n 's/.*commit //p')
archive=$(dirname "$duplex")/duplex-$("$duplex" --version | sed -n 's/^duplex *\([^,]*\),.*/\1/p')-linux-x86_64.tar.gz
[ -e "$archive" ] || { echo "bundle_roots: there is no $archive; make bundle makes it" >&2; exit 1; }
data=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -d "$data" ] || { echo "skipped: needs Fashion-MNIST (dataset-fashion-mnist, or FASHION_MNIST=folder)"; exit 77; }
page=docs/results/bundle.md
networks="squeezenet googlenet resnet34 vgg16e alexnet"
epochs=${EPOCHS:-3} repeats=${REPEATS:-5}
work=$(mktemp -d)
roots=${ROOTS:-$work/roots}
mkdir -p "$roots"
running=
trap '[ -z "$running" ] || { kill -KILL "$running"; wait "$running"; } 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP
say() { printf 'bundle_roots: %4d s: %s\n' $SECONDS "$*"; }
in_background() {
  "$@" &
  running=$!
  wait "$running"
  local code=$?
  running=
  return $code
}
chmod 755 "$work"
mkdir -p "$work"/{bundle,runs}
tar -xzf "$archive" -C "$work/bundle" --strip-components=1
[[ $(cat "$work/bundle/VERSION") == *" $commit" ]] || { echo "bundle_roots: $archive is of $(cat "$work/bundle/VERSION"), not of $commit; make bundle makes another" >&2; exit 1; }

# base SYSTEM: makes its root, unless it is there.
base() {
  local new
  [ ! -d "$roots/$1" ] || return 0
  new=$(mktemp -d "$roots/new.XXXXXX")
  if [ "$1" = busybox ]; then
    mkdir "$new"/{bin,mnt,proc,tmp} && cp "$(command -v busybox)" "$new/bin/busybox" && chmod 1777 "$new/tmp" &&
      ln -s busybox "$new/bin/sh" || return 1
  else
    say "$1: debootstrap"
    in_background "${own[@]}" debootstrap --variant=minbase "$1" "$new" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log" 2>&1 || return 1
  fi
  chmod 755 "$new"
  mv -T "$new" "$roots/$1"
}

# run SYSTEM COMMAND WORDS...: runs a command of POSIX's shell, which has the words as $1, $2, ...; `native' is this machine.
run() {
  local system=$1 command=$2
  shift 2
  if [ "$system" = native ]; then (cd "$work/runs/native" && OMP_WAIT_POLICY=passive sh -c "$command" sh "$@")
  else in_background "${own[@]}" bash tests/campaigns/bundle_roots.sh inside "$roots/$system" "$work/bundle" "$data" "$work/runs/$system" "$command" "$@"; fi
}
# in_it SYSTEM: sets program, images and folder to the paths that a system sees.
in_it() {
  program=/mnt/bundle/duplex images=/mnt/data folder=/mnt/runs
  [ "$1" != native ] || program=$duplex images=$data folder=$work/runs/native
}
# compared SYSTEM NAME: prints the seconds of a step and the top-1 accuracy that `compare' has of a run.
compared() { awk -v name="$2" '$1 == name { print $(NF - 4) " | " $NF }' "$work/runs/$1/log"; }

load=$(cut -d ' ' -f 1 /proc/loadavg)
bad=0 rows=
there=(native)
for system in "${systems[@]}"; do
  if base "$system"; then there+=("$system"); else say "$system: its root could not be made"; bad=1; fi
done
for system in "${there[@]}"; do
  mkdir "$work/runs/$system"
  [ "$system" = native ] || chown 65534:65534 "$work/runs/$system"
  say "$system: three trainings"
  in_it "$system"
  same=yes
  if ! run "$system" "$trainings" "$program" "$images" "$epochs" "$folder" >"$work/runs/$system/log" 2>&1; then
    say "$system: $(tail -n 1 "$work/runs/$system/log")"
    same=failed
  else
    for name in alone central distributed; do
      cmp -s "$work/runs/native/$name/checkpoint.safetensors" "$work/runs/$system/$name/checkpoint.safetensors" || same=no
    done
  fi
  [ $same = yes ] || bad=1
  rows+="| $system | $(compared "$system" alone) | $(compared "$system" central) | $(compared "$system" distributed) | $same |"$'\n'
done

# rate SYSTEM NET: prints the images a second of the fastest of five steps in training.
rate() {
  in_it "$1"
  run "$1" '"$1" bench --net "$2" --batch 8 --steps 5 --ceiling 0 --row' "$program" "$2" 2>/dev/null | awk -F'\t' -v net="$2" '$1 == net { print $5 }'
}
# A shared machine loses a third of its speed for seconds at a time: the fastest step is the one that was disturbed least.
fastest() { sort -g | tail -n 1 | awk '{ printf "%.4g", $1 }'; }
if [ "$repeats" -gt 0 ]; then
  for ((turn = 1; turn <= repeats; ++turn)); do
    say "speeds, turn $turn"
    for net in $networks; do
      # The ordinary program before each root, or after it, so that both are measured as often and at the same times.
      for system in "${there[@]:1}"; do
        pair=(native "$system")
        for ((i = 0; i < 2; ++i)); do
          one=${pair[(i + turn) % 2]}
          rate "$one" "$net" >>"$work/rates-$net-$system-$one"
        done
      done
    done
  done
fi
speeds=
for net in $networks; do
  [ "$repeats" -gt 0 ] || break
  native=$(cat "$work/rates-$net"-*-native | fastest)
  speeds+="| $net | $native |"
  for system in "${there[@]:1}"; do
    # Of more steps the fastest is faster: a root is compared with the turns beside it alone.
    one=$(fastest <"$work/rates-$net-$system-$system")
    beside=$(fastest <"$work/rates-$net-$system-native")
    speeds+=" $one | $(awk -v a="${one:-0}" -v b="$beside" 'BEGIN { printf "%+.1f%%", 100 * (a / b - 1) }') |"
    cat "$work/rates-$net-$system-$system" >>"$work/bundled-$net"
  done
  # All roots run the same file.
  one=$(fastest <"$work/bundled-$net")
  speeds+=" $one | $(awk -v a="${one:-0}" -v b="$native" 'BEGIN { printf "%+.1f%%", 100 * (a / b - 1) }') |"
  awk -v a="${one:-0}" -v b="$native" 'BEGIN { exit !(a >= 0.98 * b) }' || { say "$net is slower from the bundle: $one images a second instead of $native"; bad=1; }
  speeds+=$'\n'
done

{
  echo '# The bundle in other roots'
  echo
  echo "Written by \`tests/campaigns/bundle_roots.sh\` on $(date -u +%F), commit $commit; $(stat -c %s "$archive" | awk '{ printf "%.1f MB", $1 / 1e6 }'), $(nproc) cores,"
  echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1). native is bin/duplex on the machine that it was built on; the others are the bundle, started by an"
  echo 'ordinary user in a minimal root: Debian 11, 12 and 13 by debootstrap, nothing added, and one with busybox alone.'
  echo
  echo "Before it began, $load processes on average wanted the cores: where that is far from 0, the times say nothing."
  echo
  echo "The three trainings of \`make demo\` ($epochs epochs): seconds of a step, and top-1 accuracy; whether all weights are the same as native's, to the bit."
  echo
  echo '| root | alone s/batch | top-1 | central s/batch | top-1 | distributed s/batch | top-1 | same bits |'
  echo '|---|---|---|---|---|---|---|---|'
  printf '%s' "$rows"
  if [ "$speeds" ]; then
    echo
    echo "Images a second in training at batch 8 in the fastest step of $repeats turns of five, in each of which native is measured beside each"
    echo "root; and how that differs from native's beside it. All roots run the same file: the last column is the fastest of all, beside native's."
    echo
    printf '| network | native |'; printf ' %s | |' "${there[@]:1}" "all roots"; echo
    printf '|---|---|'; printf -- '---|---|%.0s' "${there[@]:1}" all; echo
    printf '%s' "$speeds"
  fi
} >"$work/page"
cp "$work/page" "$page"
say "$([ $bad = 0 ] && echo 'all agree' || echo 'NOT all agree'); the tables are in $page"
exit $bad
