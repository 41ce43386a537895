"""make bench ONLY=prediction: how far is the simulation from trainings that really compute? Networks with small inputs
train on Fashion-MNIST on two hosts of the lab, each a rank with a core of its own. What `simulate` takes is known
beforehand: the layers by `local --profile` on one core, what moving bytes takes by `transport`, the lab's cables. The
exchanges of fewer bytes (--wire, --factors) come behind them, on a slow link. Writes docs/results/prediction.md.
Environment: NETWORKS, RATES (Mbit/s; default: some for each network), SERVERS ("central distributed"), OVERLAPS
("on off"), EXCHANGES ("float32 lossless bf16 factors factors-lossless factors-bf16"; float32 is the table above, the
others the one of fewer bytes), STEPS (of every worker, default 12), FASHION_MNIST (folder with the IDX files), PAGE (the file to write;
default: docs/results/prediction.md for all points, none for fewer)."""
import csv
import os
import re
import signal
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.machine import DUPLEX, WORK, Failed, Lab, commit, data_folder, key_file, processor, run, start, stop, wait  # noqa: E402
from lab.probe import Probe  # noqa: E402

# Input, batch, and rates with which a transfer takes from a tenth of t_grad to several times that.
NETWORKS = {"lenet": (28, 64, (50, 100, 200, 800)), "squeezenet": (64, 16, (50, 200, 800)),
            "googlenet": (64, 16, (100, 200, 800)), "resnet34": (64, 16, (200, 400, 800)),
            "vgg16e": (32, 16, (400, 800))}
# Networks whose exchanges of fewer bytes are tried, and those that change anything of them.
FEWER = {"resnet34": ("lossless", "bf16"), "vgg16e": ("lossless", "bf16", "factors", "factors-lossless",
                                                      "factors-bf16")}
FEWER_MBIT = 100
EXCHANGES = ("float32", "lossless", "bf16", "factors", "factors-lossless", "factors-bf16")
ALONE = 20  # Steps of the run on one core.
SKIPPED = 2  # Steps that carry the first weights and fill the queues.
BURST = 131072  # Bytes that a token bucket of tools/netlab.sh saves while its cable is idle.
QUIET = 0.02  # A point during which more of all cores was stolen is measured again.
TRIES = 3
PAGE = "docs/results/prediction.md"


def asked(name, default):
    return os.environ[name].split() if os.environ.get(name) else list(default)


def on_core(core, command):
    return ["taskset", "-c", str(core), *command]


def on_both(lab, words_of):
    """Runs a command of duplex on both hosts, each on a core of its own; words_of(HOST) are its words."""
    children = []
    try:
        for host in range(2):
            command = lab.on(host, on_core(host, [DUPLEX, *words_of(host), "--key", key_file(), "--secure", "off",
                                                  "--congestion", "cubic"]))
            children.append((start(command), command))
        for child, command in children:
            wait(child, command)
    finally:
        for child, _ in children:
            stop(child)


def folder_for(name):
    return tempfile.mkdtemp(prefix=name + "-", dir=WORK)


def step_seconds(logdir):
    """Returns the mean seconds of a worker's steps that count."""
    with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
        lines = file.read().splitlines()
    column = lines[0].split(",").index("total_s")
    return statistics.mean([float(line.split(",")[column]) for line in lines[1:]][SKIPPED:])


