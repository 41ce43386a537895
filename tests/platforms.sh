#!/bin/bash
# Tries what the README promises on fresh minimal Debian systems, which debootstrap makes: its two commands (make demo,
# make test), as root and as an ordinary user, on a clone of the committed HEAD; then times the five big networks. Writes
# docs/platforms.md: a row for each suite and user; rows that were not tried again stay. It is not part of make test: it
# needs root, debootstrap and Debian's packages, and takes ten to twenty minutes a row.
# Usage: tests/platforms.sh [SUITE]...     bullseye bookworm trixie (default: all); with a clang that the suite packages instead
#                                          of g++, warnings being errors: bookworm-clang-14, ...; clang: all of these,
#                                          as root alone
# Environment: ROOTS     a folder that keeps the base systems between runs (default: none is kept); each row starts from a copy
#              ROWS      a folder that keeps each row's system, too. A row that is there goes on in its checkout as the run before
#                        left it, brought to HEAD (default: every row is fresh)
#              LOGS      where each step's output goes (default runs/platforms)
#              WHO       "root user", or one of them
#              ONLY      the tests that run, as make test takes them; all test programs are compiled and linked all the same
#                        (default: all)
#              MIRROR    Debian's mirror, for debootstrap
# Exit code: 0 if every row is green, 1 if not, 2 usage, 77 skipped.
set -u
cd "$(dirname "$0")/.." || exit 1

# ---- Inside: as root of namespaces of its own, mount what a system has, then run the command as the user asked for.
# Usage: inside ROOT USER COMMAND
if [ "${1:-}" = inside ]; then
  root=$2 user=$3
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --bind -o ro /sys "$root/sys"
  mount -t tmpfs -o mode=755 dev "$root/dev"
  for node in null zero full random urandom tty; do
    touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"
  done
  mkdir "$root/dev/shm" "$root/dev/pts"
  mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 pts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for i in 0 1 2; do ln -s /proc/self/fd/$i "$root/dev/$(echo stdin stdout stderr | cut -d ' ' -f $((i + 1)))"; done
  home=/root path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  [ "$user" = root ] || home=/home/$user path=/usr/local/bin:/usr/bin:/bin
  # Make it the root, not merely a chroot, in which tests could not make further namespaces.
  cd "$root"
  pivot_root . mnt
  exec chroot . bash -c 'umount -l /mnt && exec "$@"' in-the-root \
    env -i ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    HOME="$home" USER="$user" PATH="$path" LANG=C.UTF-8 TERM=dumb \
    /usr/sbin/chroot --userspec="$user:$user" --groups="$user" / bash -c "cd ~/duplex && $4"
fi

# ---- Outside.
# Debian packages no clang 12.
clangs=(bullseye-clang-{11,13,16} bookworm-clang-{13,14,15,16,19} trixie-clang-{17,18,19})
suites=("$@")
[ $# -gt 0 ] || suites=(bullseye bookworm trixie)
[ "$*" != clang ] || suites=("${clangs[@]}")
for suite in "${suites[@]}"; do
  case " bullseye bookworm trixie ${clangs[*]} " in
    *" $suite "*) ;;
    *) echo "platforms: unknown suite $suite (known: bullseye bookworm trixie; clang, or of it ${clangs[*]})" >&2; exit 2 ;;
  esac
done
[ "$(id -u)" = 0 ] || { echo "skipped: making systems needs root"; exit 77; }
for program in debootstrap unshare pivot_root git flock; do
  command -v $program >/dev/null || { echo "skipped: needs $program"; exit 77; }
done
own=(unshare --mount --pid --fork --kill-child --uts --ipc)
"${own[@]}" true 2>/dev/null || { echo "skipped: namespaces may not be made here"; exit 77; }

page=docs/platforms.md
# This page and the others are no part of what is tried, so that a commit of the page leaves it the same.
sources=$(git ls-tree -r HEAD | grep -v "	docs/" | git hash-object --stdin | cut -c 1-8)
networks="squeezenet googlenet resnet34 vgg16e alexnet"
logs=${LOGS:-runs/platforms}
mkdir -p "$logs" || exit 1
logs=$(cd "$logs" && pwd)
work=$(mktemp -d)
roots=${ROOTS:-$work/roots}
mkdir -p "$roots" ${ROWS:+"$ROWS"}
[ -z "${ROWS:-}" ] || ROWS=$(cd "$ROWS" && pwd)
running=
# Everything that runs inside ends with its namespace's first process, and its mounts end with the namespace.
trap '[ -z "$running" ] || { kill -KILL "$running"; wait "$running"; } 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP
start=$SECONDS
say() { printf 'platforms: %4d s: %s\n' $((SECONDS - start)) "$*"; }

