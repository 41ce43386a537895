"""make bench ONLY=cut: networks that are cut over the hosts of the lab, which replay Table 6.1. How far is the
simulation from them, what do the cuts that plan finds come to beside data parallelism, and are ranks' bytes those of
the simulation? Writes docs/results/cut.md, of all points that OUT has. Environment: NETWORKS, RATES (Mbit/s; default
"1000 100"), HOSTS (default 8), PARTS ("points plan real", or some of them), STEPS (of a run, default 6), SEEDS (of real
trainings, default 3), TRIES (of a run that others on the machine disturb, default 3), OUT (folder that keeps what was
measured, so that the same command goes on; default: runs/cut), PAGE (the file to write)."""
import csv
import json
import os
import re
import shutil
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.kept import Kept  # noqa: E402
from lab.machine import DUPLEX, WORK, Failed, Lab, commit, key_file, launch, processor, run  # noqa: E402
from lab.probe import Probe  # noqa: E402
import real  # noqa: E402

# t_grad of a batch of 16 in Table 6.1. AlexNet is not in it: VGG16E's, by multiply-adds.
T_GRAD = {"resnet34": 0.821, "vgg16e": 0.719, "googlenet": 0.763, "squeezenet": 0.758, "alexnet": 0.035}
BATCH, CLASSES, BURST = 16, 256, 131072
SKIPPED = 2  # Steps that carry the first weights and fill the queues.
# Hosts of the lab share this machine's cores, which real ones do not, and eight of them at 1 Gbit/s keep two cores busy.
# Above this rate (Mbit/s) computing and links are therefore slower in the same measure; queues hold as many bytes.
MOST_MBIT = 250
QUIET, TRIES = 0.02, int(os.environ.get("TRIES") or 3)  # The part of all cores that the hypervisor may take away.
# Flags of each point, by number of hosts; every network is tried with all of them that it can be cut by.
WAYS = {8: ("--strategy owt", "--strategy hybrid", "--strategy hybrid --micro-batches 2",
            "--strategy pipeline --micro-batches 16", "--strategy pipeline --stages 4:2:1:1 --micro-batches 16",
            "--strategy pipeline --stages 2 --micro-batches 4", "--strategy pipeline --stages 7:1 --micro-batches 4"),
        4: ("--strategy hybrid", "--strategy pipeline --micro-batches 8"),
        2: ("--strategy owt", "--strategy pipeline --micro-batches 4")}
# At these rates the others are tried with fewer of the ways: a step takes many seconds.
FEWER = {100: ("--strategy hybrid", "--strategy pipeline --stages 4:2:1:1 --micro-batches 16")}


def asked(name, default):
    return os.environ[name].split() if os.environ.get(name) else list(default)


def steps_of(logdir):
    with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
        return [float(row["total_s"]) for row in csv.DictReader(file)][SKIPPED:]


def model(net):
    return ["--net", net, "--classes", str(CLASSES), "--batch", str(BATCH)]


def slower(mbit):
    """Returns how many times slower than asked for the lab is at a rate."""
    return max(1, mbit / MOST_MBIT)


def port_bytes(mbit):
    """Returns what a port of the switch holds: what it sends in 50 ms, at the rate that is asked for."""
    return 0.05 * mbit * 125e3


def lab_of(hosts, mbit):
    return Lab(hosts, mbit / slower(mbit), "cubic", int(port_bytes(mbit) + BURST))


def rate_flags(mbit):
    """What TCP carries of a link (1,448 of 1,514 bytes), and what the lab's cables and ports save and hold."""
    return ["--rate", f"{mbit * 1448 / 1514:.3f}Mbit/s", "--burst", str(BURST), "--queue", str(port_bytes(mbit))]


def simulated(net, hosts, mbit, flags, steps):
    """Returns the seconds of a step, and the bytes that each rank sends in one; None: it cannot be cut so."""
    logdir = os.path.join(WORK, "simulated")
    shutil.rmtree(logdir, ignore_errors=True)
    try:
        run([DUPLEX, "simulate", *model(net), "--t-grad", str(T_GRAD[net]), *rate_flags(mbit), "--workers", str(hosts),
             "--batches", str(steps * hosts), *flags, "--logdir", logdir])
    except Failed:
        return None
    return statistics.median(steps_of(logdir)), [sent(logdir, rank) for rank in range(hosts)]


