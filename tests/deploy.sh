#!/bin/bash
# Tests duplex launch --deploy with a real sshd on two hosts of a network lab, each with a disk of its own: the bundle is put
# there, a training runs, and its results come home; and disks that cannot be used, and keys that are not taken, are told.
# Exit code 77 means skipped; a message says why.
set -eu
skip() { echo "skipped: $*"; exit 77; }
if [ "${1:-}" != inside ]; then
  cd "$(dirname "$0")/.."
  for program in ssh sshd ssh-keygen ip tc; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null || skip "needs $program (openssh-server, iproute2)"
  done
  exec bash make/isolated.sh tests/deploy.sh
fi

work=$2
export PATH=$PATH:/usr/sbin NETLAB=dxd
fail() { echo "$*"; tail -n 30 "$work"/log*; exit 1; }
host() { bash tools/netlab.sh exec "$@"; }
mount -t tmpfs tmpfs /run  # sshd wants a folder here, and ip makes one.
mkdir -p /run/sshd
bash tools/netlab.sh up 3 none > /dev/null || skip "the lab cannot be set up here"
bash tools/netlab.sh nodefile > "$work/nodes"

# ---- The hosts 1 and 2 run an sshd. Below $work/disk each has a disk of its own, of 64 MB, and host 0 has one, too.
disk=$work/disk
mkdir "$disk"
ssh-keygen -q -t ed25519 -N '' -f "$work/host-key"
ssh-keygen -q -t ed25519 -N '' -f "$work/user-key"
ssh-keygen -q -t ed25519 -N '' -f "$work/other-key"
cp "$work/user-key.pub" "$work/authorized"
cat > "$work/sshd_config" << END
HostKey $work/host-key
AuthorizedKeysFile $work/authorized
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
END
# ssh_to NAME KEY: makes an ssh with this key.
ssh_to() {
  printf '%s\n' "IdentityFile $work/$2" 'IdentitiesOnly yes' 'StrictHostKeyChecking accept-new' \
    "UserKnownHostsFile $work/known" 'LogLevel ERROR' > "$work/config-$1"
  printf '#!/bin/sh\nexec ssh -F "%s/config-%s" "$@"\n' "$work" "$1" > "$work/$1"
  chmod 755 "$work/$1"
}
ssh_to ssh user-key
ssh_to stranger other-key
sshd=$(command -v sshd)
for i in 1 2; do
  host $i sh -c "mount -t tmpfs -o size=64m tmpfs '$disk' && exec '$sshd' -f '$work/sshd_config' -E '$work/log-sshd-$i'"
done
for i in 2 3; do
  host 0 timeout 5 "$work/ssh" -o BatchMode=yes 10.77.0.$i true || skip "sshd lets nobody in here: $(tail -n1 "$work/log-sshd-$((i - 1))")"
done
# there I COMMAND: runs it on host I.
there() { host 0 "$work/ssh" -o BatchMode=yes 10.77.0.$(($1 + 1)) "$2"; }

# ---- A bundle whose program is this one, and images of noise, in ten classes, packed.
duplex=${DUPLEX:-bin/duplex}
duplex=$(realpath "$duplex")
bundle=$work/$("$duplex" --version | sed -n '1s/duplex  *\([^,]*\),.*/duplex-\1/p')
mkdir -p "$bundle/lib"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$duplex" > "$bundle/duplex"
chmod 755 "$bundle/duplex"
head -c 3000000 /dev/urandom > "$bundle/lib/some.so"
(cd "$bundle" && sha256sum duplex lib/some.so > MANIFEST)
byte() { printf '%b' "\\0$(printf %o "$1")"; }
images() {
  { printf '\0\0\10\3\0\0\0'; byte "$2"; printf '\0\0\0\34\0\0\0\34'; head -c $(($2 * 784)) /dev/urandom; } \
    > "$work/data/$1-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0\0'; byte "$2"; for ((i = 0; i < $2; i++)); do byte $((i % 10)); done; } > "$work/data/$1-labels-idx1-ubyte"
}
mkdir "$work/data" "$work/home"
images train 96
images t10k 20
"$duplex" pack --datadir "$work/data" --output "$work/home/images.pack" > /dev/null