# in_background COMMAND...: runs it, and returns its exit code; an interrupt of this script ends it too.
in_background() {
  "$@" &
  running=$!
  wait "$running"
  local code=$?
  running=
  return $code
}

# step ROOT USER LOG COMMAND: runs the command inside, with its output in LOG.
step() { in_background "${own[@]}" bash tests/platforms.sh inside "$1" "$2" "$4" >"$3" 2>&1 </dev/null; }

# base SUITE: makes its system, unless it is there.
base() {
  local suite=${1%%-*} new
  [ ! -d "$roots/$suite" ] || return 0
  say "$suite: debootstrap"
  new=$(mktemp -d "$roots/new.XXXXXX")
  in_background "${own[@]}" debootstrap --variant=minbase --include=ca-certificates,git,make "$suite" "$new" \
    ${MIRROR:+"$MIRROR"} >"$logs/$suite-debootstrap.log" 2>&1 || { rm -rf --one-file-system "$new"; return 1; }
  rm -rf "$new"/var/cache/apt/archives/*.deb
  chmod 755 "$new"
  mv -T "$new" "$roots/$suite" 2>/dev/null || rm -rf --one-file-system "$new"  # Another run may have been first.
}

# carry: gets the headers that Debian 11 lacks as the README says, by make carry in a checkout on this machine.
carry() {
  [ ! -d "$work/carry/.deps" ] || return 0
  git clone -q --no-hardlinks . "$work/carry" && make -s -C "$work/carry" carry
}

# found CONFIG WHAT: prints what the probe says of it.
found() { sed -n "s/^  found    $2 *//p" "$1" 2>/dev/null | head -n 1; }

# row SUITE USER: tries everything there and writes the page's row. Returns 1 if something is not green.
row() {
  local suite=$1 user=$2 name=$1-$2 root=${ROWS:-$work}/$1-$2 home=/root passes clang= settings=
  local demo=- test=- counts='- | - | -' ok=1 begin speed= net
  [ "$user" = root ] || home=/home/$user
  case $suite in *-clang-*) clang=${suite#*-} settings=" -k CXX=clang++-${suite##*-} WERROR=1" ;; esac
  passes=$(($(passes_of "$suite" "$user") + 1))
  if [ -d "$root" ]; then
    say "$suite, $user: as the run before left it"
    trusting git -C "$root$home/duplex" fetch -q "$PWD" HEAD && trusting git -C "$root$home/duplex" checkout -q FETCH_HEAD || return 1
  else
    say "$suite, $user: a fresh copy"
    rm -rf --one-file-system "$root.new"
    cp -a "$roots/${suite%%-*}" "$root.new" && mv "$root.new" "$root" || return 1
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"  # debootstrap leaves this file to an installer.
    { [ "$user" = root ] || chroot "$root" useradd -m -s /bin/bash "$user"; } &&
      git clone -q --no-hardlinks . "$root$home/duplex" || { rm -rf --one-file-system "$root"; return 1; }
    if [ "$clang" ] && ! step "$root" root "$logs/$name-clang.log" \
      "apt-get -q update && apt-get -q install -y --no-install-recommends $clang libomp-${clang#clang-}-dev"; then
      say "$suite: $clang could not be installed: $(tail -n 1 "$logs/$name-clang.log")"
      rm -rf --one-file-system "$root"
      return 1
    fi
    if [ "${suite%%-*}" = bullseye ]; then
      carry && cp -a "$work/carry/.deps" "$root$home/duplex/" || say "$suite, $user: make carry failed"
    fi
  fi
  chroot "$root" chown -R "$user:$user" "$home"

  say "$suite, $user: make demo$settings"
  begin=$SECONDS
  step "$root" "$user" "$logs/$name-demo.log" "make demo$settings" && demo="$((SECONDS - begin)) s" || { demo=failed ok=; }
  say "$suite, $user: make demo: $demo; make test"
  begin=$SECONDS
  step "$root" "$user" "$logs/$name-test.log" "make test$settings${ONLY:+ ONLY=\"$ONLY\" && make test-programs$settings}" && test="$((SECONDS - begin)) s" || { test=failed ok=; }
  local last
  last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/$name-test.log" | tail -n 1)
  [ -z "$last" ] || counts=$(echo "$last" | sed 's/ passed, / | /; s/ failed, / | /; s/ skipped//')
  say "$suite, $user: make test: $test, ${last:-no summary}; the networks"
  : >"$logs/$name-bench.log"
  for net in $networks; do
    step "$root" "$user" "$logs/$name-bench-$net.log" \
      "OMP_WAIT_POLICY=passive bin/duplex bench --net $net --batch 8 --steps 3 --ceiling 0 --row"
    speed+=" | $(awk -F'\t' -v net=$net '$1 == net { printf "%.1f", $3; found = 1 } END { if (!found) printf "failed" }' "$logs/$name-bench-$net.log")"
  done
  case $speed in *failed*) ok= ;; esac

  [ "$ok" ] || passes=0
  local config=$root$home/duplex/build/config.txt compiler onednn
  compiler=$(found "$config" compiler | sed -E 's/.*clang version ([0-9.]+).*/clang \1/; s/^([^ ]+).*\) ([0-9.]+).*/\1 \2/')
  onednn=$(found "$config" oneDNN)
  record "$suite" "$user" "| $(date -u +%F) | $suite | $user | ${compiler:--} | ${onednn:-none} | $sources | $passes | $demo | $test | $counts$speed |" \
    "$(reasons "$logs/$name-test.log" | sed "s/^/- $suite, $user: /")"
  say "$suite, $user:$([ "$ok" ] || echo ' NOT') green; logs in ${logs#"$PWD"/}/$name-*.log"
  [ "${ROWS:-}" ] || rm -rf --one-file-system "$root"
  [ "$ok" ]
}

