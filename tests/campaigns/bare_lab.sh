#!/bin/bash
# The one command of docs/machines.md on eight bare hosts of the network lab: each has a root of its own with busybox's tools
# and an ssh server, and no C library; the first has an ssh client, the unpacked bundle and a packed data set of JPEG files,
# too. Tells how long it takes from nothing to a finished run with its report, and a second time to the first step.
# Usage, as root: tests/campaigns/bare_lab.sh [BUNDLE.tar.gz]   (default: that of `make bundle`; needs busybox-static,
# dropbear-bin, openssh-client, iproute2 and python3-pil; HOSTS=8 RATE=984mbit)
# The hosts share this machine's cores, so each computes on one thread, and on small images.
set -eu
if [ "${1:-}" != inside ]; then
  given=${1:+$(realpath "$1")}
  cd "$(dirname "$0")/../.."
  bundle=${given:-$(ls -t bin/duplex-*-linux-*.tar.gz 2> /dev/null | head -n1)}
  [ -s "$bundle" ] || { echo "there is no bundle: make bundle, or give one"; exit 1; }
  for program in busybox dropbear dropbearkey ssh ssh-keygen ip tc; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null || { echo "needs $program"; exit 1; }
  done
  # Another Python than the distribution's may come first.
  for python in "${PYTHON:-python3}" /usr/bin/python3; do "$python" -c 'import PIL' 2> /dev/null && break; done ||
    { echo "needs python3-pil"; exit 1; }
  PYTHON=$python BUNDLE=$(realpath "$bundle") exec bash make/isolated.sh tests/campaigns/bare_lab.sh
fi

work=$2
hosts=${HOSTS:-8}
deployed=/srv/duplex  # On each host.
export PATH=$PATH:/usr/sbin NETLAB=dxb
fail() { echo "$*"; tail -n 30 "$work"/log*; exit 1; }
mount -t tmpfs tmpfs /run  # ip makes a folder here.
mount -t tmpfs -o size=8g tmpfs "$work"
bash tools/netlab.sh up "$hosts" "${RATE:-984mbit}"

