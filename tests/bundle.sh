#!/bin/bash
# Tests the bundle (docs/bundle.md): two archives of the same parts are the same; unpacked into a folder with a space and
# started by a symbolic link, in a root that has busybox and nothing else, it trains, plans and simulates to the same bits
# as the ordinary program; with a file missing it says which. Exit code 77 means skipped; a message says why.
# Usage: BUNDLE=build/bundle DUPLEX=bin/duplex tests/bundle.sh    BUNDLE: the folder of the parts (make bundle)
set -eu
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "$*" >&2; exit 1; }

# ---- The same commands for the ordinary program and the bundle. Usage: commands DUPLEX
commands='set -e
duplex=$1
"$duplex" local --net lenet --datadir data --batches 4 --batch 8 --threads 1 --profile --logdir alone
"$duplex" launch --local 2 -- --net lenet --datadir data --batches 4 --batch 8 --threads 1 --secure on --logdir two
"$duplex" plan --net lenet --t-grad 0.01 --rate 100Mbit/s --machines 3 >plan.txt
"$duplex" simulate --net lenet --t-grad 0.01 --rate 100Mbit/s --workers 3 --logdir virtual | grep -v ^took >simulate.txt
"$duplex" plan --from alone --rate 100Mbit/s --machines 2 >plan-from.txt
"$duplex" report alone two'

# ---- Inside, as root of namespaces of its own. Usage: inside ROOT WORDS-OF-SHELL...
if [ "${1:-}" = inside ]; then
  mount -t proc proc "$2/proc"
  exec env -i HOME=/ PATH=/bin LD_LIBRARY_PATH=/nowhere /usr/sbin/chroot "$2" /bin/sh -c "${@:3}"
fi

