"""The training speed of every network on this machine's CPU: python3 tools/benchmarks/cpu

It stands beside the ceiling that oneDNN's convolutions set, and beside the newest PyTorch that pip offers (peer.py says
how it is found). Prints this run's section of docs/results/cpu.md, and writes it there when all networks were asked
for. If PyTorch cannot run a network, the page says so; it is a failure only if Duplex cannot.

Environment: BATCHES ("8 16"), STEPS (9 that count), PASSES (2), NETWORKS, THREADS (all cores), PAGE (the file to write;
empty: none), TORCH_VENV, PYTHON (both: peer.py), DUPLEX.
"""
import datetime
import os
import platform
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))  # For the package lab.
import page
import peer
from lab.machine import DUPLEX, Failed, commit, processor, quiet
from turns import Cell, Probe

NETWORKS = "squeezenet googlenet resnet34 vgg16e alexnet"


class Settings:
    def __init__(self):
        def words(name, default):
            return (os.environ.get(name) or default).split()
        self.networks, self.batches = words("NETWORKS", NETWORKS), [int(word) for word in words("BATCHES", "8 16")]
        self.steps, self.passes = int(words("STEPS", "9")[0]), int(words("PASSES", "2")[0])
        self.threads = int(words("THREADS", str(len(os.sched_getaffinity(0))))[0])
        whole = set(NETWORKS.split()) <= set(self.networks)
        self.path = os.environ.get("PAGE", "docs/results/cpu.md" if whole else "")
        self.device = device(self.threads)
        version = re.search(r"oneDNN (\d[\d.]*)", self.device)
        self.onednn = version.group(1) if version else ""
        if self.steps < 2:
            sys.exit("bench: STEPS has to be at least 2, to have a range")

    @staticmethod
    def say(line):
        print("bench: " + line, file=sys.stderr, flush=True)


def device(threads):
    """Returns how Duplex computes, in its own words, such as "oneDNN 2.6.3, avx512_core, 2 threads"."""
    told = quiet([DUPLEX, "bench", "--net", "lenet", "--batch", "2", "--steps", "2", "--threads", str(threads)])
    return told.split("batch 2, ", 1)[-1].split(": ", 1)[0]


def compiler():
    """Returns the compiler that left its name in Duplex; GCC's name is also in the parts that come from the C
    library."""
    with open(DUPLEX, "rb") as file:
        names = re.findall(rb"clang version [\d.]+|GCC: \([^)\0]*\) [\d.]+", file.read())
    names = sorted({name.decode() for name in names}, reverse=True)  # This puts clang before GCC.
    return names[0] if names else "an unknown compiler"


def system():
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            names = re.findall(r'^PRETTY_NAME="?(.*?)"?$', file.read(), re.M)
    except OSError:
        names = []
    return f"{names[0] if names else platform.system()}, Linux {platform.release()}"


def facts(settings, other):
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    return [
        f"{datetime.date.today().isoformat()}, commit {commit()}",
        f"{os.cpu_count()} cores, {processor()}, {system()}; load average {load} at the start",
        f"Duplex: {settings.device}, built by {compiler()}",
        other.text() if other else "no PyTorch",
        f"THREADS={settings.threads} BATCHES=\"{' '.join(map(str, settings.batches))}\" STEPS={settings.steps} "
        f"PASSES={settings.passes}"]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not os.path.exists(DUPLEX):
        sys.exit(f"bench: {DUPLEX} is missing: make builds it")
    settings = Settings()
    other = peer.find(settings.say)
    told, cells, probes, failed = facts(settings, other), [], {}, False
    for batch in settings.batches:
        for network in settings.networks:
            if other and network not in probes:  # Probe once, since torch.compile takes a minute each time.
                probes[network] = Probe(other, network, batch, settings)
            try:
                cells.append(Cell(network, batch, other, probes.get(network), settings))
            except Failed as failure:
                failed = True
                settings.say(str(failure))
                told.append(f"{network}, batch {batch} did not run: {failure}")
    own = page.section(settings.onednn, told, cells, list(probes.values()))
    print(own)
    if settings.path:
        old = ""
        if os.path.exists(settings.path):
            with open(settings.path, encoding="utf-8") as file:
                old = file.read()
        with open(settings.path, "w", encoding="utf-8") as file:
            file.write(page.page(old, settings.onednn, own))
        settings.say(f"written to {settings.path}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
