#!/usr/bin/env python3
"""Compares networks that are cut over ranks with one machine that trains them with the same images: the losses of 20 steps,
and the weights behind them. Real computing on Fashion-MNIST, the ranks being processes of this machine. Pipelines with a
stage for each rank must have the bits of `local --accumulate`. All other cuts add up in another order, and training enlarges
what rounding makes of that; so does one machine that adds up in another order, which is the yardstick.

Usage: DUPLEX=bin/duplex tests/campaigns/cut_exact.py [PAGE]     PAGE: the page to write (default: standard output)
Environment: NETWORKS ("lenet resnet34", or some others of them; default all), FASHION_MNIST (folder of the data set), OUT
(folder that keeps what was compared, so that the same command goes on; default: runs/campaigns/cut_exact).
The exit code is 1 if something does not agree."""
import array
import csv
import json
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))

from lab.kept import Kept  # noqa: E402
from lab.machine import DUPLEX, commit, data_folder, processor, run  # noqa: E402

STEPS, BATCH, UNEVEN = 20, 24, 22
# The loss of the first step, which no update has touched, may differ by this part of itself. What comes later may differ by
# so many times what the yardstick does, or by LEAST.
FIRST, TIMES, LEAST = 1e-6, 10, 1e-5
OPTIMISERS = {"momentum": (("--optimizer", "sgd", "--momentum", "0.9"), 1.0), "Adam": (("--optimizer", "adam"), 0.1)}
ALL = ("owt", "filter", "hybrid", "hypergraph")
# Network: flags, strategies beside pipelines, numbers of ranks, what makes one machine add up in another order, and the
# learning rate (Adam's is a tenth), so low that 20 steps enlarge rounding little. Batch normalisation is over the samples
# that a rank has, so Resnet34 agrees where it is cut by channels.
NETWORKS = {"lenet": ((), ALL, (2, 4, 8), ("--accumulate", "2"), 0.002),
            "resnet34": (("--input", "32"), ("filter",), (2, 4, 8), ("--device", "reference"), 1e-6),
            "googlenet": (("--input", "64", "--auxiliary"), ALL, (2, 4), ("--accumulate", "2"), 1e-4),
            "squeezenet": (("--input", "48"), ALL, (2, 4, 8), ("--accumulate", "2"), 1e-4),
            "alexnet": (("--input", "67"), ALL, (2, 4), ("--accumulate", "2"), 1e-4)}


def losses_of(logdir):
    """Returns the loss of each step: the mean of its batches'."""
    with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    each = len(losses) // STEPS
    return [sum(losses[i:i + each]) / each for i in range(0, len(losses), each)]


def weights_of(logdir):
    """Returns the tensors of checkpoint.safetensors: (name, values)."""
    with open(os.path.join(logdir, "checkpoint.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        begin = file.tell()
        for name in sorted(name for name in header if name != "__metadata__"):
            first, end = header[name]["data_offsets"]
            file.seek(begin + first)
            values = array.array("f")
            values.frombytes(file.read(end - first))
            yield name, values


def apart(cut, alone):
    """Returns the difference of the first losses, and the greatest of all losses and of weights and running statistics, each
    as a part of what they are compared with."""
    losses = [abs(a - b) / abs(b) for a, b in zip(losses_of(cut), losses_of(alone))]
    weights = 0.0
    for (_, a), (_, b) in zip(weights_of(cut), weights_of(alone)):
        if a != b:
            weights = max(weights, max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b)))
    return losses[0], max(losses), weights


def trained(command, net, flags, folder, name):
    logdir = os.path.join(folder, name)
    run([*command, "--net", net, *flags, "--threads", "1", "--datadir", data_folder(), "--logdir", logdir], 1800)
    return logdir


