"""What fewer bytes on the wire gain: codings of dist --wire, and factors of linear layers."""
import csv
import os
import shutil

from lab.machine import DUPLEX, Lab, launch, run
from page import Range, at_least, commands, count, digits, section, table
from ranks import NOTHING, TABLE_6_1, payload_rate, step_seconds, weight_bytes

NAMES = ("float32", "bf16", "fp16", "lossless")
LOSSLESS_RATE = 1.5e9  # Bytes of float32 a second that one processor is to pack, and to unpack.
# Network, flags, and the speedup that eight machines are to reach.
REPLAYED = (("vgg16e", "--factors on", 4.0), ("vgg16e", "--factors on --wire lossless", 5.0),
            ("vgg16e", "--factors on --wire bf16", 7.2), ("vgg16e", "--wire lossless", None),
            ("resnet34", "--wire lossless", 6.5), ("resnet34", "--wire bf16", 7.5),
            ("googlenet", "--wire lossless", 7.2), ("squeezenet", "--wire lossless", 7.6))


def coding_rates():
    """Returns bytes of float32 values that a processor encodes and decodes a second, the least of each coding's."""
    rates = {}
    for words in map(str.split, run([DUPLEX, "bench", "--codings"]).splitlines()):
        if words and words[0] in NAMES:
            own = [1e9 * float(word) for word in words[-2:]]
            rates[words[0]] = [min(pair) for pair in zip(own, rates.get(words[0], own))]
    return rates


def factor_rate():
    """Returns the GFLOP/s at which a processor multiplies factors."""
    lines = run([DUPLEX, "bench", "--codings"]).splitlines()
    return float(next(line for line in lines if line.startswith("factors")).split()[1])


def codings(settings):
    """An exchange that only exchanges, with each coding in turns, and how fast a processor codes."""
    ranks, batches, rows, verdicts, told = 4, 20, [], [], {}
    rates = coding_rates()
    for congestion in settings.congestion:
        steps = {name: [] for name in NAMES}
        with Lab(ranks, settings.mbit, congestion) as lab:
            for turn in range(settings.repeats):
                for name in NAMES if turn % 2 == 0 else reversed(NAMES):
                    settings.say(f"codings: {congestion}, {name}, turn {turn + 1} of {settings.repeats}")
                    logdir, _ = launch(lab, ["--net", "resnet34", "--classes", "1000", "--device", NOTHING,
                                             "--batches", str(batches), "--wire", name], congestion)
                    steps[name] += step_seconds(logdir, 8)
                    shutil.rmtree(logdir)
            told = {**lab.commands, **told}
        plain, link = Range(steps["float32"]), settings.mbit * 1e6 / 8
        for name in NAMES:
            seconds, verdict, shown = Range(steps[name]), "", ("-", "-")
            if name in rates:
                # A link carries twice as many bytes of float32 values in 16 bits.
                verdict = at_least(min(rates[name]), LOSSLESS_RATE if name == "lossless" else 10 * 2 * link)
                shown = [f"{1e-9 * rate:.2f}" for rate in rates[name]]
            verdicts.append(verdict)
            rows.append((name, congestion, seconds.text(), f"{seconds.median / plain.median:.3f}", *shown, verdict))
    return section(
        "9. Codings of values",
        f"Resnet34, 1000 classes, {ranks} ranks at {settings.mbit:g} Mbit/s, no computing: seconds of a step with "
        "each coding of `--wire`, in turns; half of the bytes are to take half of the time. encode, decode: GB of "
        "float32 values a second, of one processor (`bin/duplex bench --codings`), which are to be ten times what the "
        "link carries in 16 bits, and 1.5 for lossless.",
        commands(told),
        table(("wire", "congestion", "s a step", "ratio", "encode GB/s", "decode GB/s", "verdict"), rows),
        count(verdicts))


def bytes_sent(logdir, ranks):
    """Returns the most bytes that a rank has sent in a step, in the mean of the steps but the first two."""
    most = 0
    for rank in range(ranks):
        steps = {}
        with open(os.path.join(logdir, f"traffic-{rank}.csv"), encoding="ascii") as file:
            for row in csv.DictReader(file):
                steps[int(row["step"])] = steps.get(int(row["step"]), 0) + int(row["bytes_sent"])
        later = [sent for step, sent in steps.items() if step >= 2]
        most = max(most, sum(later) / max(len(later), 1))
    return most


def replay(settings):
    """Table 6.1 replayed, with fewer bytes."""
    ranks, batches, rows, verdicts, told = 8, 8, [], [], {}
    seconds_of = {name: seconds for name, _, seconds, _, _ in TABLE_6_1}
    multiplying = factor_rate()
    for congestion in settings.congestion:
        slow = 2 * max(settings.slow)  # All ranks pack on this machine's few cores.
        with Lab(ranks, settings.mbit / slow, congestion) as lab:
            rate = payload_rate(lab, settings, congestion)
            for net, flags, target in REPLAYED:
                settings.say(f"coded: {congestion}, {net}, {flags}, {slow} times as slow")
                t_grad = slow * seconds_of[net]
                rate_of_factors = ["--factor-rate", f"{multiplying / slow:g}"] if "--factors" in flags else []
                logdir, busy = launch(lab, ["--net", net, "--classes", "256", "--batch", "16", "--device", f"replay:{t_grad:g}",
                                            "--batches", str(batches), *flags.split(), *rate_of_factors], congestion)
                steps, sent = Range(step_seconds(logdir)), bytes_sent(logdir, ranks)
                shutil.rmtree(logdir)
                wire = sent * 8e-9 / rate
                floor, speedup = max(t_grad, wire), ranks * t_grad / steps.median
                verdicts.append(at_least(speedup, target) if target else "")
                rows.append((net, f"`{flags}`", slow, congestion, digits(t_grad), f"{1e-6 * sent:.0f}", digits(wire),
                             digits(floor), steps.text(), f"{speedup:.2f}", f"{ranks * t_grad / floor:.2f}",
                             f">= {target}" if target else "-", verdicts[-1] or "-", f"{busy:.2f}"))
            told = {**lab.commands, **told}
    return section(
        f"10. Table 6.1 replayed at N={ranks} with fewer bytes",
        "As in section 5, with batches of 16. MB: the most that a rank sends in a step, by its ledger; wire: the time of these; floor: the longer of "
        "t_grad and wire. With --factors a rank waits as long as one processor of this machine would multiply. "
        "With lossless every rank draws its gradients once, from normal distributions whose updates are a 1,400th of a "
        "weight, so that they pack as those of a training do (docs/training.md, Fewer bytes).",
        commands(told),
        table(("network", "flags", "slow", "congestion", "t_grad s", "MB", "wire s", "floor s", "s a step", "speedup",
               "at the floor", "target", "verdict", "cores busy"), rows),
        count(verdicts))