def sent(logdir, rank):
    """Returns the bytes that a rank has sent in a step that neither the first nor the last weights are of."""
    with open(os.path.join(logdir, f"traffic-{rank}.csv"), encoding="ascii") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) == SKIPPED]
    return sum(int(row["bytes_sent"]) for row in rows)


def measured(lab, net, mbit, flags, steps):
    """Returns the same of a run on the lab, as if it were not slower, and how many of all cores were stolen and busy meanwhile."""
    times = slower(mbit)
    for _ in range(TRIES):
        with Probe() as probe:
            logdir, busy = launch(lab, [*model(net), "--device", f"replay:{T_GRAD[net] * times}", "--batches", str(steps), *flags],
                                  "cubic")
        found = statistics.median(steps_of(logdir)) / times, [sent(logdir, rank) for rank in range(lab.hosts)]
        shutil.rmtree(logdir)
        if probe.stolen <= QUIET:
            break
    return (*found, probe.stolen, busy)


def is_kept(kept, row):
    """Returns whether a point of these figures has been measured."""
    return any(all(each.get(name) == value for name, value in row.items()) for each in kept.rows)


def points(kept, nets, rates, most_hosts, steps):
    for mbit in rates:
        for hosts in (each for each in WAYS if each <= most_hosts):
            ways = WAYS[hosts] if mbit >= 1000 else FEWER.get(mbit, WAYS[hosts]) if hosts == most_hosts else ()
            if not ways:
                continue
            with lab_of(hosts, mbit) as lab:
                for net in nets:
                    for way in ways:
                        point = {"network": net, "N": hosts, "Mbit/s": mbit, "flags": f"`{way}`"}
                        if is_kept(kept, point):
                            continue
                        expected = simulated(net, hosts, mbit, way.split(), steps)
                        if expected is None:
                            continue
                        seconds, bytes_of, stolen, busy = measured(lab, net, mbit, way.split(), steps)
                        kept.add({**point, "measured, s": seconds, "simulated, s": expected[0],
                                  "error": expected[0] / seconds - 1, "bytes": bytes_of == expected[1],
                                  "speedup": hosts * T_GRAD[net] / seconds, "stolen": stolen, "cores busy": busy, "commit": commit(),
                                  "processor": processor()})
                        print(kept.rows[-1], file=sys.stderr, flush=True)


def cut_ways(net, hosts, mbit):
    """Returns the fastest way of data parallelism that plan finds, of those that send float32 and train what one
    machine would, and the fastest cut that sends float32: (name, flags, simulated speedup) of each."""
    found = json.loads(run([DUPLEX, "plan", *model(net), "--t-grad", str(T_GRAD[net]), *rate_flags(mbit), "--machines",
                            str(hosts), "--output", "json"], 900))
    plain = [way for way in found["ways"] if way["result"] and not re.search("lossless|bf16|fp16", way["way"])]
    dense = next(way for way in plain if not way["cut_flags"])
    words = dense["way"].split("-")
    dense_flags = ["--sync", words[0], "--server", words[1], *(["--factors", "auto"] if "factors" in words else [])]
    cut = next(way for way in plain if way["cut_flags"] and way["workers"] == hosts)
    return ((f"{dense['way']}@{dense['workers']}", dense_flags, dense["speedup"]),
            (f"{cut['way']}@{cut['workers']}", cut["cut_flags"], cut["speedup"]))


def planned(kept, nets, rates, hosts, steps):
    for mbit in rates:
        for net in nets:
            point = {"network": net, "N": hosts, "Mbit/s": mbit, "planned": True}
            if is_kept(kept, point):
                continue
            dense, cut = cut_ways(net, hosts, mbit)
            with lab_of(hosts, mbit) as lab:
                seconds, _, stolen, _ = measured(lab, net, mbit, cut[1], steps)
            kept.add({**point, "data parallelism, simulated": f"{dense[2]:.2f}, {dense[0]}", "cut": cut[0],
                      "flags": f"`{' '.join(cut[1])}`", "simulated": cut[2],
                      "measured": hosts * T_GRAD[net] / seconds, "gain": hosts * T_GRAD[net] / seconds / dense[2],
                      "stolen": stolen, "commit": commit(), "processor": processor()})
            print(kept.rows[-1], file=sys.stderr, flush=True)


def table(rows, columns):
    def text(value):
        return ("yes" if value else "NO") if isinstance(value, bool) else f"{value:.3f}" if isinstance(value, float) else str(value)
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|",
            *("| " + " | ".join(text(row[column]) for column in columns) + " |" for row in rows)]


