"""The trainings of make accuracy: networks, ways to train them, and what each test of a training found.

The weights of a synchronous training do not depend on the link, nor on what else the machine does. So it runs on loopback
as fast as that goes, and its seconds are its steps times those of a step on a link of RATE, which a short run measures.
Asynchronous weights depend on who is how fast: these trainings run on the link from end to end."""
import csv
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.machine import DUPLEX, WORK, commit, processor, run  # noqa: E402

WORKERS = 2
RATE = "100Mbit/s"
LIMIT = 5400  # Seconds of a training.
TESTS = 8     # In a training.
PACE = 32     # Steps that are timed on the link, behind as many as a round of averaging has.


class Network:
    """A network that two cores manage, and how it is trained alone: on so many images, with a learning rate that drops
    to a tenth behind two thirds of them. SqueezeNet takes Adam: with plain SGD some seeds learn nothing in that time."""

    def __init__(self, name, images, rate, flags):
        self.name, self.images, self.rate, self.flags = name, images, rate, flags


BATCH = 32
NETWORKS = {each.name: each for each in (
    Network("lenet", 192000, 0.02, ["--momentum", "0.9"]),
    Network("squeezenet", 96000, 0.0005, ["--input", "48", "--optimizer", "adam"]),
    Network("googlenet", 38400, 0.02, ["--input", "32", "--momentum", "0.9"]),
    Network("resnet34", 19200, 0.02, ["--input", "32", "--momentum", "0.9"]))}


class Way:
    """A way to train: on one machine, or on two. `factor`: of the learning rate. A step has batches of all workers, unless
    they share one."""

    def __init__(self, name, flags=None, factor=1.0, warmup=False, shares=False):
        self.name, self.flags, self.factor, self.warmup, self.shares = name, flags, factor, warmup, shares

    def command(self, network, seed, data, logdir, link=False):
        a_step = 1 if self.flags is None or self.shares else WORKERS
        steps = network.images // (BATCH * a_step)
        words = ["--net", network.name, "--datadir", data, "--batch", str(BATCH), "--batches", str(steps),
                 *network.flags, "--lr", f"{network.rate * self.factor:g}", "--lr-steps", str(2 * steps // 3),
                 "--threads", "1", "--seed", str(seed), "--accuracy", "--test-every",
                 f"{network.images / 60000 / TESTS:g}", "--logdir", logdir]
        if self.warmup:
            words += ["--warmup", str(steps // 10)]
        if self.flags is None:
            return [DUPLEX, "local", *words]
        limit = ["--link-rate", RATE] if link or self.asynchronous else []
        return [DUPLEX, "launch", "--local", str(WORKERS), *limit, "--", *words, *self.flags]

    @property
    def asynchronous(self):
        return self.flags is not None and "none" in self.flags

    @property
    def average(self):
        """Batches between averagings, by which traffic is counted; 1: by steps."""
        return int(self.flags[self.flags.index("--average") + 1]) if self.flags and "--average" in self.flags else 1

    def pace_command(self, network, seed, data, logdir):
        """Returns the command of a short run, whose steps are those of a training on the link."""
        words = self.command(network, seed, data, logdir, link=True)
        words[words.index("--batches") + 1] = str(PACE + 8)
        words.remove("--accuracy")
        test = words.index("--test-every")
        return words[:test] + words[test + 2:]


# Synchronous workers make one batch twice as large, so their learning rate is twice as high and warmed up. Asynchronous ones
# compute gradients of weights that are some steps old: with the learning rate of one machine, LeNet learns nothing.
WAYS = {each.name: each for each in (
    Way("alone"),
    Way("join", ["--sync", "join"], factor=2.0, warmup=True),
    Way("split", ["--sync", "split"], shares=True),
    Way("async", ["--sync", "none"], factor=0.25),
    Way("average 8", ["--average", "8"]),
    Way("join, bf16", ["--sync", "join", "--wire", "bf16"], factor=2.0, warmup=True))}


def rows_of(path):
    with open(path, encoding="ascii") as file:
        return list(csv.DictReader(file))


def tests_of(directory, way):
    """Returns what each test found, with the bytes of the first worker's steps before it and, if the way is asynchronous,
    the seconds until then. These count tests, too, during which the other workers train."""
    own = [float(row["total_s"]) for row in rows_of(os.path.join(directory, "metrics.csv"))]
    step_bytes = [0] * len(own)
    if way.flags is not None:
        for row in rows_of(os.path.join(directory, "traffic-0.csv")):
            first = int(row["step"]) * way.average
            if first < len(own):
                step_bytes[min(first + way.average, len(own)) - 1] += int(row["bytes_sent"]) + int(row["bytes_received"])
    tests, testing = [], 0.0
    for row in rows_of(os.path.join(directory, "accuracy.csv")):
        step = int(row["step"])
        test = {"step": step, "epoch": float(row["epoch"]), "top1": 100 * float(row["top1"]),
                "megabytes": 1e-6 * sum(step_bytes[:step])}
        if way.asynchronous:
            test["seconds"] = sum(own[:step]) + testing
            testing += 1e-9 * int(row["test_ns"])
        tests.append(test)
    return tests


def with_seconds(row, step_seconds):
    """Returns a training whose tests have seconds: those of its steps. Without seconds of a step: as the run had them."""
    if step_seconds is None:
        return row
    return {**row, "tests": [{**test, "seconds": test["step"] * step_seconds} for test in row["tests"]]}


def pace(network, way, seed, data):
    """Times steps on the link. Returns values for what is kept."""
    folder = tempfile.mkdtemp(prefix="accuracy-", dir=WORK)
    logdir = os.path.join(folder, "run")
    run(way.pace_command(network, seed, data, logdir), limit=LIMIT)
    seconds = [float(row["total_s"]) for row in rows_of(os.path.join(logdir, "metrics.csv"))][-PACE:]
    shutil.rmtree(folder)
    return {"step_seconds": sum(seconds) / len(seconds), "commit": commit(), "processor": processor()}


def train(network, way, seed, data):
    """Trains, and returns values for what is kept."""
    folder = tempfile.mkdtemp(prefix="accuracy-", dir=WORK)
    logdir = os.path.join(folder, "run")
    run(way.command(network, seed, data, logdir), limit=LIMIT)
    with open(os.path.join(logdir, "summary.json"), encoding="utf-8") as file:
        final = 100 * json.load(file)["accuracy"]["top1"]
    tests = tests_of(logdir, way)
    shutil.rmtree(folder)
    return {"top1": final, "tests": tests, "commit": commit(), "processor": processor()}


def flags_of(network, way):
    """Returns the flags of a training as the page has them."""
    words = way.command(network, "SEED", "DIR", "RUN", link=True)
    return " ".join(words[1:]).replace(" --logdir RUN", "").replace(" --seed SEED", "")
