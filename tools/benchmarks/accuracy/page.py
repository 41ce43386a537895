"""The page of make accuracy: what each way took to an accuracy, and what is to be concluded."""
import math
import statistics

from trainings import BATCH, PACE, RATE, TESTS, WAYS, WORKERS, flags_of


def spread(values, digits=2):
    """"0.50 ± 0.02": mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def target_of(alone):
    """Returns the accuracy that all ways are asked for: a point below the worst seed of one machine alone, in per cent."""
    return math.floor(min(row["top1"] for row in alone) - 1.0)


def reached(row, target):
    """Returns the first test of a training that reached the target, or None."""
    return next((test for test in row["tests"] if test["top1"] >= target), None)


def line_of(rows, target, alone_seconds):
    """Returns the cells of a way behind its name, and its speedup to the target; None where a seed did not reach it."""
    first = [reached(row, target) for row in rows]
    cells = [spread([row["top1"] for row in rows])]
    if any(test is None for test in first):
        return cells + [f"{sum(test is not None for test in first)} of {len(first)} seeds", "", "", ""], None
    seconds = [test["seconds"] for test in first]
    speedup = alone_seconds / statistics.mean(seconds)
    return cells + [spread(seconds, 1), f"{statistics.mean(test['epoch'] for test in first):.2f}",
                    f"{statistics.mean(test['megabytes'] for test in first):.0f}", f"{speedup:.2f}"], speedup


def conclusion(target, speedups):
    """Says in a sentence which way is to be chosen."""
    counted = {way: speedup for way, speedup in speedups.items() if speedup is not None and way != "alone"}
    best = max(counted, key=counted.get, default=None)
    if best is None:
        return f"No way on {WORKERS} machines comes to {target} % with every seed: one machine."
    if counted[best] <= 1.0:
        return f"One machine: the fastest way on {WORKERS}, {best}, comes to {target} % {counted[best]:.2f} times as fast."
    return f"`{best}` on {WORKERS} machines comes to {target} % {counted[best]:.2f} times as fast as one."


def section(network, ways, seeds):
    """Returns the lines for one network. `ways`: by name, the rows of its trainings, one for each seed."""
    target = target_of(ways["alone"])
    alone = [reached(row, target)["seconds"] for row in ways["alone"]]
    lines = [f"## {network.name}", "",
             f"{network.images:,} images in batches of {BATCH}, {seeds} seeds; the target is {target} % top-1, a point below the "
             "worst seed of one machine.", "",
             "| way | top-1 in the end, % | s to the target | epochs | MB | S to it |", "|---|---|---|---|---|---|"]
    speedups = {}
    for name, rows in ways.items():
        cells, speedups[name] = line_of(rows, target, statistics.mean(alone))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", conclusion(target, speedups), ""]
    lines += [f"    bin/duplex {flags_of(network, WAYS[name])}" for name in ways]
    return lines + [""]


def page(networks, results, seeds, kept):
    lines = ["# Time to accuracy", "",
             f"Written by `make accuracy` at commit {kept.every('commit')}, on {kept.every('processor')}. Every way trains on as "
             f"many images of Fashion-MNIST. A machine is a process", f"with one core; two of them talk over links of {RATE} "
             f"(`--link-rate`). {TESTS} tests a training, on all 10,000 test images.", "",
             "s to the target: seconds of training until the first test that reached it: steps times the seconds of a step on the "
             f"link, which {PACE}", "steps give for each way and seed, in turns; for `async` those of the training itself with its "
             "tests, during which the other worker trains.", "epochs: times through the training part until then. MB: megabytes "
             "that the first worker sent and took. S to it: seconds of one", "machine over these. ±: standard deviation over the "
             "seeds.", ""]
    for network in networks:
        lines += section(network, results[network.name], seeds)
    return "\n".join(lines)