# carry PROGRAM FOLDER: copies a program with its libraries and its loader, which no other program finds there.
carry() {
  local name=${1##*/} library
  mkdir -p "$2"
  cp "$1" "$2/$name.real"
  for library in $(ldd "$1" | grep -o '/[^ ]*'); do cp -L "$library" "$2/"; done
  cp -L /lib64/ld-linux-x86-64.so.2 "$2/loader"
}
for ((i = 0; i < hosts; i++)); do
  root=$work/root-$i
  mkdir -p "$root"/{bin,dev,etc,proc,root/.ssh,srv,tmp}
  cp "$(command -v busybox)" "$root/bin/busybox"
  chroot "$root" /bin/busybox --install -s /bin
  for device in null zero random urandom; do cp -a /dev/$device "$root/dev/"; done
  echo 'root:x:0:0:root:/root:/bin/sh' > "$root/etc/passwd"
  echo 'root:x:0:' > "$root/etc/group"
  mount -t proc proc "$root/proc"
  chmod 1777 "$root/tmp"
  carry /usr/sbin/dropbear "$root/opt/dropbear"
  dropbearkey -t ed25519 -f "$root/opt/dropbear/key" > /dev/null 2>&1
done
ssh-keygen -q -t ed25519 -N '' -f "$work/root-0/root/.ssh/id_ed25519"
for ((i = 0; i < hosts; i++)); do
  cp "$work/root-0/root/.ssh/id_ed25519.pub" "$work/root-$i/root/.ssh/authorized_keys"
  chmod -R go= "$work/root-$i/root"
  # Machines have names of their own.
  bash tools/netlab.sh exec $i unshare --uts sh -c "hostname lab$i; exec chroot '$work/root-$i' \
    /opt/dropbear/loader --library-path /opt/dropbear /opt/dropbear/dropbear.real -F -s -r /opt/dropbear/key" \
    > "$work/log-sshd-$i" 2>&1 &
done
first=$work/root-0
carry "$(command -v ssh)" "$first/opt/ssh"
printf '%s\n' '#!/bin/sh' 'exec /opt/ssh/loader --library-path /opt/ssh /opt/ssh/ssh.real "$@"' > "$first/bin/ssh"
chmod 755 "$first/bin/ssh"
printf '%s\n' 'StrictHostKeyChecking accept-new' 'LogLevel ERROR' > "$first/root/.ssh/config"
bash tools/netlab.sh nodefile > "$first/root/nodes"

# on_first COMMAND: a shell of host 0 runs it, in root's home.
on_first() {
  bash tools/netlab.sh exec 0 unshare --uts sh -c "hostname lab0; exec chroot '$first' /bin/sh -c 'cd /root && $1'"
}
"$PYTHON" - "$first/root/images" << 'END'
import pathlib, random, sys
from PIL import Image, ImageDraw, ImageFilter
draw = random.Random(1)
for label in range(8):
    folder = pathlib.Path(sys.argv[1]) / f"{label + 1:03}.class"
    folder.mkdir(parents=True)
    for number in range(40):
        image = Image.effect_noise((160, 140), 60).convert("RGB")
        pen = ImageDraw.Draw(image)
        colour = tuple(60 + 60 * (label >> bit & 1) + draw.randrange(60) for bit in range(3))
        x, y = draw.randrange(80), draw.randrange(60)
        (pen.ellipse if label % 2 else pen.rectangle)((x, y, x + 60, y + 60), fill=colour)
        image.filter(ImageFilter.BLUR).save(folder / f"{label + 1:03}_{number + 1:04}.jpg", quality=90)
END
cp "$BUNDLE" "$first/root/bundle.tar.gz"
on_first 'gzip -dc bundle.tar.gz | tar -xf - && mv duplex-*/ bundle && bundle/duplex pack --datadir images --output caltech256.pack' \
  > "$work/log-pack" 2>&1 || fail "the data set cannot be packed"
rm "$first/root/bundle.tar.gz"
echo "data: $(find "$first/root/images" -name '*.jpg' | wc -l) JPEG files, packed: $(stat -c %s "$first/root/caltech256.pack") bytes"
echo "bundle: $(stat -c %s "$BUNDLE") bytes, unpacked: $(du -sb "$first/root/bundle" | cut -f1)"

flags="--net resnet34 --datadir caltech256.pack --input 112 --batch 4 --threads 1 --epochs 1"
command="bundle/duplex launch --nodefile nodes --deploy $deployed --plan auto -- $flags"
echo "command: $command"
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
# newest: the run directory that was made last; runs are named by their time.
newest() { ls -d "$first"/root/runs/dist-* 2> /dev/null | tail -n1; }

begin=$(now)
on_first "$command" > "$work/log-first" 2>&1 &
running=$!
until [ "$(grep -c '^launch: 10.*: \(ready\|has\)' "$work/log-first")" = "$hosts" ]; do
  kill -0 $running 2> /dev/null || fail "the command ended before all hosts had the program"
  sleep 0.1
done
echo "deployed on $hosts hosts after $(since "$begin") s"
wait $running || fail "the command ended with exit code $?"
on_first "bundle/duplex report runs/dist-*" > "$work/log-report" 2>&1 || fail "there is no report"
whole=$(since "$begin")
run=$(newest)
[ -s "$run/report.html" ] && [ -s "$run/summary.json" ] || fail "the report or the results are missing"
grep -h 'Pays' "$work/log-first" | head -n1
echo "results: $(ls "$run" | tr '\n' ' ')"
echo "from nothing to the report: $whole s (at most 120)"

begin=$(now)
on_first "$command" > "$work/log-second" 2>&1 &
running=$!
until [ "$(newest)" != "$run" ] && [ "$(wc -l 2> /dev/null < "$(newest)/metrics.csv")" -ge 2 ] 2> /dev/null; do
  kill -0 $running 2> /dev/null || fail "the second run does not begin"
  sleep 0.05
done
again=$(since "$begin")
grep -q '^launch: 10\.77\.0\.2: has all' "$work/log-second" || fail "something was sent again"
echo "a second time, to the first step: $again s (at most 20)"
wait $running || fail "the second command ended with exit code $?"

on_first "bundle/duplex launch --nodefile nodes --undeploy $deployed" > "$work/log-undeploy" 2>&1 || fail "undeploy"
for ((i = 0; i < hosts; i++)); do [ ! -e "$work/root-$i$deployed" ] || fail "host $i still has $deployed"; done
echo "removed: $deployed on $hosts hosts"
bash tools/netlab.sh down --kill
awk -v a="$whole" -v b="$again" 'BEGIN { exit a > 120 || b > 20 }' || { echo "too slow"; exit 1; }
