"""The time of duplex dist on many hosts, when nothing is computed, or as much as Table 6.1 says."""
import csv
import os
import shutil
import sys

from lab.machine import DUPLEX, Failed, Iperf3, Lab, iperf3_command, launch, run, start, stop, wait
from page import Range, at_least, at_most, commands, count, digits, section, table, within

GLOO = "tools/benchmarks/wire/gloo.py"
SMALL_BUFFER = 1_000_000  # Bytes that a port of a cheap switch holds.
NOTHING = "replay:0.000001"  # Computing takes next to no time.

# Network, batches, t_grad (Table 6.1), speedup to reach at N=8, and what the thesis states for join (7.1).
TABLE_6_1 = (("googlenet", 9, 0.763, 7.2, "4.0"), ("squeezenet", 9, 0.758, 7.6, "6.5"),
             ("resnet34", 8, 0.821, 4.7, "2.1"), ("vgg16e", 4, 0.719, None, "below 1"))


def step_seconds(logdir, skipped=2):
    """Returns the seconds of the steps that run as all later ones would. The first step carries the initial weights,
    and in the second the queues fill, so these two are left out."""
    with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
        return [float(row["total_s"]) for row in csv.DictReader(file)][skipped:]


def weight_bytes(net, classes):
    """Returns the bytes of all trained parameters, as float32."""
    lines = run([DUPLEX, "nets", net, "--classes", str(classes)]).splitlines()
    return 4 * int(next(line for line in lines if line.startswith("total")).split()[1].replace(",", ""))


def payload_rate(lab, settings, congestion):
    """Returns the Gbit/s that iperf3 receives between two hosts; without iperf3, the rate less headers."""
    if not iperf3_command():
        return settings.mbit * 1e-3 * 1448 / 1514
    with Iperf3(lab, 1, congestion) as iperf3:
        return Range(iperf3.gigabits(2) for _ in range(3)).median


def python_with_torch():
    for python in (os.environ.get("PYTHON", "python3"), "/usr/bin/python3"):
        try:
            return python, run([python, "-c", "import torch; print(torch.__version__)"]).strip()
        except (Failed, OSError):
            continue
    return None, "none"


def gloo(lab, python, size, repeats):
    """Returns the seconds of all-reduces over all hosts of the lab: of those that begin at a barrier, and of those in a
    row."""
    arguments = [str(lab.hosts), lab.address(0), "eth0", str(size), str(repeats)]
    all_commands = [lab.on(rank, [python, GLOO, str(rank), *arguments]) for rank in range(lab.hosts)]
    lab.told("gloo", all_commands[0])
    children = []
    try:
        for command in all_commands:
            children.append(start(command))
        printed = [wait(child, command, 200) for child, command in zip(children, all_commands)]
    finally:
        for child in children:
            stop(child)
    return ([float(word) for word in line.split()] for line in printed[0].splitlines())


