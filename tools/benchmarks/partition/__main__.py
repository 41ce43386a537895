"""What networks that are cut over machines send, and how good the partitioner is: python3 tools/benchmarks/partition

Cuts every network for 2, 4, 8 and 16 machines, and writes docs/results/partition.md: megabytes an iteration of every
strategy, and beside it what Mt-KaHyPar makes of the same hypergraphs, where Python has it (pip install mtkahypar).
Environment: NETWORKS, WORKERS ("2 4 8 16"), BATCHES ("32 128"), STARTS (of the peer, 10), PAGE (the file to write;
empty: none), DUPLEX."""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))  # For the package lab.

from lab.machine import DUPLEX, commit, processor, run  # noqa: E402

try:
    import mtkahypar
except ImportError:
    mtkahypar = None

NETWORKS = (os.environ.get("NETWORKS") or "lenet alexnet vgg16e googlenet resnet34 squeezenet models/resnet50.net").split()
WORKERS = [int(word) for word in (os.environ.get("WORKERS") or "2 4 8 16").split()]
BATCHES = [int(word) for word in (os.environ.get("BATCHES") or "32 128").split()]
STARTS = int(os.environ.get("STARTS") or 10)
# Less than everything makes no page, unless one is named.
WHOLE = not any(os.environ.get(word) for word in ("NETWORKS", "WORKERS", "BATCHES", "STARTS"))
PAGE = os.environ.get("PAGE", "docs/results/partition.md" if WHOLE else "")
IMBALANCE = 0.05
CLASSES = 1000
STRATEGIES = ("data", "pipeline", "filter", "owt", "hybrid", "hypergraph")


class Hypergraph:
    """A hypergraph from a file of hMetis."""

    def __init__(self, path):
        with open(path, encoding="ascii") as file:
            nets, vertices, _ = map(int, file.readline().split())
            rows = [list(map(int, file.readline().split())) for _ in range(nets)]
            self.weights = [int(file.readline()) for _ in range(vertices)]
        self.costs = [row[0] for row in rows]
        self.pins = [[pin - 1 for pin in row[1:]] for row in rows]

    def cost(self, parts):
        return sum(cost * (len({parts[pin] for pin in pins}) - 1) for cost, pins in zip(self.costs, self.pins))


def peer(graph, workers):
    """Returns the least cost of STARTS partitions by Mt-KaHyPar, its imbalance, and the seconds of all of them."""
    system = mtkahypar.initialize(os.cpu_count())
    context = system.context_from_preset(mtkahypar.PresetType.QUALITY)
    context.set_partitioning_parameters(workers, IMBALANCE, mtkahypar.Objective.KM1)
    context.logging = False
    # It takes 32-bit integers, whose sums must not overflow.
    unit = max(1, sum(graph.weights) / 1e8)
    byte = max(1, sum(cost * (min(len(pins), workers) - 1) for cost, pins in zip(graph.costs, graph.pins)) / 1e9)
    made = system.create_hypergraph(context, len(graph.weights), len(graph.pins), graph.pins,
                                    [round(weight / unit) for weight in graph.weights],
                                    [max(1, round(cost / byte)) for cost in graph.costs])
    begin, found = time.monotonic(), []
    for seed in range(STARTS):
        mtkahypar.set_seed(seed + 1)
        partition = made.partition(context)
        parts = [partition.block_id(vertex) for vertex in range(len(graph.weights))]
        work = [0] * workers
        for part, weight in zip(parts, graph.weights):
            work[part] += weight
        found.append((graph.cost(parts), max(work) * workers / sum(graph.weights) - 1))
    within = [each for each in found if each[1] <= IMBALANCE + 0.001]
    return (*min(within or found), time.monotonic() - begin)


def cut(net, workers, batch, folder):
    path = os.path.join(folder, "hypergraph")
    begin = time.monotonic()
    text = run([DUPLEX, "partition", "--net", net, "--workers", str(workers), "--batch", str(batch), "--classes", str(CLASSES),
                "--imbalance", str(100 * IMBALANCE), "--output", "json", "--hypergraph", path])
    seconds = time.monotonic() - begin
    strategies = {each["strategy"]: each for each in json.loads(text)["strategies"]}
    ours = strategies["hypergraph"]
    row = {"net": os.path.basename(net), "workers": workers, "batch": batch, "seconds": seconds, "imbalance": ours["imbalance"],
           **{name: each["bytes"] * 1e-6 for name, each in strategies.items()}}
    if mtkahypar is not None:
        cost, row["peer_imbalance"], row["peer_seconds"] = peer(Hypergraph(path), workers)
        row["peer"] = cost * 1e-6
    print("partition: " + ", ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{value}"
                                    for key, value in row.items()), flush=True)
    return row


def page(rows):
    text = ["# What crosses between machines when a network is cut", "",
            f"Written by `make bench ONLY=partition` at commit {commit()}, on {processor()}. The model is in "
            "[partition.md](../partition.md).", "",
            f"Megabytes that all machines together send in an iteration, {CLASSES:,} classes, float32. The hypergraph's parts have at",
            f"most {100 * IMBALANCE:g}% more work than their share; other strategies have what they have (`duplex partition` says it).", "",
            "| network | batch | machines | " + " | ".join(STRATEGIES) + " | hypergraph / data | seconds |",
            "|---|---|---|" + "---|" * (len(STRATEGIES) + 2)]
    for row in rows:
        text.append(f"| {row['net']} | {row['batch']} | {row['workers']} | "
                    + " | ".join(f"{row[name]:,.1f}" for name in STRATEGIES)
                    + f" | {row['hypergraph'] / row['data']:.2f} | {row['seconds']:.1f} |")
    measured = [row for row in rows if "peer" in row]
    if measured:
        ratios = sorted(row["hypergraph"] / row["peer"] for row in measured)
        text += ["", "## Beside Mt-KaHyPar", "",
                 f"The same hypergraphs, Mt-KaHyPar's preset for quality, the best of {STARTS} starts, {100 * IMBALANCE:g}% imbalance. Ours is one call of",
                 f"`duplex partition`. The ratio is {ratios[len(ratios) // 2]:.3f} in the median, {ratios[-1]:.3f} at most; it is at most 1.05 in "
                 f"{sum(ratio <= 1.05 for ratio in ratios)} of {len(ratios)}.", "",
                 "| network | batch | machines | ours, MB | Mt-KaHyPar, MB | ratio | imbalances | ours, s | Mt-KaHyPar, s |",
                 "|---|---|---|---|---|---|---|---|---|"]
        for row in measured:
            text.append(f"| {row['net']} | {row['batch']} | {row['workers']} | {row['hypergraph']:,.1f} | "
                        f"{row['peer']:,.1f} | {row['hypergraph'] / row['peer']:.3f} | "
                        f"{100 * row['imbalance']:.1f}%, {100 * row['peer_imbalance']:.1f}% | {row['seconds']:.1f} | "
                        f"{row['peer_seconds']:.1f} |")
    return "\n".join(text) + "\n"


def main():
    if mtkahypar is None:
        print("partition: Python has no mtkahypar (pip install mtkahypar): cuts are not compared", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [cut(net, workers, batch, folder) for net in NETWORKS for batch in BATCHES for workers in WORKERS]
    if PAGE:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page(rows))
        print(f"partition: wrote {PAGE}")


if __name__ == "__main__":
    main()
