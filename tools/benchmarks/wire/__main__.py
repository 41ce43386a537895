"""The wire's speed figures, each beside a peer or an equation in the same run: python3 tools/benchmarks/wire

Prints a Markdown page, and writes it to docs/results/wire.md when all sections were asked for. The page says which
figures fall short; it is a failure only if something does not run. Sections with several hosts need root, since the
hosts are tools/netlab.sh's.

Environment: SECTIONS (link loopback exchange incast replay semaphore trace secure codings coded), REPEATS (2 turns of
ours and the peer), TRANSFERS (3 in a turn), CONGESTION (the system's; a list: "cubic bbr"), RATE (1000 Mbit/s), SLOW
("1 2": section 5 as fast as Table 6.1 and half as fast, section 10 twice the slower), FAST=1 (SLOW=1), PAGE (the file
to write; empty: none), PYTHON (one that has torch), DUPLEX.
"""
import datetime
import os
import platform
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))  # For the package lab.
import coded
import links
import options
import ranks
from lab.machine import DUPLEX, Failed, commit, iperf3_command, processor, quiet, setting
from page import prose

SECTIONS = {"link": links.shaped, "loopback": links.loopback, "exchange": ranks.exchange, "incast": ranks.incast,
            "replay": ranks.replay, "semaphore": options.semaphore, "trace": options.trace,
            "secure": options.secure, "codings": coded.codings, "coded": coded.replay}


class Settings:
    def __init__(self):
        def words(name, default):
            return (os.environ.get(name) or default).split()
        self.sections = words("SECTIONS", " ".join(SECTIONS))
        self.repeats, self.transfers = int(words("REPEATS", "2")[0]), int(words("TRANSFERS", "3")[0])
        kind = "available" if os.geteuid() == 0 else "allowed"
        there = setting(f"net.ipv4.tcp_{kind}_congestion_control").split()
        # The default is what duplex takes by itself.
        self.congestion = words(
            "CONGESTION", "cubic" if "cubic" in there else setting("net.ipv4.tcp_congestion_control"))
        # Loopback's figures differ threefold between these two.
        both = [name for name in ("cubic", "bbr") if name in there]
        self.loopback_congestion = words("CONGESTION", " ".join(both) or self.congestion[0])
        self.mbit = float(words("RATE", "1000")[0])
        self.slow = [float(word) for word in words("SLOW", "1" if os.environ.get("FAST") == "1" else "1 2")]
        self.slow = [int(slow) if slow == int(slow) else slow for slow in self.slow]
        self.port = random.randrange(20000, 30000)
        unknown = [name for name in self.sections if name not in SECTIONS]
        if unknown:
            sys.exit(f"bench: SECTIONS={' '.join(unknown)}: there are {' '.join(SECTIONS)}")

    @staticmethod
    def say(line):
        print("bench: " + line, file=sys.stderr, flush=True)


def head():
    iperf3 = iperf3_command()
    version = quiet(iperf3 + ["--version"]).splitlines()[0].split(" (")[0] if iperf3 else "none"
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    facts = [
        f"{datetime.date.today().isoformat()}, commit {commit()}",
        f"{os.cpu_count()} cores, {processor()}, Linux {platform.release()}; load average {load} at the start",
        f"{version}; PyTorch (Gloo) {ranks.python_with_torch()[1]}",
        "congestion control: " + (setting("net.ipv4.tcp_available_congestion_control") or "unknown") +
        "; the system's: " + (setting("net.ipv4.tcp_congestion_control") or "unknown"),
        "of each sort of command the first is shown; other networks, sizes and congestion controls likewise. RUN is a "
        "folder of the run, with the key of `bin/duplex keygen RUN/key` and the nodes of `tools/netlab.sh nodefile > "
        "RUN/nodes`. In the lab the route's congestion control (`ip route ... congctl`) is the one shown, too."]
    return "\n".join([
        "# The wire's speed", "",
        prose("What `make bench ONLY=wire` measured: every figure beside a peer's, or an equation's, of the same run. "
              "Values are median (least..greatest)."), "",
        *(prose("- " + fact, "  ") for fact in facts), ""])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not os.path.exists(DUPLEX):
        sys.exit(f"bench: {DUPLEX} is missing: make builds it")
    settings = Settings()
    if iperf3_command() is None:
        settings.say("no iperf3 (package iperf3), so nothing is set beside it")
    if os.geteuid() != 0 and settings.sections != ["loopback"]:
        settings.say("only loopback is measured: tools/netlab.sh, which makes the other sections' hosts, needs root")
        settings.sections = [name for name in settings.sections if name == "loopback"]
        whole = True
    else:
        whole = len(settings.sections) == len(SECTIONS)
    path = os.environ.get("PAGE", "docs/results/wire.md" if whole else "")
    parts, failed = [head()], False
    for name in settings.sections:
        try:
            parts.append(SECTIONS[name](settings))
        except Failed as failure:
            failed = True
            settings.say(f"{name}: {failure}")
            parts.append(f"## {name}\n\nDid not run: {failure}\n")
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(parts))
    print("\n".join(parts))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