# launch NAME FLAGS... -- FLAGS...: launches from host 0, in a folder that the others do not have. Leaves what it says in a
# log, and its exit code in $code.
launch() {
  local name=$1
  shift
  code=0
  (cd "$work/home" && exec bash "$OLDPWD/tools/netlab.sh" exec 0 timeout -k 2 100 "$duplex" launch --nodefile "$work/nodes" "$@") \
    > "$work/log-$name" 2>&1 || code=$?
}
says() { grep -q -e "$2" "$work/log-$1" || fail "$1 does not say '$2'"; }
mount -t tmpfs -o size=64m tmpfs "$disk"  # This is host 0's, whose mounts are this script's.
flags=(--net lenet --batch 6 --threads 1 --timeout 30)
deploy=(--ssh "$work/ssh" --deploy "$disk/duplex" --bundle "$bundle")

# ---- One command: each machine gets what it needs, and all results come home.
launch first "${deploy[@]}" -- "${flags[@]}" --datadir images.pack --batches 30 --save saved.safetensors --logdir runs/first
[ $code = 0 ] || fail "the first launch ended with exit code $code"
says first '^launch: 10\.77\.0\.1: ready: '
says first '^launch: 10\.77\.0\.3: ready: '
for file in config.json summary.json metrics.csv rank-{0,1,2}.json ledger-{0,1,2}.csv checkpoint.safetensors; do
  [ -s "$work/home/runs/first/$file" ] || fail "$file is not at home"
done
[ -s "$work/home/saved.safetensors" ] || fail "the weights are not saved"
"$duplex" report "$work/home/runs/first" > "$work/log-report" 2>&1 || fail "report"
there 1 "ls '$disk/duplex/files'" > "$work/log-files"
grep -q -e '-images.pack$' "$work/log-files" || fail "the data set is not there"
grep -q -e '-key$' "$work/log-files" && fail "the run's key is still there"
compgen -G "$disk/duplex/files/*images.pack" > /dev/null && fail "this machine has its data set twice"

# With a common folder the weights are the same.
"$duplex" keygen "$work/key" > /dev/null
(cd "$work/home" && exec bash "$OLDPWD/tools/netlab.sh" exec 0 "$duplex" launch --nodefile "$work/nodes" --ssh "$work/ssh" -- \
  "${flags[@]}" --datadir "$work/home/images.pack" --batches 30 --key "$work/key" --logdir "$work/common") > "$work/log-common" 2>&1 ||
  fail "a launch on a common folder"
cmp "$work/home/runs/first/checkpoint.safetensors" "$work/common/checkpoint.safetensors" || fail "other weights"

# ---- The user's own key stays, unreadable to others, and nothing else is sent again. Ranks are stopped by their nodefile.
(launch second "${deploy[@]}" -- "${flags[@]}" --datadir images.pack --batches 1000000 --key "$work/key" --logdir runs/second
exit $code) &
running=$!
SECONDS=0
until there 1 "[ -s '$disk'/duplex/runs/second-*/rank-1.json ] || ls '$disk'/duplex/runs/second-*/ledger-1.csv" > /dev/null 2>&1; do
  ((SECONDS < 20)) || fail "the second run does not begin"
  sleep 0.1
done
there 1 "ls -l '$disk/duplex/files'" | grep -q -e '^-rw------- .*-key$' || fail "the key is open to others, or not there"
says second '^launch: 10\.77\.0\.2: has all'
launch stop "${deploy[@]:0:4}" stop
[ $code = 0 ] || fail "stop ended with exit code $code"
if wait $running; then fail "a run that was stopped ended well: $(cat "$work/log-second")"; fi
says stop '^launch: stopped [12] ranks\? on 10\.77\.0\.[123]$'  # A rank ends with its peers.
[ -s "$work/home/runs/second/ledger-2.csv" ] || fail "the results of a run that was stopped are not at home"