def page(kept):
    plan_rows = [row for row in kept.rows if row.get("planned")]
    point_rows = [row for row in kept.rows if "bytes" in row]
    real_rows = real.rows_of(kept)
    lines = ["# Networks that are cut over machines", "",
             f"Written by `make bench ONLY=cut` at commit {kept.every('commit')}, on {kept.every('processor')}. Hosts of `tools/netlab.sh` replay Table",
             f"6.1 with batches of {BATCH} and {CLASSES} classes: layers wait as long as a profile by multiply-adds says, and all frames cross",
             "the wire. AlexNet, which is not in the table, takes VGG16E's time by multiply-adds. Seconds of a step: the median, without the",
             f"first two; speedup: N t_grad over them. Above {MOST_MBIT} Mbit/s, computing and links are slower in the same measure, so that the hosts, which share",
             "this machine's cores, do not wait for them; queues hold as many bytes, and seconds are divided by as much.", ""]
    if point_rows:
        errors = sorted(abs(row["error"]) for row in point_rows)
        lines += ["## The simulation beside the lab", "",
                  f"**{len(errors)} points: off by {100 * statistics.median(errors):.1f}% in the median, by {100 * errors[-1]:.1f}% at most**",
                  f"(2% and 6% are to be reached). The bytes that each rank sends in a step are those of the simulation in "
                  f"{sum(row['bytes'] for row in point_rows)} of them.", "",
                  f"cores busy: of the {os.cpu_count()} that all hosts share, in the mean of a run; its beginning, where each rank draws all weights, is in it. "
                  "stolen: of their", "time, what the hypervisor gave to others meanwhile.", "",
                  *table([{"cores busy": "", **row, "stolen": f"{100 * row['stolen']:.0f}%", "off by": f"{100 * row['error']:+.1f}%"} for row in point_rows],
                         ["network", "N", "Mbit/s", "flags", "measured, s", "simulated, s", "off by", "speedup", "bytes", "cores busy", "stolen"]), ""]
    if plan_rows:
        lines += ["## The cuts that plan finds", "",
                  "The fastest cut with float32 on the wire, run as plan says; beside it the fastest exact way of data parallelism with "
                  "float32 or", "factors, by simulation. gain: the cut as measured over that. Cuts into many micro-batches normalise over few "
                  "images, which plan says.", "",
                  *table(plan_rows, ["network", "N", "Mbit/s", "data parallelism, simulated", "cut", "simulated", "measured",
                                     "gain", "flags"]), ""]
    if real_rows:
        lines += ["## Training on real images", "",
                  f"Two ranks on this machine, a core each, train on Fashion-MNIST by the plan that `plan` made when it had measured the "
                  "machine;", "beside it one process that sees the same images in each step (`local --accumulate` for micro-batches). Steps: the "
                  "median "
                  f"of {real.TURNS} turns of {real.STEPS}, each beside as many of two processes that train alone, at once, with a rank's batch: t_grad. off by: planned over "
                  "measured,", "both in steps of t_grad, since the same machine's differs by a third from one minute to the next: median "
                  "and extremes. apart: top-1 of all 10,000 test images less that of one machine with the same seed, mean and extremes.", "",
                  *table(real_rows, list(real_rows[0])), ""]
    return "\n".join(lines)


def main():
    nets, rates = asked("NETWORKS", T_GRAD), [int(rate) for rate in asked("RATES", ("1000", "100"))]
    hosts, steps = int(os.environ.get("HOSTS", 8)), int(os.environ.get("STEPS", 6))
    parts = asked("PARTS", ("points", "plan", "real"))
    whole = not any(os.environ.get(name) for name in ("NETWORKS", "RATES", "HOSTS", "PARTS"))
    path = os.environ.get("PAGE", "docs/results/cut.md" if whole else "")
    kept = Kept(os.path.join(os.environ.get("OUT") or "runs/cut", "points.jsonl"), {"batch": BATCH})
    key_file()
    if "points" in parts:
        points(kept, nets, rates, hosts, steps)
    if "plan" in parts:
        planned(kept, nets, rates, hosts, steps)
    if "real" in parts:
        real.trained(kept, nets, int(os.environ.get("SEEDS") or real.SEEDS))
    text = page(kept)
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        print(f"cut: wrote {path}")
    else:
        print(text)


if __name__ == "__main__":
    main()
