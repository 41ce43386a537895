"""make accuracy: does it pay, where accuracy is asked for and not steps? Trains networks on Fashion-MNIST in every way, on
one machine and on two with links of 100 Mbit/s, and says what each takes to an accuracy. Writes docs/results/accuracy.md and
accuracy.html.
Environment: NETWORKS ("lenet squeezenet googlenet resnet34"), WAYS (names of ways, commas between them), SEEDS (3),
FASHION_MNIST (folder with the IDX files), OUT (folder that keeps a line for each training, so that the same command goes
on where it was interrupted; default runs/accuracy), PAGE (the file to write, and beside it the page with charts; default:
docs/results/accuracy.md for everything, OUT/index.md for less).
The machine must be idle until the last training of `async` has ended: what is timed comes first."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.kept import Kept  # noqa: E402
from lab.machine import DUPLEX, Failed, data_folder, processor, run  # noqa: E402
from page import page, results_of  # noqa: E402
from trainings import NETWORKS, WAYS, flags_of, pace, train, with_seconds  # noqa: E402

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
    """Returns what is kept with these values, and that it is not new; else makes it and keeps it."""
    for row in kept.rows:
        if wanted.items() <= row.items():
            return row, False
    row = {**wanted, **made()}
    kept.add(row)
    return row, True


def wanted_row(network, way, name, seed):
    """Returns what tells the row of a pace (`name`: "pace") or of a training ("seed") from all others."""
    return {"network": network.name, "way": way.name, "flags": flags_of(network, way), name: seed}


def timed_on(kept, network, ways, seeds):
    """Returns the processor of all that is timed of a network, since seconds of two do not compare: one on which everything
    has been, or this machine's."""
    timed = [wanted_row(network, way, "seed" if way.asynchronous else "pace", seed)
             for way in ways for seed in range(1, seeds + 1)]
    for name in dict.fromkeys(row["processor"] for row in kept.rows):
        if all(any({**wanted, "processor": name}.items() <= row.items() for row in kept.rows) for wanted in timed):
            return name
    return processor()


def paces(kept, network, ways, seeds, where):
    """Returns the seconds of a step on the link, by way and seed: kept ones of the same flags and processor, or measured ones,
    the ways in turns, so that all of them see the same machine."""
    found_paces = {}
    for seed in range(1, seeds + 1):
        for way in (way for way in ways if not way.asynchronous):
            wanted = {**wanted_row(network, way, "pace", seed), "processor": where}
            row, new = found(kept, wanted, lambda: pace(network, way, seed, data_folder()))
            found_paces[way.name, seed] = row["step_seconds"]
            if new:
                print(f"accuracy: {network.name}, {way.name}: {row['step_seconds']:.3f} s a step on the link", flush=True)
    return found_paces


def trained(kept, network, way, seed, where):
    """Returns the row of a training: a kept one of the same flags, and of the same processor if it is timed, or a new one."""
    wanted = {**wanted_row(network, way, "seed", seed), **({"processor": where} if way.asynchronous else {})}
    row, new = found(kept, wanted, lambda: train(network, way, seed, data_folder()))
    if new:
        print(f"accuracy: {network.name}, {way.name}, seed {seed}: top-1 {row['top1']:.2f}", flush=True)
    return row


def main():
    networks, ways = asked("NETWORKS", NETWORKS, None), asked("WAYS", WAYS, ",")
    if WAYS["alone"] not in ways:
        ways.insert(0, WAYS["alone"])
    count = os.environ.get("SEEDS") or str(SEEDS)
    if not count.isdigit() or count == "0":
        sys.exit(f"accuracy: SEEDS={count}: say how many, from 1 on")
    seeds = int(count)
    folder = os.environ.get("OUT") or "runs/accuracy"
    kept = Kept(os.path.join(folder, "trainings.jsonl"), {})
    os.environ["OMP_WAIT_POLICY"] = "passive"  # Two ranks may share a core.
    results = {}
    try:
        # What is timed comes first: behind it, the machine may do other things meanwhile.
        where = {network.name: timed_on(kept, network, ways, seeds) for network in networks}
        steps = {network.name: paces(kept, network, ways, seeds, where[network.name]) for network in networks}
        for timed in (True, False):
            for network in networks:
                for seed in range(1, seeds + 1):
                    for way in (way for way in ways if way.asynchronous == timed):
                        row = trained(kept, network, way, seed, where[network.name])
                        results[network.name, way.name, seed] = with_seconds(row, steps[network.name].get((way.name, seed)))
    except Failed as failure:
        sys.exit(f"accuracy: {failure}")
    by_way = {network.name: {way.name: [results[network.name, way.name, seed] for seed in range(1, seeds + 1)]
                             for way in ways} for network in networks}
    chosen = any(os.environ.get(name) for name in ("NETWORKS", "WAYS", "SEEDS"))
    path = os.environ.get("PAGE") or (os.path.join(folder, "index.md") if chosen else PAGE)
    drawn = os.path.splitext(path)[0] + ".html"
    found_results = results_of(networks, by_way, seeds, where, kept)
    with open(os.path.join(folder, "accuracy.json"), "w", encoding="utf-8") as file:
        json.dump(found_results, file, ensure_ascii=False, indent=1)
    try:
        run([DUPLEX, "report", folder, "--output", drawn])
    except Failed as failure:
        sys.exit(f"accuracy: {failure}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(found_results, os.path.basename(drawn)))
    print(f"accuracy: wrote {path} and {drawn}")


if __name__ == "__main__":
    main()
