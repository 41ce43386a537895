"""make accuracy: does it pay, where accuracy is asked for and not steps? Trains networks on Fashion-MNIST in every way, on
one machine and on two with links of 100 Mbit/s, and says what each takes to an accuracy. Writes docs/results/accuracy.md.
Environment: NETWORKS ("lenet squeezenet googlenet resnet34"), WAYS (names of ways, commas between them), SEEDS (3),
FASHION_MNIST (folder with the IDX files), OUT (folder that keeps a line for each training, so that the same command goes
on where it was interrupted; default runs/accuracy), PAGE (the file to write; default: docs/results/accuracy.md for
everything, none for less)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.kept import Kept  # noqa: E402
from lab.machine import Failed, data_folder  # noqa: E402
from page import page  # noqa: E402
from trainings import NETWORKS, WAYS, flags_of, pace, train  # noqa: E402

SEEDS = 3
PAGE = "docs/results/accuracy.md"


def asked(name, known, separator):
    """Returns those of `known` that the environment names, or all. Ends the program for others."""
    words = [word.strip() for word in os.environ.get(name, "").split(separator) if word.strip()]
    for word in words:
        if word not in known:
            sys.exit(f"accuracy: {name}={word}: there are {(separator or ' ').join(known)}")
    return [known[word] for word in words or known]


def found(kept, wanted, made):
    """Returns what is kept with these values; else makes it and keeps it."""
    for row in kept.rows:
        if wanted.items() <= row.items() and ("seed" in wanted) == ("seed" in row):
            return row, False
    row = made()
    kept.add(row)
    return row, True


def trained(kept, network, way, seed, data):
    """Returns the row of a training: a kept one of the same flags, or a new one."""
    same = {"network": network.name, "way": way.name, "flags": flags_of(network, way)}
    step_seconds = None
    if way.flags is not None and not way.asynchronous:
        paced, new = found(kept, same, lambda: pace(network, way, data))
        step_seconds = paced["step_seconds"]
        if new:
            print(f"accuracy: {network.name}, {way.name}: {step_seconds:.3f} s a step on the link", flush=True)
    row, new = found(kept, {**same, "seed": seed}, lambda: train(network, way, seed, data, step_seconds))
    if new:
        print(f"accuracy: {network.name}, {way.name}, seed {seed}: top-1 {row['top1']:.2f} after "
              f"{row['tests'][-1]['seconds']:.1f} s", flush=True)
    return row


def main():
    data = data_folder()
    networks, ways = asked("NETWORKS", NETWORKS, None), asked("WAYS", WAYS, ",")
    if WAYS["alone"] not in ways:
        ways.insert(0, WAYS["alone"])
    count = os.environ.get("SEEDS") or str(SEEDS)
    if not count.isdigit() or count == "0":
        sys.exit(f"accuracy: SEEDS={count}: say how many, from 1 on")
    seeds = int(count)
    kept = Kept(os.path.join(os.environ.get("OUT") or "runs/accuracy", "trainings.jsonl"), {})
    os.environ["OMP_WAIT_POLICY"] = "passive"  # Two ranks may share a core.
    results = {}
    for network in networks:
        results[network.name] = {way.name: [] for way in ways}
        for seed in range(1, seeds + 1):  # Seed by seed, so that all ways see the same machine.
            for way in ways:
                try:
                    results[network.name][way.name].append(trained(kept, network, way, seed, data))
                except Failed as failure:
                    sys.exit(f"accuracy: {network.name}, {way.name}: {failure}")
    chosen = any(os.environ.get(name) for name in ("NETWORKS", "WAYS", "SEEDS"))
    path = os.environ.get("PAGE", "" if chosen else PAGE)
    text = page(networks, results, seeds, kept)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"accuracy: wrote {path}")
    else:
        print(text)


if __name__ == "__main__":
    main()