# ---- Outside.
[ "${BUNDLE:-}" ] || skip "a bundle has the ordinary program, and this is a build for sanitizers"
cd "$(dirname "$0")/.."
for program in busybox unshare; do command -v $program >/dev/null || skip "needs $program ($([ $program = busybox ] && echo busybox-static || echo util-linux))"; done
[[ $(readelf -l "$(command -v busybox)") != *INTERP* ]] || skip "needs a static busybox (busybox-static)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,proc,tmp} "$root/opt/my lab" "$root/try/data" "$work/native"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh cat env grep true; do ln -s busybox "$root/bin/$applet"; done
own=(unshare --mount --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || own+=(--map-root-user)
inside() { "${own[@]}" bash tests/bundle.sh inside "$root" "$@"; }
inside true 2>/dev/null || skip "namespaces may not be made here"

# ---- The archive. The second time with other permissions, another time zone and language, and older files.
COMMIT=$(cat "$BUNDLE/../commit")
export COMMIT
mkdir "$work/parts"
cp "$BUNDLE"/{duplex,starter} "$work/parts"
archive=$(bash make/bundle/bundle.sh "$work/parts" "$DUPLEX" "$work/first")
touch -d 2001-01-01 "$work"/parts/*
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 bash make/bundle/bundle.sh "$work/parts" "$DUPLEX" "$work/second") >/dev/null
cmp "$archive" "$work/second/${archive##*/}" || fail "two archives of the same parts differ"
[ "$(stat -c %s "$archive")" -le 40000000 ] || fail "the archive has $(stat -c %s "$archive") bytes, 40 MB are the most"
name=${archive##*/}
name=${name%-linux-x86_64.tar.gz}
tar -xzf "$archive" -C "$root/opt/my lab"
top="$root/opt/my lab/$name"
[ "$(ls "$root/opt/my lab")" = "$name" ] || fail "the archive has more than the folder $name"
[[ $("$DUPLEX" --version) == "duplex   $(cat "$top/VERSION")"$'\n'* ]] || fail "VERSION says $(cat "$top/VERSION")"
(cd "$top" && sha256sum --quiet -c MANIFEST) || fail "MANIFEST does not fit"
diff <(cut -c 67- "$top/MANIFEST") <(cd "$top" && find . ! -type d ! -name MANIFEST | cut -c 3- | LC_ALL=C sort) ||
  fail "MANIFEST does not name what is there"
for package in $(awk 'NR > 3 && $2 != "of" && $2 != "unpacked" { print $2 }' "$top/licences/SOURCES" | sort -u); do
  [ -s "$top/licences/$package" ] || fail "there is no licence of $package"
done

# ---- The same results, from a root of its own.
# image COUNT: prints so many images of 28x28 with their labels, as IDX files have them, to the files NAME-*.
big_endian() { printf "\\x$(printf %02x $(($1 >> 8)))\\x$(printf %02x $(($1 & 255)))"; }
images() {
  local name=$1 count=$2 i
  { printf '\0\0\10\3\0\0'; big_endian "$count"; printf '\0\0\0\34\0\0\0\34'; head -c $((count * 784)) "$DUPLEX"; } | gzip -n >"$name-images-idx3-ubyte.gz"
  { printf '\0\0\10\1\0\0'; big_endian "$count"; for ((i = 0; i < count; ++i)); do printf "\\x0$((i % 10))"; done; } >"$name-labels-idx1-ubyte"
}
images "$root/try/data/train" 300
images "$root/try/data/t10k" 20
cp -r "$root/try/data" "$work/native"
ln -s "../opt/my lab/$name/duplex" "$root/bin/duplex"
duplex=$(realpath "$DUPLEX")
(cd "$work/native" && sh -c "$commands" sh "$duplex" >log 2>&1) || fail "the ordinary program: $(tail -n 3 "$work/native/log")"
inside "cd /try && $commands" sh duplex >"$work/log" 2>&1 || fail "the bundle: $(tail -n 3 "$work/log")"
for file in alone/checkpoint.safetensors two/checkpoint.safetensors plan.txt simulate.txt; do
  cmp "$work/native/$file" "$root/try/$file" || fail "the bundle and the ordinary program do not agree on $file"
done
grep -qE '^(Pays|Does not pay):' "$root/try/plan-from.txt" || fail "plan --from: $(cat "$root/try/plan-from.txt")"
grep -q '</html>' "$root/try/alone/report.html" || fail "report made no page"
cpu() { grep -E '^(duplex|compiler|cpu|protocol)' <<<"$1"; }
said=$(/usr/sbin/chroot "$root" /bin/duplex --version 2>&1) || said=$(inside 'duplex --version')  # Where /proc is not mounted, too.
[ "$(cpu "$said")" = "$(cpu "$("$duplex" --version)")" ] || fail "the bundle says: $said"

said=$(inside 'duplex bench --net lenet --steps 1 --device cuda' 2>&1) && fail "it has no device of GPUs and computes on one"
[[ $said == *"this build has no /opt/my lab/$name/bin/duplex-cudnn.so"* ]] || fail "it looks for the device of GPUs elsewhere: $said"

# ---- What it starts gets its starter's path, the user's own environment, and a parent with the program's name.
printf '#!/bin/sh\n{ echo "$@"; env; cat /proc/$PPID/comm; } >/tmp/said\nexit 255\n' >"$root/bin/other-ssh"
chmod +x "$root/bin/other-ssh"
echo 203.0.113.7 >"$root/try/far"
if inside 'cd /try && duplex launch --nodefile far --ssh other-ssh -- --net lenet' >/dev/null 2>&1; then
  fail "launch reached a machine by an ssh that fails"
fi
for said in "/opt/my lab/$name/duplex" 'LD_LIBRARY_PATH=/nowhere'; do
  grep -qF "$said" "$root/tmp/said" || fail "launch does not give its children $said: $(cat "$root/tmp/said")"
done
[ "$(tail -n 1 "$root/tmp/said")" = duplex ] || fail "its process is called $(tail -n 1 "$root/tmp/said")"
[ "$(grep -c '^LD_\|^DUPLEX' "$root/tmp/said")" = 1 ] || fail "children inherit what is the starter's: $(cat "$root/tmp/said")"

# ---- What is missing or damaged is named, in one line.
# broken TEXT COMMAND: breaks a copy of the bundle by the command, in its folder; it must say the text and do nothing more.
broken() {
  local copy=$work/copy/${3:-bundle} code=0 said
  rm -rf "$work/copy"
  mkdir "$work/copy"
  cp -al "$top" "$copy"
  (cd "$copy" && eval "$2")
  said=$("$copy/duplex" nets 2>&1) || code=$?
  [ $code != 0 ] || fail "it runs in spite of: $2"
  [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == *"$copy"* && $said == *"$1"* ]] || fail "after \`$2' it says: $said"
  last=$code
}
for file in lib/libgomp.so.1 lib/libc.so.6 lib/libpthread.so.0 lib/ld-linux-x86-64.so.2 bin/duplex MANIFEST; do
  [ -e "$top/$file" ] || continue
  broken "$file is missing; unpack" "rm $file"
  [ $last = 1 ] || fail "exit code $last without $file"
done
broken 'MANIFEST is damaged' 'rm MANIFEST; echo nonsense >MANIFEST'
broken 'MANIFEST is damaged' 'rm MANIFEST; : >MANIFEST'
broken 'ld-linux-x86-64.so.2 may not be read or run' 'cp lib/ld-linux-x86-64.so.2 x; chmod 644 x; mv -f x lib/ld-linux-x86-64.so.2'
broken 'ld-linux-x86-64.so.2 is no program for this machine' 'rm lib/ld-linux-x86-64.so.2; echo nonsense >lib/ld-linux-x86-64.so.2; chmod 755 lib/ld-linux-x86-64.so.2'
broken 'libz.so.1: file too short' 'head -c 30 lib/libz.so.1 >x; mv -f x lib/libz.so.1'
broken 'unpack the bundle into a folder without them' : 'a:b'
