#!/bin/bash
# Tests ranks that Slurm's srun starts, on a cluster of three nodes on this machine. The cluster is in namespaces of its
# own, so that it meets no other and nothing of it stays. Exit code 77 means skipped; a message says why.
set -eu
skip() { echo "skipped: $*"; exit 77; }
if [ "${1:-}" != inside ]; then
  cd "$(dirname "$0")/.."
  for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null || skip "needs $program (slurm-wlm and munge)"
  done
  command -v ip > /dev/null || skip "needs ip (iproute2)"
  exec bash make/isolated.sh tests/srun.sh
fi

work=$2
export PATH=$PATH:/usr/sbin SLURM_CONF=$work/slurm.conf
fail() { echo "$*"; cat "$work"/log-*; exit 1; }
cannot() { grep -ih error "$work"/*.log | tail -n3; skip "the cluster does not come up here: $*"; }

ip link set lo up
# Slurm looks names up, and mpirun starts, only where there is a network beside loopback.
ip link add eth0 type veth peer name eth1
ip addr add 10.77.0.1/24 dev eth0
ip link set eth0 up
ip link set eth1 up
hostname machine
{ echo '127.0.0.1 localhost machine'; for i in 1 2 3; do echo "127.0.0.1$i lab0$i"; done; } > "$work/hosts"
mount --bind "$work/hosts" /etc/hosts
mkdir "$work/state"
(umask 077; head -c 64 /dev/urandom > "$work/munge.key")
{
  cat << EOF
ClusterName=duplex
SlurmctldHost=machine(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES State=UP
EOF
  for i in 1 2 3; do echo "NodeName=lab0$i NodeHostname=machine NodeAddr=127.0.0.1 Port=1682$i CPUs=4"; done
} > "$SLURM_CONF"
timeout 5 munged --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/munge.seed" || cannot munged
timeout 5 slurmctld -c || cannot slurmctld
for i in 1 2 3; do timeout 5 slurmd -N lab0$i || cannot slurmd; done
SECONDS=0
until [ "$(timeout 1 sinfo -h -o '%D %t' 2> /dev/null)" = '3 idle' ]; do
  ((SECONDS < 5)) || cannot "$(timeout 1 sinfo -h 2>&1 | tail -n1)"
  sleep 0.1
done

duplex=${DUPLEX:-bin/duplex}
training=(--net lenet --device replay:0.01 --batches 5 --timeout 10)
# step NAME FLAGS... -- FLAGS...: runs dist by srun, with srun's flags first, then dist's. Leaves the exit code in $code.
step() {
  local name=$1 srun=()
  shift
  while [ "$1" != -- ]; do srun+=("$1"); shift; done
  shift
  code=0
  timeout -k 2 20 srun "${srun[@]}" "$duplex" dist "${training[@]}" --logdir "$work/$name" "$@" \
    > "$work/log-$name" 2>&1 || code=$?
}
# ends NAME CODE TEXT: fails unless the step ended with this exit code and said this text.
ends() {
  [ "$code" = "$2" ] || fail "$1: exit code $code"
  grep -qF -- "$3" "$work/log-$1" || fail "$1: no word of '$3'"
}

step distributed -N 3 -n 5 --
for rank in 0 1 2 3 4; do
  ends distributed 0 "rank $rank of 5 (from Slurm: SLURM_PROCID; hosts of SLURM_STEP_NODELIST)"
  [ -s "$work/distributed/rank-$rank.json" ] || fail "rank $rank left nothing"
done
grep -qF 'rank 4: rank 3 (lab02:7117) is connected' "$work/log-distributed" || fail "ranks are not at their hosts"
step central -N 3 -n 3 -- --server central
ends central 0 'rank 2 of 3'
step here -N 1 -n 2 -c 1 --
ends here 0 'rank 1 of 2 (from Slurm: SLURM_PROCID; all ranks on this machine)'
step cyclic -N 3 -n 5 -m cyclic --
ends cyclic 2 'SLURM_DISTRIBUTION=cyclic: ranks are not distributed in blocks'
printf 'lab01 slots=3\n' > "$work/three"
step short -N 1 -n 2 -- --nodefile "$work/three"
ends short 2 'of 1 rank and SLURM_STEP_NUM_TASKS=2 contradict each other'

# Inside an allocation the user starts ranks by other means; nothing that Slurm's variables say there contradicts them.
cat > "$work/batch" << EOF
#!/bin/bash
"$duplex" launch --nodefile "$work/three" -- ${training[*]} --logdir "\$1-run"
echo \$? > "\$1"
EOF
# (sbatch's own --wait looks only every few seconds.)
timeout 5 sbatch -n 2 -o "$work/log-batch" "$work/batch" "$work/batch-code" > /dev/null || fail "sbatch: exit code $?"
SECONDS=0
until [ -s "$work/batch-code" ]; do
  ((SECONDS < 20)) || fail "sbatch: nothing has come"
  sleep 0.1
done
[ "$(cat "$work/batch-code")" = 0 ] || fail "launch in sbatch: exit code $(cat "$work/batch-code")"
timeout -k 2 20 srun -n 1 bash "$work/batch" "$work/shell-code" > "$work/log-shell" 2>&1 || true
[ "$(cat "$work/shell-code")" = 0 ] || fail "launch in a step of one: exit code $(cat "$work/shell-code")"
if mpirun --version 2> /dev/null | grep -q 'Open MPI'; then
  printf 'lab0%d slots=2\n' 1 2 3 > "$work/six"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 2 30 salloc -Q -N 3 --ntasks-per-node 2 \
    mpirun -np 6 --oversubscribe "$duplex" dist "${training[@]}" --nodefile "$work/six" --logdir "$work/mpirun" \
    > "$work/log-mpirun" 2>&1 || fail "mpirun in salloc: exit code $?"
  grep -q '^rank 5 of 6 (from Open MPI' "$work/log-mpirun" || fail "rank 5 of mpirun in salloc is not told"
fi

# The batch script of docs/clusters/: its ranks get SIGTERM, as before the end of its time, and write a checkpoint; the job
# goes into the queue by itself, starts again, and goes on to its end.
# big_endian NUMBER, images NAME COUNT: so many images of 28x28 with their labels, as IDX files have them.
big_endian() { printf "\\x$(printf %02x $(($1 >> 8)))\\x$(printf %02x $(($1 & 255)))"; }
images() {
  { printf '\0\0\10\3\0\0'; big_endian "$2"; printf '\0\0\0\34\0\0\0\34'; head -c $(($2 * 784)) "$duplex"; } > "$1-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0'; big_endian "$2"; head -c "$2" /dev/zero; } > "$1-labels-idx1-ubyte"
}
mkdir "$work/data" "$work/lab"
images "$work/data/train" 600
images "$work/data/t10k" 20
"$duplex" keygen "$work/lab/cluster.key" > /dev/null
cp docs/clusters/duplex.sbatch "$work/lab"
job=$(cd "$work/lab" && DUPLEX=$(realpath "$OLDPWD/$duplex" 2> /dev/null || realpath "$duplex") timeout 5 sbatch --parsable -N 3 -o "$work/log-requeued" \
  duplex.sbatch --net lenet --datadir "$work/data" --batch 4 --threads 1 --epochs 8 --timeout 10) || fail "sbatch: exit code $?"
run=$work/lab/runs/slurm-$job
# until TEXT FILE SECONDS: waits for a text in a file.
until_said() {
  SECONDS=0
  until grep -qsF -- "$1" "$2"; do
    ((SECONDS < $3)) || fail "after $3 s no word of '$1': $(timeout 1 squeue)"
    sleep 0.1
  done
}
until_said , "$run/metrics.csv" 30
scancel --signal=TERM "$job"
until_said 'the job goes back into the queue' "$work/log-requeued" 30
# Slurm lets a job wait for two minutes before it starts again; the test does not.
SECONDS=0
until [ "$(timeout 1 squeue -h -j "$job" -o %T)" = PENDING ]; do
  ((SECONDS < 30)) || fail "the job is not in the queue: $(timeout 1 squeue)"
  sleep 0.1
done
scontrol update JobId="$job" StartTime=now
until_said 'rank 0: goes on after' "$work/log-requeued" 60
until_said '' "$run/checkpoint.safetensors" 60
