"""make bench ONLY=rounding: what does rounding to 16 bits on the wire do to a training? Networks train on Fashion-MNIST
on two ranks of this machine, with every coding of `--wire` from the same seeds. Writes docs/results/rounding.md.
Environment: NETWORKS ("lenet squeezenet resnet34"), WIRES ("float32 bf16 fp16"), SEEDS (5), FASHION_MNIST (folder with
the IDX files), OUT (folder that keeps a line for each training, so that the same command goes on where it was
interrupted, and with more SEEDS adds to them; default runs/rounding), PAGE (the file to write; default: docs/results/rounding.md for everything, none for less)."""
import json
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.kept import Kept  # noqa: E402
from lab.machine import DUPLEX, WORK, Failed, commit, data_folder, nodefile_here, processor, run  # noqa: E402

# Flags of each training: SqueezeNet and Resnet34 take smaller maps and fewer images, so that a seed takes minutes. The
# learning rate drops towards the end, and SqueezeNet takes Adam: with plain SGD some seeds learn nothing in that time,
# with any coding, and the difference says nothing of the coding.
NETWORKS = {"lenet": ["--batch", "32", "--epochs", "2", "--lr", "0.02", "--momentum", "0.9", "--lr-steps", "1200", "1600"],
            "squeezenet": ["--input", "48", "--batch", "32", "--batches", "1500", "--optimizer", "adam", "--lr", "0.0005",
                           "--lr-steps", "1000", "1300"],
            "resnet34": ["--input", "32", "--batch", "32", "--batches", "600", "--lr", "0.02", "--momentum", "0.9",
                         "--lr-steps", "400", "500"]}
WIRES = ("float32", "bf16", "fp16")
SEEDS = 5
TARGET = 0.3  # Points of top-1 that the mean may differ by.
RANKS = 2
PAGE = "docs/results/rounding.md"
LIMIT = 3600  # Seconds of a training.


def asked(name, default):
    return os.environ[name].split() if os.environ.get(name) else list(default)


def train(network, wire, seed, data):
    """Returns the test's top-1 in per cent and its loss, as a row of what is kept."""
    logdir = tempfile.mkdtemp(prefix="rounding-", dir=WORK)
    run([DUPLEX, "launch", "--nodefile", nodefile_here(logdir, RANKS), "--", "--net", network, "--datadir", data,
         *NETWORKS[network], "--threads", "1", "--seed", str(seed), "--wire", wire, "--accuracy", "--logdir",
         os.path.join(logdir, "run")], limit=LIMIT)
    with open(os.path.join(logdir, "run", "summary.json"), encoding="utf-8") as file:
        accuracy = json.load(file)["accuracy"]
    shutil.rmtree(logdir)
    return {"network": network, "flags": " ".join(NETWORKS[network]), "wire": wire, "seed": seed,
            "top1": 100 * accuracy["top1"], "loss": accuracy["loss"], "commit": commit(), "processor": processor()}


def trained(kept, network, wire, seed, data):
    """Returns the row of a training: a kept one of the same flags, or a new one."""
    same = {"network": network, "flags": " ".join(NETWORKS[network]), "wire": wire, "seed": seed}
    for row in kept.rows:
        if same.items() <= row.items():
            return row
    row = train(network, wire, seed, data)
    kept.add(row)
    print(f"rounding: {network}, {wire}, seed {seed}: top-1 {row['top1']:.2f}, loss {row['loss']:.3f}", flush=True)
    return row


def page(rows, seeds, kept):
    text = ["# What 16 bits on the wire do to a training", "",
            f"Written by `make bench ONLY=rounding` at commit {kept.every('commit')}, on {kept.every('processor')}. Two ranks that train and own "
            f"half of the weights each, on", f"Fashion-MNIST, {seeds} seeds, the same for every coding. Figures are of "
            "all 10,000 test images, mean and standard deviation over the seeds. difference: to float32 with the",
            f"same seed; its mean is to be within {TARGET} points.", "",
            "| network | flags | wire | top-1, % | test loss | difference, points | verdict |",
            "|---|---|---|---|---|---|---|"]
    for row in rows:
        flags = " ".join(NETWORKS[row["network"]])
        text.append(f"| {row['network']} | `{flags}` | {row['wire']} | {row['top1']} | {row['loss']} | "
                    f"{row['difference']} | {row['verdict']} |")
    return "\n".join(text) + "\n"


def spread(values):
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values) if len(values) > 1 else 0:.2f}"


def main():
    data = data_folder()
    networks, wires = asked("NETWORKS", NETWORKS), asked("WIRES", WIRES)
    seeds = int(os.environ.get("SEEDS") or SEEDS)
    kept = Kept(os.path.join(os.environ.get("OUT") or "runs/rounding", "trainings.jsonl"), {"ranks": RANKS})
    os.environ["OMP_WAIT_POLICY"] = "passive"  # Two ranks may share a core.
    rows = []
    for network in networks:
        if network not in NETWORKS:
            sys.exit(f"bench: NETWORKS={network}: there are {' '.join(NETWORKS)}")
        base = None
        for wire in wires:
            try:
                results = [trained(kept, network, wire, seed, data) for seed in range(1, seeds + 1)]
            except Failed as failure:
                sys.exit(f"rounding: {network}, {wire}: {failure}")
            top1, loss = [row["top1"] for row in results], [row["loss"] for row in results]
            base = base or top1
            differences = [own - other for own, other in zip(top1, base)]
            mean = statistics.mean(differences)
            first = wire == wires[0]
            rows.append({"network": network, "wire": wire, "top1": spread(top1), "loss": spread(loss),
                         "difference": "" if first else spread(differences),
                         "verdict": "" if first else "met" if abs(mean) <= TARGET else f"missed: {mean:+.2f}"})
            print(f"rounding: {network}, {wire}: top-1 {rows[-1]['top1']}, loss {rows[-1]['loss']}"
                  + ("" if first else f", difference {rows[-1]['difference']}"), flush=True)
    chosen = any(os.environ.get(name) for name in ("NETWORKS", "WIRES", "SEEDS"))
    path = os.environ.get("PAGE", "" if chosen else PAGE)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page(rows, seeds, kept))
        print(f"rounding: wrote {path}")


if __name__ == "__main__":
    main()
