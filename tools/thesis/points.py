"""Figures 6.1 to 6.11 show the speedup of N workers, simulated and run on the lab."""
import csv
import json
import os
import shutil
import statistics

import costs
from lab.machine import DUPLEX, WORK, Failed, Lab, launch, run
from lab.probe import Probe

# Figure: network, value of --sync, the greatest N, and each N that runs on the lab without FULL=1.
FIGURES = {"6.1": ("vgg16e", "join", 4, ()), "6.2": ("googlenet", "join", 8, (4, 8)),
           "6.3": ("squeezenet", "join", 8, (2, 4, 8)), "6.4": ("resnet34", "join", 8, (4,)),
           "6.5": ("googlenet", "split", 8, (4,)), "6.6": ("squeezenet", "split", 8, (4, 8)),
           "6.7": ("resnet34", "split", 8, ()), "6.8": ("vgg16e", "none", 4, ()),
           "6.9": ("googlenet", "none", 8, (4,)), "6.10": ("squeezenet", "none", 8, (4, 8)),
           "6.11": ("resnet34", "none", 8, ())}

BATCH = 840  # Images; 1 to 8 workers can share them evenly.

# The thesis's order with its shards, and duplex's default. And what the thesis did not have: fewer bytes with the same
# result, by factors of linear layers and lossless packing, for sync join on a distributed server. How many bytes
# factors are depends on the batch: it is 16 there.
ORDERS = {"strict": ["--overlap", "off", "--shards", "tensors"], "overlap": ["--overlap", "on", "--shards", "even"],
          "exact": ["--overlap", "on", "--shards", "even", "--wire", "lossless", "--factors", "auto", "--factor-rate",
                    "100"]}
EXACT_BATCH = 16
EXACT_WORKERS = 4  # On the lab, where all ranks pack on this machine's few cores.

# Where connections meet at a port, which is a central server's or that of an owner with more than its share, chance
# decides which comes first, and asynchronous workers go on as they began. So a point is the mean of so many
# simulations, and of so many runs if they do not take too long.
SEEDS = {"join": 4, "split": 4, "none": 8}
RUNS = {"join": 1, "split": 1, "none": 4}

STEPS = 8  # Steps of every worker, which are enough for a median.

SECONDS = 150  # Roughly the limit for a point on the lab.

# The longest queue at a port of the lab's switch, in seconds of its rate (tools/netlab.sh: latency 50ms).
QUEUE_SECONDS = 0.05

# If this machine was so much slower than at its best during a run, or so many of its cores were taken away, the run is
# repeated after the others, at most twice. The least disturbed of all runs is kept, earlier ones included.
SLOWER, STOLEN, TRIES = 1.5, 0.05, 3

RESULTS = "points.jsonl"


class Point:
    def __init__(self, figure, server, workers, order):
        self.figure, self.server, self.workers, self.order = figure, server, workers, order
        self.net, self.sync, _, self.quick = FIGURES[figure]
        self.batch = BATCH
        if order == "exact":
            self.batch, self.quick = EXACT_BATCH, [n for n in self.quick if n <= EXACT_WORKERS]
        self.t_grad = costs.TABLE_6_1[self.net][0]

    @property
    def name(self):
        return f"{self.figure}-{self.server}-{self.workers}-{self.order}"

    @property
    def hosts(self):
        return self.workers + (self.server == "central")

    def step_at_most(self, t_comm):
        """Returns roughly how many seconds a step takes at most, by (4.7) and (4.12)."""
        t_grad = self.t_grad / (self.workers if self.sync == "split" else 1)
        return t_grad + 2 * t_comm * (self.workers if self.server == "central" else 1)

    def steps(self, t_comm):
        """Returns the steps of every worker in a run; fewer than STEPS if that takes too long."""
        return max(4, min(STEPS, int(SECONDS / self.step_at_most(t_comm))))

    def runs(self, t_comm):
        by_chance = self.workers > 1 and (self.server == "central" or self.order == "strict")
        seconds = self.steps(t_comm) * self.step_at_most(t_comm)
        return max(1, min(RUNS[self.sync], int(SECONDS / seconds))) if by_chance else 1

    def flags(self):
        shards = self.server == "distributed"
        return ["--net", self.net, "--classes", str(costs.CLASSES), "--batch", str(self.batch), "--server", self.server,
                "--sync", self.sync, *(ORDERS[self.order] if shards else ORDERS[self.order][:2])]

    def seconds_at_most(self, t_comm):
        """Returns roughly how many seconds the point takes on the lab at most."""
        return self.runs(t_comm) * self.steps(t_comm) * self.step_at_most(t_comm)


def all_points(settings):
    return [Point(figure, server, workers, order)
            for figure in settings.figures
            for server in ("central", "distributed")
            for workers in range(1, FIGURES[figure][2] + 1)
            for order in ORDERS
            if order != "exact" or (server == "distributed" and FIGURES[figure][1] == "join")]


def seconds_of_steps(logdir):
    with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
        return [float(row["total_s"]) for row in csv.DictReader(file)]