# ---- Measure, plan, train.
launch plan "${deploy[@]}" --plan auto --seconds 0.3 -- "${flags[@]}" --datadir images.pack --batches 30
[ $code = 0 ] || says plan 'it does not pay to train on several of these machines'
compgen -G "$work/home/runs/plan-lenet-*/plan.json" > /dev/null || fail "there is no plan"
# A second time nothing is measured, but for other flags and where that is asked for.
plans() { compgen -G "$work/home/runs/plan-lenet-*/plan.json" | wc -l; }
launch plan-again "${deploy[@]}" --plan auto --seconds 0.3 -- "${flags[@]}" --datadir images.pack --batches 30
says plan-again '^launch: follows runs/plan-lenet-.*/plan\.json, which was made for the same flags and machines'
[ "$(plans)" = 1 ] || fail "the machines were measured again"
launch plan-new "${deploy[@]}" --plan new --seconds 0.3 -- "${flags[@]}" --datadir images.pack --batches 30
[ "$(plans)" = 2 ] || fail "--plan new did not measure"
launch plan-other "${deploy[@]}" --plan auto --seconds 0.2 -- "${flags[@]}" --datadir images.pack --batches 30
[ "$(plans)" = 3 ] || fail "other flags got the same plan"

# ---- Disks and keys that do not serve. The other machines are finished, and nothing is started.
# unfit NAME HOST WHY LAUNCH-FLAGS...
unfit() {
  local name=$1 which=$2 why=$3
  shift 3
  launch "$name" "$@" -- "${flags[@]}" --datadir images.pack --batches 30 --logdir runs/never
  [ $code = 1 ] || fail "$name ended with exit code $code"
  says "$name" "^launch: $which: .*$why"
  says "$name" '^launch: 10\.77\.0\.1: \(has all\|ready\)'
  says "$name" 'nothing was started'
  [ ! -e "$work/home/runs/never" ] || fail "$name: a run was begun"
}
there 2 "mount -o remount,ro '$disk'"
unfit read-only '10\.77\.0\.3' 'Read-only file system' "${deploy[@]}"
there 2 "mount -o remount,rw,noexec '$disk'"
unfit noexec '10\.77\.0\.3' 'its program does not run: .*Permission denied' "${deploy[@]}"
there 2 "mount -o remount,exec,size=8m '$disk' && rm -rf '$disk/duplex/files'"
unfit full '10\.77\.0\.3' 'its disk is too full' "${deploy[@]}"
there 2 "[ -x '$disk/duplex/${bundle##*/}/duplex' ]" || fail "a full disk lost its program"
there 2 "mount -o remount,size=64m '$disk'"
unfit stranger '10\.77\.0\.2' 'Permission denied' --ssh "$work/stranger" "${deploy[@]:2}"
cp "$work/known" "$work/known-good"
sed 's/^/10.77.0.3 /' "$work/other-key.pub" > "$work/known"
unfit changed '10\.77\.0\.3' 'Host key verification failed' "${deploy[@]}"
cp "$work/known-good" "$work/known"

# ---- All goes away again. The run that was stopped may go on one day, so its results stay.
launch undeploy --ssh "$work/ssh" --undeploy "$disk/duplex"
[ $code = 0 ] || fail "undeploy ended with exit code $code"
says undeploy '^launch: 10\.77\.0\.2: .*kept .*/runs/second-'
there 1 "ls -A '$disk/duplex' | grep -v -e '^runs\$' -e '^\\.duplex-deploy\$'" && fail "something is left"
there 1 "rm -rf '$disk'/duplex/runs/*"
there 2 "rm -rf '$disk'/duplex/runs/*"
launch gone --ssh "$work/ssh" --undeploy "$disk/duplex"
for i in 1 2; do there $i "[ ! -e '$disk/duplex' ]" || fail "host $i still has the folder"; done
[ ! -e "$disk/duplex" ] || fail "host 0 still has the folder"
bash tools/netlab.sh down --kill
