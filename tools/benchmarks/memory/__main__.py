"""The memory that trainings take, beside what `duplex nets NET --memory` says beforehand: python3 tools/benchmarks/memory

Every network trains a few steps on random images, alone and on ranks on loopback: two workers with a central server, two
that each own a half of the weights, two with an asynchronous central server, and two that have a part of the network each.
Prints the table of
docs/results/memory.md, and writes the page when all networks and ways were asked for. What was measured is kept in OUT,
so that the same command goes on where it was interrupted.

Environment: NETWORKS, BATCHES ("lenet:64,512 ..."), WAYS ("alone distributed central async owt pipeline"), STEPS (3), OPTIMIZER (sgd
with momentum: "momentum"; or sgd, adam), OUT (runs/memory), PAGE (the file to write; empty: none), DUPLEX.
Exit code: 0 if every process took what the forecast says, within 5% or 1.5 MiB; 1 if one did not, or failed.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))  # For the package lab.
import images
import page
from lab.machine import DUPLEX, Failed, run

MIB = 1 << 20
INPUTS = {"lenet": 28, "alexnet": 227}  # 224 for the others.
BATCHES = "lenet:64,512 squeezenet:2,8 googlenet:2,8 resnet34:2,8 alexnet:4,16 vgg16e:1,4"
WAYS = "alone distributed central async owt pipeline"
FLAGS = {"alone": [], "distributed": ["--server", "distributed"], "central": ["--server", "central"],
         "async": ["--server", "central", "--sync", "none"], "owt": ["--strategy", "owt"],
         "pipeline": ["--strategy", "pipeline", "--micro-batches", "2"]}
OPTIMIZERS = {"sgd": [], "momentum": ["--momentum", "0.9"], "adam": ["--optimizer", "adam"]}
WORKERS = 2
LIMIT = 3600  # Seconds of a run.


def say(line):
    print("bench: " + line, file=sys.stderr, flush=True)


def call(arguments):
    return run([DUPLEX, *arguments], limit=LIMIT)


def forecast(network, batch, optimizer, way):
    """Returns, by role, what nets --memory says: the program's MiB, and the sum with it."""
    text = call(["nets", network, "--memory", "--threads", "1", "--batch", str(batch), "--workers", str(WORKERS),
                 *OPTIMIZERS[optimizer], *FLAGS[way]])
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("MiB "))
    roles = re.split(r"  +", lines[head].strip())[1:]
    ends = [match.end() for match in re.finditer("-+", lines[head + 1])][1:]
    rows = {}
    for line in lines[head + 2:]:
        cells = [line[:end].rpartition(" ")[2] if end <= len(line) else "" for end in ends]
        for name, key in (("program", "program"), ("gradients received", "received"), ("maps", "maps"), ("sum", "sum")):
            if line.startswith(name):
                rows[key] = [float(cell.replace(",", "") or 0) for cell in cells]
    # Both are told as the most that they come to.
    maps = rows.pop("maps", [0.0] * len(roles))
    rows["received"] = [a + b for a, b in zip(rows.get("received", [0.0] * len(roles)), maps)]
    return {role: {key: values[i] for key, values in rows.items()} for i, role in enumerate(roles)}


def role_of(way, rank):
    if way == "alone":
        return "alone"
    if way == "distributed":
        return "worker, owner"
    if "--strategy" in FLAGS[way]:
        return f"rank {rank}"
    return "central server" if rank == 0 else "worker"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def training(network, batch, optimizer, steps, data, logdir):
    return ["--net", network, "--datadir", data, "--batch", str(batch), "--batches", str(steps), "--threads", "1",
            "--classes", "10" if network == "lenet" else "1000", "--logdir", logdir, "--lr", "1e-6",
            *OPTIMIZERS[optimizer]]


def peak(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["peak_memory_bytes"] / MIB


def run_alone(flags, logdir):
    call(["local", *flags])
    return [peak(logdir + "/summary.json")]


def run_together(way, flags, logdir):
    ranks = WORKERS + 1 if "central" in FLAGS[way] else WORKERS
    nodes = logdir + ".nodes"
    with open(nodes, "w", encoding="utf-8") as file:
        file.writelines(f"127.0.0.1:{port}\n" for port in free_ports(ranks))
    started = [subprocess.Popen([DUPLEX, "dist", *flags, *FLAGS[way], "--nodefile", nodes, "--index", str(rank),
                                 "--timeout", "600"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
    errors = [process.communicate()[1].strip() for process in started]
    for rank, process in enumerate(started):
        if process.returncode != 0:
            raise Failed(f"rank {rank} of {way}: exit code {process.returncode}: {errors[rank][-300:]}")
    return [peak(f"{logdir}/rank-{rank}.json") for rank in range(ranks)]


def measure(network, batch, optimizer, way, steps, out):
    """Returns a row for each role: the most, and the least, that a rank of the role took."""
    data = images.packed(network, INPUTS.get(network, 224), 2 * WORKERS * batch, out, call)
    logdir = f"{out}/run"
    shutil.rmtree(logdir, ignore_errors=True)
    flags = training(network, batch, optimizer, steps, data, logdir)
    peaks = run_alone(flags, logdir) if way == "alone" else run_together(way, flags, logdir)
    shutil.rmtree(logdir, ignore_errors=True)
    rows = {}
    for rank, took in enumerate(peaks):
        role = role_of(way, rank)
        row = rows.setdefault(role, {"network": network, "batch": batch, "optimizer": optimizer, "way": way,
                                     "role": role, "took": took, "least": took})
        row["took"], row["least"] = max(row["took"], took), min(row["least"], took)
    return list(rows.values())


def main():
    def words(name, default):
        return (os.environ.get(name) or default).split()
    batches = {word.split(":")[0]: [int(batch) for batch in word.split(":")[1].split(",")]
               for word in words("BATCHES", BATCHES)}
    networks, ways = words("NETWORKS", " ".join(batches)), words("WAYS", WAYS)
    optimizer, steps = words("OPTIMIZER", "momentum")[0], int(words("STEPS", "3")[0])
    out = os.environ.get("OUT") or "runs/memory"
    os.makedirs(out, exist_ok=True)
    kept = out + "/rows.jsonl"
    rows = []
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    failed = False
    for network in networks:
        for batch in batches[network]:
            for way in ways:
                if any((row["network"], row["batch"], row["way"], row["optimizer"]) == (network, batch, way, optimizer)
                       for row in rows):
                    continue
                say(f"{network}, batch {batch}, {way}")
                try:
                    new = measure(network, batch, optimizer, way, steps, out)
                except Failed as error:
                    say(str(error))
                    failed = True
                    continue
                rows += new
                with open(kept, "a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in new)
    for row in rows:  # What was measured stays; what is said may have changed since.
        row.update(forecast(row["network"], row["batch"], row["optimizer"], row["way"])[row["role"]])
    print(page.table(rows))
    path = os.environ.get("PAGE", "docs/results/memory.md" if set(ways) == set(WAYS.split()) and
                          set(networks) == set(INPUTS) | {"squeezenet", "googlenet", "resnet34", "vgg16e"} else "")
    if path:
        page.write(path, rows, steps)
    return 1 if failed or not all(page.is_right(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