def exchange(settings):
    size, (python, _), rows, verdicts, told = weight_bytes("resnet34", 1000), python_with_torch(), [], [], {}
    for congestion in settings.congestion:
        for ranks, slow, buffer in ((4, 1, None), (8, 1, None), (8, 2, None), (8, 2, SMALL_BUFFER)):
            ours, alone, theirs, mbit = [], [], [], settings.mbit / slow
            holds = f"{(buffer or 0.05 * mbit * 125e3) * 1e-6:.2f}"  # The default is tools/netlab.sh's 50 ms.
            with Lab(ranks, mbit, congestion, buffer) as lab:
                for turn in range(settings.repeats):
                    settings.say(f"exchange: {congestion}, {ranks} ranks, {mbit:g} Mbit/s, ports of {holds} MB, turn "
                                 f"{turn + 1} of {settings.repeats}")
                    if python:
                        from_barriers, in_a_row = gloo(lab, python, size, 10)
                        alone += from_barriers
                        theirs += in_a_row
                    logdir, busy = launch(lab, ["--net", "resnet34", "--classes", "1000", "--device", NOTHING,
                                                "--batches", "20"], congestion)
                    ours += step_seconds(logdir, 8)
                    shutil.rmtree(logdir)
                told = {**lab.commands, **told}
            line = 2 * (ranks - 1) / ranks * size * 8 / (mbit * 1e6)
            ours, cells = Range(ours), ("no PyTorch here", "-", "not measured", "-", "-", "-", "not measured")
            if python:
                alone, theirs = Range(alone), Range(theirs)
                to_alone, to_theirs = ours.median / alone.median, ours.median / theirs.median
                verdicts += [at_most(to_alone, 1), at_most(to_theirs, 1)]
                cells = (alone.text(), f"{to_alone:.3f}", verdicts[-2], theirs.text(),
                         f"{100 * line / theirs.median:.1f}%", f"{to_theirs:.3f}", verdicts[-1])
            rows.append((ranks, f"{mbit:g}", holds, congestion, digits(line), ours.text(),
                         f"{100 * line / ours.median:.1f}%", *cells, f"{busy:.2f}"))
    return section(
        f"3. A synchronous exchange among 4 and 8 ranks at {settings.mbit:g} Mbit/s",
        f"Resnet34's {size * 1e-6:.1f} MB, 1000 classes: gradients to the owners, new weights back (join, distributed, "
        "even shares, no computing), seconds a step, the least and the greatest over all steps of all turns; beside "
        "Gloo's all-reduce of as many bytes in the same lab, in turns. In a row: every step, and every all-reduce, "
        "begins where the one before it ends; the first rank's time, without the first eight of a run (Gloo: four): "
        "no rank has time to spare, so what one lost at the start takes some steps to wear off, and the ranks find the "
        "pace of their links meanwhile. Both ratios are to be 1 at most. From a barrier: the slowest "
        "rank's time from a barrier on, as Gloo is often measured, without the first; meanwhile the links were idle, "
        "and a token bucket has saved 128 kB for each, a millisecond of the line. line: 2 (N-1)/N of the bytes at the "
        "line's rate; the bucket counts 1,514 bytes for 1,448 of payload, which leaves 95.6%. At half the rate this "
        "machine's cores are half as busy. ports: what each of the switch's holds before it drops, 50 ms of "
        "the line or, in the last rows, as little as in one that costs little.",
        commands(told),
        table(("ranks", "Mbit/s", "ports MB", "congestion", "line s", "duplex s", "of line", "Gloo from a barrier s",
               "ratio", "verdict", "Gloo in a row s", "of line", "ratio", "verdict", "cores busy"), rows), count(verdicts))


def frames(logdir, rank):
    with open(os.path.join(logdir, f"ledger-{rank}.csv"), encoding="ascii") as file:
        yield from csv.DictReader(file)


def waits(logdir, workers):
    """Returns {"weights" or "gradient": {step: [seconds of each worker]}}. A worker's time goes from the moment when
    the step's first byte of any worker left the server, or reached it, until this worker's last one arrived. Times are
    on the coordinator's clock, which is the server's. Steps that not all ledgers have are left out."""
    first = {"weights": {}, "gradient": {}}
    last = {"weights": {}, "gradient": {}}
    for frame in frames(logdir, 0):
        kind, step = frame["kind"], int(frame["step"])
        if (kind, frame["direction"]) not in (("weights", "sent"), ("gradient", "received")):
            continue
        first[kind][step] = min(first[kind].get(step, sys.maxsize), int(frame["first_ns"]))
        if kind == "gradient":
            ends = last[kind].setdefault(step, {})
            ends[int(frame["peer"])] = max(ends.get(int(frame["peer"]), 0), int(frame["last_ns"]))
    for rank in range(1, workers + 1):
        for frame in frames(logdir, rank):
            if frame["kind"] == "weights" and frame["direction"] == "received":
                ends = last["weights"].setdefault(int(frame["step"]), {})
                ends[rank] = max(ends.get(rank, 0), int(frame["last_ns"]))
    return {kind: {step: [(end - first[kind][step]) * 1e-9 for end in ends.values()]
                   for step, ends in last[kind].items() if len(ends) == workers and step in first[kind]}
            for kind in last}


