"""Runs of Duplex and of PyTorch, each in a process of its own, and their results."""
import os
import statistics

from lab.machine import DUPLEX, Failed, WORK, run
from peer import attempt

PRECISIONS = ("float32", "bf16")
# PyTorch's configurations: layout, way of running, and their name in tables.
CONFIGURATIONS = {("default", "eager"): "eager", ("channels_last", "eager"): "eager cl",
                  ("default", "compile"): "compile", ("channels_last", "compile"): "compile cl"}
PROBE_STEPS = 3
LIMIT = 900  # In seconds, for a process.


class Rate:
    """Images a second over the passes: the median of the passes' medians, and the range from their least low quartile
    to their greatest high one. `bytes` is the peak of resident memory in any pass."""

    def __init__(self):
        self.medians, self.edges, self.bytes = [], [], 0.0

    def add(self, median, low, high, peak):
        self.medians.append(float(median))
        self.edges += [float(low), float(high)]
        self.bytes = max(self.bytes, float(peak))

    @property
    def median(self):
        return statistics.median(self.medians)

    def text(self):
        return f"{self.median:.2f} ({min(self.edges):.2f}-{max(self.edges):.2f})"

    def mib(self):
        return f"{self.bytes / 1048576:.0f}"


class Duplex:
    """The results of `duplex bench` for one network and batch."""

    def __init__(self):
        self.rate, self.gflops, self.seconds, self.ceiling = Rate(), [], [], 0.0

    def turn(self, network, batch, settings, with_ceiling):
        command = [DUPLEX, "bench", "--net", network, "--batch", str(batch), "--steps", str(settings.steps), "--threads",
                   str(settings.threads), "--row"]
        if with_ceiling and settings.onednn:  # Without oneDNN there is no such flag.
            command += ["--ceiling", "0.05"]
        cells = run(command, limit=LIMIT).rstrip("\n").split("\t")
        self.rate.add(cells[2], cells[3], cells[4], cells[8])
        self.gflops.append(float(cells[5]))
        self.seconds.append(float(cells[6]))
        self.ceiling = max(self.ceiling, float(cells[7]))

    def of_ceiling(self):
        return f"{100 * self.ceiling / statistics.median(self.seconds):.1f}%" if self.ceiling > 0 else "-"


def torch_row(peer, network, batch, precision, configuration, steps, threads):
    """Returns images a second (median, low and high quartile, of the fastest step) and peak bytes. Raises Failed."""
    layout, way = configuration
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torch_step.py")
    # The files that torch.compile generates are kept until the end of this run, but not longer.
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), TORCHINDUCTOR_CACHE_DIR=os.path.join(WORK, "inductor"))
    command = [peer.python, "-W", "ignore", script, network, str(batch), precision, layout, way, str(steps), str(threads)]
    code, output, errors = attempt(command, LIMIT, env=environment)
    cells = output.split("\t")
    if code != 0 or len(cells) != 5:
        raise Failed((errors.splitlines() or [""])[-1][:160] or f"exit code {code}")
    return cells


class Probe:
    """Finds which configuration of PyTorch is the fastest with one network and batch, for each precision."""

    def __init__(self, peer, network, batch, settings):
        settings.say(f"{network}, batch {batch}: which of PyTorch's configurations is the fastest")
        self.network, self.batch = network, batch
        self.what, self.rates, self.failures = f"{network}, batch {batch}", {}, {}
        for precision in PRECISIONS:
            for configuration in CONFIGURATIONS:
                key = precision, configuration
                try:
                    row = torch_row(peer, network, batch, *key, PROBE_STEPS, settings.threads)
                    self.rates[key] = float(row[3])  # Others on this machine delay the fastest step the least.
                except Failed as failure:
                    self.fail(precision, configuration, failure, settings)

    def fail(self, precision, configuration, failure, settings):
        self.failures[precision, configuration] = str(failure)
        settings.say(f"{self.what}, {precision} {CONFIGURATIONS[configuration]}: {failure}")

    def best(self, precision):
        """Returns the fastest configuration, or None if all of them failed."""
        rates = {key[1]: rate for key, rate in self.rates.items() if key[0] == precision}
        return max(rates, key=rates.get) if rates else None


class Cell:
    """Measures one network and batch: Duplex and PyTorch's best configuration of each precision, in turns."""

    def __init__(self, network, batch, peer, probe, settings):
        self.network, self.batch, self.duplex = network, batch, Duplex()
        self.probe, self.torch, self.best = probe, {}, {}
        if probe:
            self.best = {precision: self.probe.best(precision) for precision in PRECISIONS if self.probe.best(precision)}
        for turn in range(settings.passes):
            settings.say(f"{network}, batch {batch}, pass {turn + 1} of {settings.passes}")
            self.duplex.turn(network, batch, settings, turn == 0)
            for precision in self.best:
                self.torch_turn(precision, peer, settings)

    def torch_turn(self, precision, peer, settings):
        try:
            row = torch_row(peer, self.network, self.batch, precision, self.best[precision], settings.steps, settings.threads)
            self.torch.setdefault(precision, Rate()).add(row[0], row[1], row[2], row[4])
        except Failed as failure:
            self.probe.fail(precision, self.best[precision], failure, settings)

    def ratio(self, precision):
        return f"{self.duplex.rate.median / self.torch[precision].median:.2f}"