def compared(net, kept):
    shape, strategies, all_ranks, other_order, rate = NETWORKS[net]
    for optimiser, (learning, part) in OPTIMISERS.items():
        with tempfile.TemporaryDirectory() as folder:
            flags, alone = (*shape, *learning, "--lr", f"{rate * part:.9f}"), {}

            def one_machine(batch, accumulate=1, device=()):
                key = f"alone-{batch}-{accumulate}-{''.join(device)}"
                if key not in alone:
                    parts = ("--accumulate", str(accumulate)) if accumulate > 1 else ()
                    alone[key] = trained([DUPLEX, "local"], net, (*flags, "--batch", str(batch // accumulate), *parts, "--batches",
                                                                  str(STEPS * accumulate), *device), folder, key)
                return alone[key]

            def add(ranks, batch, way, differences, bits=False):
                row = {"network": net, "optimiser": optimiser, "ranks": ranks, "images": batch, "flags": f"`{' '.join(way)}`"}
                if any(all(each[name] == value for name, value in row.items()) for each in kept.rows):
                    return
                first, losses, weights = differences()
                kept.add({**row, "first loss": first, "losses": losses, "weights": weights, "bits": bits,
                          "commit": commit(), "processor": processor()})
                print(kept.rows[-1], file=sys.stderr, flush=True)

            def cut(ranks, batch, way, machine, bits):
                def differences():
                    words = ("--sync", "split", "--batch", str(batch), "--batches", str(STEPS), "--timeout", "120", *way)
                    logdir = trained([DUPLEX, "launch", "--local", str(ranks), "--"], net, (*flags, *words), folder,
                                     f"cut-{len(kept.rows)}")
                    return apart(logdir, machine())
                add(ranks, batch, way, differences, bits)

            def in_other_order():
                if other_order[0] == "--device":
                    return apart(one_machine(BATCH, device=other_order), one_machine(BATCH))
                return apart(one_machine(BATCH, int(other_order[1])), one_machine(BATCH))

            add(1, BATCH, other_order, in_other_order)
            for ranks in all_ranks:
                for strategy in strategies:
                    batch = UNEVEN if strategy in ("owt", "hybrid") and ranks == 4 else BATCH
                    cut(ranks, batch, ("--strategy", strategy), lambda batch=batch: one_machine(batch), False)
                pipeline = ("--strategy", "pipeline", "--micro-batches", "3")
                if net == "lenet" and ranks == 8:  # It has fewer layers.
                    cut(ranks, BATCH, (*pipeline, "--stages", "2"), lambda: one_machine(BATCH), False)
                else:
                    cut(ranks, BATCH, pipeline, lambda: one_machine(BATCH, 3), True)


def agrees(row, rows):
    if row["bits"]:
        return row["weights"] == 0.0 and row["losses"] <= FIRST  # They are written with 9 digits.
    yardstick = next(each for each in rows if each["ranks"] == 1 and
                     (each["network"], each["optimiser"]) == (row["network"], row["optimiser"]))
    return row["first loss"] <= FIRST and all(row[name] <= max(TIMES * yardstick[name], LEAST) for name in ("losses", "weights"))


def page_of(kept):
    rows = [row for net in NETWORKS for optimiser in OPTIMISERS for row in kept.rows
            if (row["network"], row["optimiser"]) == (net, optimiser)]
    lines = ["# Cut networks beside one machine", "",
             f"Written by `tests/campaigns/cut_exact.py` at commit {kept.every('commit')}, on {kept.every('processor')}. {STEPS} steps on Fashion-MNIST, ranks of one thread",
             "each; a step has as many images as one machine's. first loss: the difference of the first step's loss, as a part of it; losses: the greatest",
             "of all steps; weights: the greatest difference of a weight behind the last step, as a part of its tensor's largest. With one rank: one",
             "machine that adds up in another order, which is the yardstick for what training makes of rounding. A pipeline with a stage for each rank",
             f"has to have all bits of `local --accumulate`; all others agree in the first loss to {FIRST:g}, and differ otherwise by at most {TIMES} times as much",
             f"as the yardstick, or {LEAST:g}.", "",
             "| network | optimiser | ranks | images | flags | first loss | losses | weights | agrees |", "|---" * 9 + "|"]
    good = 0
    for row in rows:
        yes = agrees(row, rows)
        good += yes
        numbers = ["same", "same", "all bits"] if row["bits"] and yes else [f"{row[name]:.1e}" for name in ("first loss", "losses", "weights")]
        lines.append(f"| {row['network']} | {row['optimiser']} | {row['ranks']} | {row['images']} | {row['flags']} | {' | '.join(numbers)} | "
                     f"{'yardstick' if row['ranks'] == 1 else 'yes' if yes else '**no**'} |")
    return "\n".join([*lines, "", f"{good} of {len(rows)} agree.", ""]), good == len(rows)


def main():
    kept = Kept(os.path.join(os.environ.get("OUT") or "runs/campaigns/cut_exact", "rows.jsonl"), {"steps": STEPS})
    for net in os.environ.get("NETWORKS", " ".join(NETWORKS)).split():
        compared(net, kept)
    text, good = page_of(kept)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="ascii") as file:
            file.write(text)
    else:
        print(text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