# trusting COMMAND...: runs git on a checkout that belongs to the row's user.
trusting() { GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' "$@"; }

# passes_of SUITE USER: prints how often in a row the row was green with these sources.
passes_of() { sed -n "s/^| [^|]*| $1 | $2 |[^|]*|[^|]*| $sources | \([0-9]*\) |.*/\1/p" "$page" | grep . || echo 0; }

# reasons LOG: prints why tests were skipped, as make/test.sh says it.
reasons() {
  awk '/ passed, [0-9]+ failed, [0-9]+ skipped   / { name = $1; skipped = $6 > 0 && $4 == 0; next }
       /^    / && skipped { sub(/^ */, ""); print name ": " $0; next }
       { skipped = 0 }' "$1"
}

# record SUITE USER ROW REASONS: puts row and reasons on the page in place of the former ones. What follows on the page from
# its first second-level heading on stays.
record() {
  (
    flock 9
    local old=$work/old
    sed '/^## /,$d' "$page" >"$old" 2>/dev/null || : >"$old"
    {
      echo "# Platforms"
      echo
      echo "Written by \`tests/platforms.sh\`: \`make demo\` and \`make test\` on minimal systems (debootstrap's minbase with git, make and"
      echo "ca-certificates), as root and as an ordinary user without root. Debian 11 has no CLI11: \`make carry\` brought its headers."
      echo "sources: a digest of all files of the commit but docs/; green: how often in a row with these sources."
      echo "demo and test: with all that had to be installed and compiled; the networks: images a second in training at batch 8."
      echo "In a suite with a clang, this compiles everything, warnings being errors. A dash was not tried yet. These times are of shared machines with $(nproc) cores, which did other things, too: they show what works, not what is fast."
      echo
      echo "| date | suite | user | compiler | oneDNN | sources | green | demo | test | passed | failed | skipped | ${networks// / | } |"
      echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
      { grep '^| 2' "$old" | grep -v "| $1 | $2 |"; echo "$3"; } | sort -t '|' -k 3,3V -k 4,4
      echo
      echo "Skipped:"
      echo
      { grep '^- ' "$old" | grep -v "^- $1, $2: "; [ -z "$4" ] || echo "$4"; } | sort
      if grep -q '^## ' "$page"; then
        echo
        sed -n '/^## /,$p' "$page"
      fi
    } >"$work/page"
    cp "$work/page" "$page"
  ) 9>"$logs/lock"
}

bad=0
for suite in "${suites[@]}"; do
  if ! base "$suite"; then
    say "$suite: debootstrap failed: $(tail -n 1 "$logs/${suite%%-*}-debootstrap.log")"
    bad=1
    continue
  fi
  users=${WHO:-root user}
  case $suite in *-clang-*) users=root ;; esac
  for user in $users; do row "$suite" "$user" || bad=1; done
done
say "$([ $bad = 0 ] && echo 'all green' || echo 'NOT all green'); the table is in $page"
exit $bad
