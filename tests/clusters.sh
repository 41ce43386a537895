#!/bin/bash
# Tests the files of docs/clusters/ as far as that goes without their clusters: their flags are flags of dist, their ranks
# are as many as their nodefiles', and each is what its program takes. Tests the program as process 1, as in a container.
# (tests/srun.sh runs the batch script.) What cannot be tried here is said, and left out.
set -eu
cd "$(dirname "$0")/.."
files=docs/clusters
duplex=$(realpath "${DUPLEX:-bin/duplex}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
without() { echo "not tried, for want of $*"; }

# ---- The flags of all files.
"$duplex" dist --help > "$work/help"
known() { grep -oE '(^|[ ,])--[a-z-]+' "$work/help" | grep -oE -- '--[a-z-]+'; }
# flags FILE: the flags in its lines that dist reads, from the word dist to the line that ends the command.
flags() {
  case $1 in
    *.sbatch) sed -n '/^srun/,/"\$@"/p' "$1" | sed 's/.* dist //' ;;
    *.service) sed -n '/^ExecStart/,/\$FLAGS/p' "$1" ;;
    compose.yaml | */compose.yaml) sed -n '/command:/,/volumes:/p' "$1" ;;
    *) sed -n '/args:/,/env:/p' "$1" ;;
  esac | grep -oE -- '--[a-z][a-z-]*'
}
for file in "$files"/{duplex.sbatch,duplex@.service,compose.yaml,kubernetes.yaml}; do
  [ "$(flags "$file" | wc -l)" -ge 4 ] || fail "$file: this test does not find its flags"
  if unknown=$(flags "$file" | grep -vxFf <(known)); then fail "$file: dist has no flag $unknown"; fi
  for flag in --resume --checkpoint-every --key --logdir; do
    flags "$file" | grep -qxF -- $flag || fail "$file does not give dist $flag"
  done
done

# ---- The files in their own languages.
bash -n "$files/duplex.sbatch"
if command -v shellcheck > /dev/null; then shellcheck "$files/duplex.sbatch"; else without shellcheck; fi
if python3 -c 'import yaml' 2> /dev/null; then
  python3 - "$files" << 'PYTHON'
import sys
import yaml

folder = sys.argv[1]
def names(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]

compose = yaml.safe_load(open(f"{folder}/compose.yaml"))
ranks = list(compose["services"])
assert names(open(f"{folder}/nodes").read()) == ranks, "compose.yaml and nodes differ"
for number, name in enumerate(ranks):
    rank = compose["services"][name]
    assert rank["environment"] == {"RANK": str(number), "WORLD_SIZE": str(len(ranks))}, name
    assert rank["image"] == "duplex" and rank["command"].startswith("dist "), name

parts = {part["kind"]: part for part in yaml.safe_load_all(open(f"{folder}/kubernetes.yaml"))}
job, service = parts["Job"], parts["Service"]
pod = job["spec"]["template"]
nodes = names(parts["ConfigMap"]["data"]["nodes"])
assert nodes == [f"{job['metadata']['name']}-{i}.{service['metadata']['name']}" for i in range(len(nodes))], nodes
assert job["spec"]["completions"] == job["spec"]["parallelism"] == len(nodes)
assert pod["spec"]["subdomain"] == service["metadata"]["name"]
assert pod["metadata"]["labels"] == service["spec"]["selector"]
mounts = {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
assert mounts == {volume["name"] for volume in pod["spec"]["volumes"]}
PYTHON
else
  without "Python's yaml"
fi
if python3 -c 'import kubernetes_validate' 2> /dev/null; then
  python3 -m kubernetes_validate --strict --quiet "$files/kubernetes.yaml" || fail "kubernetes.yaml is not what Kubernetes takes"
else
  without kubernetes-validate
fi
if command -v systemd-analyze > /dev/null; then
  sed "s,/opt/duplex/duplex,$duplex," "$files/duplex@.service" > "$work/duplex@.service"
  if said=$(systemd-analyze verify "$work/duplex@.service" 2>&1 | grep duplex@); then fail "$said"; fi
else
  without systemd-analyze
fi

# ---- A rank that is process 1 and waits for another ends by SIGTERM, as it does elsewhere.
own=(unshare --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || own+=(--user --map-root-user)
if "${own[@]}" true 2> /dev/null; then
  # Who starts it may ignore that children end, and so does what he starts.
  ignoring=(python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])')
  if command -v python3 > /dev/null; then
    timeout -s KILL 20 "${own[@]}" "${ignoring[@]}" "$duplex" --version > "$work/log" || fail "process 1 does not end: exit code $?"
  fi
  port=$((20000 + $$ % 10000))  # It is below the ephemeral ports.
  printf '127.0.0.1:%d\n' $port $((port + 1)) > "$work/nodes"
  "${own[@]}" "$duplex" dist --net lenet --device replay:0.01 --batches 5 --nodefile "$work/nodes" --index 0 --timeout 30 \
    --logdir "$work/run" > "$work/log" 2>&1 &
  unshare=$!
  SECONDS=0
  until grep -q 'listens on' "$work/log"; do
    ((SECONDS < 20)) || fail "a rank as process 1 does not come up: $(cat "$work/log")"
    sleep 0.1
  done
  first=$(cut -d ' ' -f 1 "/proc/$unshare/task/$unshare/children")
  kill -TERM "$first"
  SECONDS=0 code=0
  wait $unshare || code=$?
  [ $code = 143 ] && ((SECONDS < 10)) || fail "a rank as process 1 ends after $SECONDS s with exit code $code"
else
  without namespaces
fi