def incast(settings):
    workers, rows, verdicts, told = 8, [], [], {}
    for congestion in settings.congestion:
        with Lab(workers + 1, settings.mbit, congestion) as lab:
            for overlap in ("off", "on"):
                settings.say(f"incast: {congestion}, overlap {overlap}")
                logdir, _ = launch(lab, ["--net", "googlenet", "--classes", "1000", "--device", NOTHING, "--batches",
                                         "8", "--server", "central", "--overlap", overlap], congestion)
                for kind, steps in waits(logdir, workers).items():
                    fastest = Range(min(ends) for ends in steps.values())
                    slowest = Range(max(ends) for ends in steps.values())
                    ratio = Range(max(ends) / min(ends) for ends in steps.values())
                    verdict = at_most(ratio.high, 2)
                    verdicts.append(verdict)
                    rows.append(("gradients in" if kind == "gradient" else "weights out", overlap, congestion,
                                 fastest.text(), slowest.text(), f"{ratio.median:.3f}", f"{ratio.high:.3f}", "<= 2",
                                 verdict))
                shutil.rmtree(logdir)
            told = {**lab.commands, **told}
    return section(
        f"4. Is incast fair? A central server and {workers} workers at {settings.mbit:g} Mbit/s",
        "GoogLeNet, 1000 classes, no computing. Weights: from the first byte of a step's weights that the server sends "
        "to anyone until a worker has the last of its own. Gradients: from the first byte of a step's gradients that "
        "the server has of anyone until it has the worker's last. Seconds of the fastest and of the slowest worker, "
        "median (least..greatest) over the steps; ratio: slowest to fastest of the same step, its median and its "
        "greatest, which counts. With overlap off gradients and weights take turns; on, they cross.",
        commands(told),
        table(("what", "overlap", "congestion", "fastest s", "slowest s", "ratio", "worst", "target", "verdict"), rows),
        count(verdicts))


def replayed(lab, net, batches, t_grad, overlap, congestion):
    logdir, busy = launch(lab, ["--net", net, "--classes", "256", "--device", f"replay:{t_grad:g}", "--batches",
                                str(batches), "--overlap", overlap], congestion)
    steps = Range(step_seconds(logdir))
    shutil.rmtree(logdir)
    return steps, busy


def replay(settings):
    ranks, on, off, verdicts, told = 8, [], [], [], {}
    for congestion, slow in ((congestion, slow) for congestion in settings.congestion for slow in settings.slow):
        with Lab(ranks, settings.mbit / slow, congestion) as lab:
            rate = payload_rate(lab, settings, congestion)
            for net, batches, seconds, target, thesis in TABLE_6_1:
                if net == "vgg16e" and slow > 1:
                    continue
                settings.say(f"replay: {congestion}, {net}, {slow} times as slow")
                t_grad, t_comm = slow * seconds, weight_bytes(net, 256) * 8e-9 / rate
                wire = 2 * t_comm * (ranks - 1) / ranks
                floor = max(t_grad, wire)
                batches = batches if slow == 1 else min(batches, 6)
                steps, busy = replayed(lab, net, batches, t_grad, "on", congestion)
                speedup = ranks * t_grad / steps.median
                verdict = at_least(speedup, target) if target else ""
                head = (net, slow, congestion, digits(t_grad), digits(t_comm))
                on.append((*head, digits(floor), steps.text(), f"{speedup:.2f}", f"{ranks * t_grad / floor:.2f}",
                           f">= {target}" if target else "-", verdict or "-", thesis, f"{busy:.2f}"))
                verdicts.append(verdict)
                if net == "vgg16e":
                    continue
                steps, busy = replayed(lab, net, batches, t_grad, "off", congestion)
                ratio = steps.median / (wire + t_grad)
                verdicts.append(within(ratio, 0.03))
                off.append((*head, digits(wire + t_grad), steps.text(), f"{ratio:.3f}", "0.97..1.03", verdicts[-1],
                            f"{ranks * t_grad / steps.median:.2f}", f"{busy:.2f}"))
            told = {**lab.commands, **told}
    return section(
        f"5. Table 6.1 replayed at N={ranks}: overlap",
        "Nothing is computed: every layer waits for its share of Table 6.1's t_grad by multiply-adds, a third forward, "
        "two thirds backward, while real bytes cross the lab (join, distributed, even shares, 256 classes, float32). "
        "slow: rate and profile are both so many times as slow, which leaves every ratio as it is and takes that much "
        "less of this machine's cores (busy: by whatever ran, from the ranks' start to their end). t_comm: the "
        "network's bytes at the payload rate that iperf3 has in the same lab. Seconds of a step: over the steps of one "
        "run, whose first two do not count; speedup: N t_grad over them. floor: max(t_grad, 2 t_comm (N-1)/N). thesis: "
        "what it states for join (7.1); GoogLeNet's 4.0 is said of split there, but fits join.",
        commands(told),
        table(("network", "slow", "congestion", "t_grad s", "t_comm s", "floor s", "s a step", "speedup",
               "at the floor", "target", "verdict", "thesis", "cores busy"), on),
        "With `--overlap off`, beside 2 t_comm (N-1)/N + t_grad (4.12):",
        table(("network", "slow", "congestion", "t_grad s", "t_comm s", "(4.12) s", "s a step", "ratio", "target",
               "verdict", "speedup", "cores busy"), off), count(verdicts))