def packed_parts(logdir):
    """Returns the parts of float32's bytes that packed weights and gradients came to, as --packed takes them."""
    with open(os.path.join(logdir, "ledger-0.csv"), encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    parts = []
    for kind in ("weights", "gradient"):
        these = [row for row in rows if row["kind"] == kind and int(row["step"]) > 0]
        bytes_of = [sum(int(row[name]) for row in these) for name in ("bytes", "bytes_saved")]
        parts.append(f"{bytes_of[0] / sum(bytes_of):.3f}")
    return ":".join(parts)


def factor_rate():
    """Returns the GFLOP/s at which a core multiplies factors here."""
    text = run(on_core(0, [DUPLEX, "bench", "--codings"]))
    return re.search(r"([\d.]+) GFLOP/s", text).group(1)


class Network:
    """A network with what was measured of it on one core."""

    def __init__(self, name, data):
        self.name, self.data = name, data
        self.input, self.batch, self.rates = NETWORKS[name]
        self.alone = folder_for("alone")
        run(on_core(0, [DUPLEX, "local", *self.training(), "--batches", str(ALONE), "--profile", "--logdir",
                        self.alone]))

    def model(self):
        return ["--net", self.name, "--classes", "10", "--input", str(self.input)]

    def training(self):
        return [*self.model(), "--datadir", self.data, "--batch", str(self.batch), "--threads", "1"]

    def transport(self, lab):
        """Measures the link between the two hosts."""
        logdir = folder_for("link")
        on_both(lab, lambda host: [
            "transport", *self.model(), "--my-role", ("ps", "worker")[host], "--my-address", lab.address(host),
            "--other-address", lab.address(1 - host), "--repeats", "3", "--logdir", logdir])
        return logdir

    def simulated(self, link, mbit, way, steps, more=()):
        logdir = folder_for("simulated")
        workers = workers_of(way)
        # What TCP carries of a link: 1,448 of 1,514 bytes.
        run([DUPLEX, "simulate", "--from", self.alone, link, "--rate", f"{mbit * 1448 / 1514:.3f}Mbit/s", "--burst",
             str(BURST), "--queue", str(0.05 * mbit * 125e3), *way_flags(way), *more, "--workers", str(workers),
             "--batches", str(steps * workers), "--logdir", logdir])
        return step_seconds(logdir)

    def measured(self, lab, way, steps):
        logdir = folder_for("dist")
        nodes = os.path.join(WORK, "nodes")
        with open(nodes, "w", encoding="ascii") as file:
            file.writelines(f"{lab.address(host)}:7117\n" for host in range(2))
        on_both(lab, lambda host: [
            "dist", *self.training(), *way_flags(way), "--batches", str(steps * workers_of(way)), "--nodefile", nodes,
            "--index", str(host), "--logdir", logdir])
        return step_seconds(logdir), logdir


def workers_of(way):
    return 1 if way[0] == "central" else 2


def way_flags(way):
    exchange = way[2] if len(way) > 2 else "float32"
    factors = ["--factors", "on"] if exchange.startswith("factors") else []
    coding = exchange.replace("factors", "").strip("-")
    return ["--server", way[0], "--overlap", way[1], *factors, *(["--wire", coding] if coding else [])]


def points(network, ways, steps):
    """Measures a network's points; yields a row of the page for each."""
    for mbit in map(int, asked("RATES", network.rates)):
        with Lab(2, mbit, "cubic") as lab:
            link = network.transport(lab)
            for way in ways:
                for _ in range(TRIES):
                    with Probe() as probe:
                        measured, _ = network.measured(lab, way, steps)
                    if probe.stolen <= QUIET:
                        break
                simulated = network.simulated(link, mbit, way, steps)
                yield {"network": network.name, "mbit": mbit, "server": way[0], "overlap": way[1], "measured": measured,
                       "simulated": simulated, "error": simulated / measured - 1, "stolen": probe.stolen}


def fewer_bytes(network, exchanges, steps):
    """Measures the exchanges of a network; yields a row of the page for each. How far packing shrinks the values is
    known from the run itself."""
    with Lab(2, FEWER_MBIT, "cubic") as lab:
        link = network.transport(lab)
        for exchange in exchanges:
            way = ("distributed", "on", exchange)
            for _ in range(TRIES):
                with Probe() as probe:
                    measured, logdir = network.measured(lab, way, steps)
                if probe.stolen <= QUIET:
                    break
            more = ["--packed", packed_parts(logdir)] if "lossless" in exchange else []
            if exchange.startswith("factors"):
                more += ["--factor-rate", factor_rate()]
            simulated = network.simulated(link, FEWER_MBIT, way, steps, more)
            yield {"network": network.name, "exchange": exchange, "packed": more[1] if "lossless" in exchange else "",
                   "measured": measured, "simulated": simulated, "error": simulated / measured - 1,
                   "stolen": probe.stolen}


def off_by(rows):
    errors = sorted(abs(row["error"]) for row in rows)
    return f"off by {100 * statistics.median(errors):.1f}% in the median, by {100 * errors[-1]:.1f}% at most"


def errors_and_table(rows, columns):
    """Returns lines of the page: the errors in a sentence, and a row for each point."""
    names = ["Mbit/s" if column == "mbit" else column for column in columns] + ["measured, s", "simulated, s", "off by"]
    lines = [f"**{len(rows)} points: {off_by(rows)}.**", "", "| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = [str(row[column]) for column in columns]
        cells += [f"{row['measured']:.4f}", f"{row['simulated']:.4f}", f"{100 * row['error']:+.1f}%"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def fewer_table(rows):
    text = ["", "## Fewer bytes", "",
            f"The same with --wire and --factors, distributed, with overlap, at {FEWER_MBIT} Mbit/s, where the link decides. "
            "What packing makes of the values is",
            "the run's own (weights:gradients, as `--packed` takes them), and how fast a core multiplies factors "
            "`bench --codings` has told.", "",
            *errors_and_table(rows, ("network", "exchange", "packed"))]
    return "\n".join(text) + "\n"


def page(rows, steps):
    inputs = ", ".join(f"{name} {side}x{side} in batches of {batch}" for name, (side, batch, _) in NETWORKS.items())
    text = ["# How far is the simulation from trainings that compute?", "",
            f"Written by `make bench ONLY=prediction` at commit {commit()}, on {processor()}. Two hosts of the lab "
            f"(`tools/netlab.sh`),", f"each a rank with one core; {steps} steps of every worker on Fashion-MNIST: "
            f"{inputs}.", "A central server takes one of the ranks, so that one worker is left. The simulation gets the "
            "layers' seconds from `local --profile`", "on one core, the rate of the lab's cables and what their token "
            "buckets save, and what moving bytes takes from `transport`; its constants are "
            "those of [the lab](../decisions/prediction.md#three-constants-are-fitted-to-the-lab),",
            "none of which is fitted to a point of this page. A step's seconds are the mean of those behind the first "
            f"{SKIPPED}.", "",
            *errors_and_table(rows, ("network", "mbit", "server", "overlap"))]
    return "\n".join(text) + "\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if os.geteuid() != 0:
        sys.exit("bench: the lab's hosts need root")
    data, steps = data_folder(), int(os.environ.get("STEPS") or 12)
    ways = [(server, overlap) for server in asked("SERVERS", ("central", "distributed"))
            for overlap in asked("OVERLAPS", ("on", "off"))]
    unknown = [name for name in asked("NETWORKS", NETWORKS) if name not in NETWORKS]
    if unknown:
        sys.exit(f"bench: NETWORKS={unknown[0]}: there are {' '.join(NETWORKS)}")
    exchanges = asked("EXCHANGES", EXCHANGES)
    unknown = [name for name in exchanges if name not in EXCHANGES]
    if unknown:
        sys.exit(f"bench: EXCHANGES={unknown[0]}: there are {' '.join(EXCHANGES)}")
    rows, fewer = [], []
    for name in asked("NETWORKS", NETWORKS):
        try:
            network = Network(name, data)
            for row in points(network, ways, steps) if "float32" in exchanges else ():
                rows.append(row)
                print(f"prediction: {name}, {row['mbit']} Mbit/s, {row['server']}, overlap {row['overlap']}: measured "
                      f"{row['measured']:.4f} s, simulated {row['simulated']:.4f} s, {100 * row['error']:+.1f}%"
                      + (f", disturbed: {row['stolen']:.2f} cores stolen" if row["stolen"] > QUIET else ""), flush=True)
            for row in fewer_bytes(network, [each for each in FEWER.get(name, ()) if each in exchanges], steps):
                fewer.append(row)
                print(f"prediction: {name}, {FEWER_MBIT} Mbit/s, {row['exchange']} {row['packed']}: measured "
                      f"{row['measured']:.4f} s, simulated {row['simulated']:.4f} s, {100 * row['error']:+.1f}%"
                      + (f", disturbed: {row['stolen']:.2f} cores stolen" if row["stolen"] > QUIET else ""), flush=True)
        except Failed as failure:
            sys.exit(f"prediction: {name}: {failure}")
    for what, these in (("", rows), (" of fewer bytes", fewer)):
        if these:
            print(f"prediction: {len(these)} points{what}: {off_by(these)}")
    chosen = any(os.environ.get(name) for name in ("NETWORKS", "RATES", "SERVERS", "OVERLAPS", "EXCHANGES", "STEPS"))
    out = os.environ.get("PAGE", "" if chosen else PAGE)
    if out:
        with open(out, "w", encoding="utf-8") as file:
            file.write(page(rows, steps) + fewer_table(fewer))
        print(f"prediction: wrote {out}")


if __name__ == "__main__":
    main()