def measured(point, logdir):
    """Returns the speedup of a run, real or simulated, by the same rule. For a synchronous run it comes from the median
    of the first worker's steps, without the first two (or, of few, the first), which carry the initial weights and fill
    the queues. For an asynchronous run it comes from the steps a second of all workers, since each has its own pace."""
    steps = seconds_of_steps(logdir)
    if point.sync == "none":
        ranks = []
        for rank in range(point.hosts):
            with open(os.path.join(logdir, f"rank-{rank}.json"), encoding="utf-8") as file:
                ranks.append(json.load(file))
        a_second = sum(rank["steps"] / rank["seconds"] for rank in ranks if "steps" in rank)
        return {"speedup": point.t_grad * a_second, "steps": len(steps)}
    counted = steps[2 if len(steps) > 4 else 1:]
    step = statistics.median(counted)
    batches = 1 if point.sync == "split" else point.workers
    return {"speedup": batches * point.t_grad / step, "step": step, "low": min(counted), "high": max(counted),
            "steps": len(steps)}


def mean(results):
    return {**results[0], "speedup": statistics.mean(result["speedup"] for result in results), "runs": len(results)}


def simulate_one(settings, point):
    t_comm = costs.of(settings, point.net)
    steps = point.steps(t_comm)
    logdir = os.path.join(WORK, "simulated")
    results = []
    for seed in range(SEEDS[point.sync]):
        shutil.rmtree(logdir, ignore_errors=True)  # No run takes a used one.
        run([DUPLEX, "simulate", *point.flags(), "--t-grad", str(point.t_grad), "--t-comm", str(t_comm), "--workers",
             str(point.workers), "--batches", str(steps if point.sync == "split" else steps * point.workers), "--queue",
             str(QUEUE_SECONDS * settings.mbit * 125e3), *costs.owner_flags(settings, point.net), "--seed",
             str(seed + 1), "--logdir", logdir])
        results.append(measured(point, logdir))
    return mean(results)


def replay_one(settings, lab, point):
    t_comm, results, busy = costs.of(settings, point.net), [], []
    with Probe() as probe:
        for _ in range(point.runs(t_comm)):
            logdir, cores = launch(lab, [*point.flags(), "--device", f"replay:{point.t_grad}", "--batches",
                                         str(point.steps(t_comm))], settings.congestion)
            results.append(measured(point, logdir))
            busy.append(cores)
            shutil.rmtree(logdir)
    slower = probe.seconds / costs.best_probe(settings, probe.seconds)
    return {**mean(results), "busy": statistics.mean(busy), "slower": slower, "stolen": probe.stolen,
            "disturbance": max(slower / SLOWER, probe.stolen / STOLEN)}


class Results:
    """The results of points, by point and by how they were found: "simulated" or "lab"."""

    def __init__(self, settings):
        self.settings = settings
        lines = settings.files.lines(RESULTS)
        self.all = {(line["kind"], self.key(line)): line for line in lines}
        if len(self.all) < len(lines):  # Later lines replace earlier ones of the same point.
            settings.files.write_lines(RESULTS, self.all.values())

    @staticmethod
    def key(line):
        return (line["figure"], line["server"], line["workers"], line["order"])

    def of(self, kind, point):
        return self.all.get((kind, (point.figure, point.server, point.workers, point.order)))

    def keep(self, kind, point, result):
        line = {"kind": kind, "figure": point.figure, "network": point.net, "sync": point.sync, "server": point.server,
                "workers": point.workers, "order": point.order, "commit": self.settings.commit, **result}
        self.settings.files.add(RESULTS, line)
        self.all[kind, self.key(line)] = line

    def to_simulate(self, points):
        return [point for point in points for line in [self.of("simulated", point)]
                if not line or line["commit"] != self.settings.commit]

    def to_run(self, points):
        return [point for point in points if not self.of("lab", point)]

    def to_repeat(self, points):
        """Returns the points whose runs were disturbed."""
        return [point for point in points for line in [self.of("lab", point)] if line and line["disturbance"] > 1]


def simulate(settings):
    results = Results(settings)
    left = results.to_simulate(all_points(settings))
    for number, point in enumerate(left):
        if number % 50 == 0:
            settings.say(f"simulating: {len(left) - number} points left")
        results.keep("simulated", point, simulate_one(settings, point))


def replay(settings):
    """Runs points on the lab. Returns True if some failed."""
    results = Results(settings)
    wanted = [point for point in all_points(settings) if settings.full or point.workers in point.quick]
    failed = replay_all(settings, results, results.to_run(wanted))
    for _ in range(1, TRIES):
        failed |= replay_all(settings, results, results.to_repeat(wanted))
    return failed


def replay_all(settings, results, left):
    """Runs each point on a lab with only as many hosts as it needs, so that no others disturb it. Returns True if some
    failed."""
    failed = False
    left.sort(key=lambda point: (point.hosts, settings.figures.index(point.figure)))
    while left:
        minutes = sum(point.seconds_at_most(costs.of(settings, point.net)) for point in left) / 60
        settings.say(f"the lab: {len(left)} points left, {minutes:.0f} minutes at most")
        hosts = left[0].hosts
        these = [point for point in left if point.hosts == hosts]
        left = [point for point in left if point.hosts != hosts]
        with Lab(hosts, settings.mbit, settings.congestion) as lab:
            for point in these:
                try:
                    result = replay_one(settings, lab, point)
                except Failed as failure:
                    settings.say(f"{point.name}: {failure}")
                    failed = True
                    continue
                before = results.of("lab", point)
                best = min([result, *filter(None, [before])], key=lambda each: each["disturbance"])
                results.keep("lab", point, {**best, "tries": before["tries"] + 1 if before else 1})
                if result["disturbance"] > 1:
                    settings.say(f"{point.name}: others disturbed the machine")
    return failed
