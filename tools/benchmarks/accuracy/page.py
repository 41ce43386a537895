"""The pages of make accuracy: what each way took to an accuracy, and what is to be concluded.

results_of() computes what stands on both: page() makes the one in Markdown, and `duplex report` the one with charts, from
accuracy.json (tools/report/accuracy/accuracy_data.h)."""
import math
import statistics
import textwrap

from trainings import BATCH, PACE, RATE, TESTS, WAYS, WORKERS, flags_of

COLUMNS = ["top-1 in the end, %", "s to the target", "epochs", "MB", "S to it"]


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
    """Returns the cells of a way behind its name, and the seconds of each seed; None where one did not reach the target."""
    first = [reached(row, target) for row in rows]
    cells = [spread([row["top1"] for row in rows])]
    if any(test is None for test in first):
        return cells + [f"{sum(test is not None for test in first)} of {len(first)} seeds", "", "", ""], None
    seconds = [test["seconds"] for test in first]
    speedup = alone_seconds / statistics.mean(seconds)
    return cells + [spread(seconds, 1), f"{statistics.mean(test['epoch'] for test in first):.2f}",
                    f"{statistics.mean(test['megabytes'] for test in first):.0f}", f"{speedup:.2f}"], seconds


def conclusion(target, seconds):
    """Says which way is to be chosen. `seconds`: by way, of each seed; None where one did not reach the target."""
    alone = seconds["alone"]
    others = {way: each for way, each in seconds.items() if each is not None and way != "alone"}
    best = min(others, key=lambda way: statistics.mean(others[way]), default=None)
    if best is None:
        return f"No way on {WORKERS} machines comes to {target} % with every seed: one machine."
    speedup = statistics.mean(alone) / statistics.mean(others[best])
    if speedup <= 1.0:
        return f"One machine: the fastest way on {WORKERS}, {best}, comes to {target} % {speedup:.2f} times as fast."
    faster = sum(way < one for way, one in zip(others[best], alone))
    says = f"`{best}` on {WORKERS} machines comes to {target} % {speedup:.2f} times as fast as one"
    if faster == len(alone):
        return says + ", and was faster with every seed."
    return says + f" in the mean, but was faster with {faster} of {len(alone)} seeds only: that may be chance."


def curve(rows):
    """Returns the means over the seeds at each test of a way's trainings. All have tests at the same steps."""
    def mean(tests, name):
        return statistics.mean(test[name] for test in tests)
    points = []
    for tests in zip(*(row["tests"] for row in rows)):
        top1 = [test["top1"] for test in tests]
        points.append({"seconds": mean(tests, "seconds"), "megabytes": mean(tests, "megabytes"), "top1": statistics.mean(top1),
                       "deviation": statistics.stdev(top1) if len(top1) > 1 else 0.0})
    return points


def network_results(network, ways, seeds, where):
    """`ways`: by name, the rows of a network's trainings, one for each seed. `where`: the processor of what is timed."""
    target = target_of(ways["alone"])
    alone = [reached(row, target)["seconds"] for row in ways["alone"]]
    results, seconds = [], {}
    for name, rows in ways.items():
        cells, seconds[name] = line_of(rows, target, statistics.mean(alone))
        results.append({"name": name, "flags": flags_of(network, WAYS[name]), "cells": cells, "points": curve(rows)})
    about = (f"{network.images:,} images in batches of {BATCH}, {seeds} seed{'s' * (seeds > 1)}; the target is {target} % top-1, "
             f"a point below the worst seed of one machine. Seconds are those of {where}.")
    return {"name": network.name, "about": about, "target": target, "conclusion": conclusion(target, seconds), "ways": results}


def results_of(networks, trainings, seeds, where, kept):
    """`trainings`: by name of a network and of a way, the rows of its seeds. `where`: by name of a network, its processor."""
    about = [f"Written by `make accuracy`; trained by Duplex at commit {kept.every('commit')}. Every way trains on as "
             f"many images of Fashion-MNIST. A machine is a process with one core; {WORKERS} of them talk over links of {RATE} "
             f"(`--link-rate`). {TESTS} tests a training, on all 10,000 test images.",
             "s to the target: seconds of training until the first test that reached it: steps times the seconds of a step on "
             f"the link, which {PACE} steps give for each way and seed, in turns; for `async` those of the training itself with "
             "its tests, during which the other worker trains. epochs: times through the training part until then. MB: "
             "megabytes that the first worker sent and took. S to it: seconds of one machine over these. ±: standard deviation "
             "over the seeds."]
    return {"version": 1, "about": about, "columns": COLUMNS,
            "networks": [network_results(network, trainings[network.name], seeds, where[network.name])
                         for network in networks]}


def page(results, drawn):
    """Returns the page in Markdown. `drawn`: the page with charts, as a link from it."""
    lines = ["# Time to accuracy", "", f"[{drawn}]({drawn}) draws accuracy against seconds and against megabytes.", ""]
    for paragraph in results["about"]:
        lines += [*textwrap.wrap(paragraph, 140, break_on_hyphens=False), ""]
    for network in results["networks"]:
        lines += [f"## {network['name']}", "", network["about"], "", " | ".join(["| way", *results["columns"]]) + " |",
                  "|---" * (1 + len(results["columns"])) + "|"]
        lines += [" | ".join([f"| {way['name']}", *way["cells"]]) + " |" for way in network["ways"]]
        lines += ["", network["conclusion"], ""]
        lines += [f"    bin/duplex {way['flags']}" for way in network["ways"]]
        lines.append("")
    return "\n".join(lines)
