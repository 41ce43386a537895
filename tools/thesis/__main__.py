"""The thesis's tables and figures, on this machine: python3 tools/thesis

First, costs are measured: t_comm by duplex transport on the lab's network, t_grad on this machine's processor. Then
every point of figures 6.1 to 6.11 is simulated, and run on the lab with Table 6.1's t_grad replayed, once in the
thesis's order (receive all, compute, send all) and once with overlap. Figures 4.1 to 4.6 are runs whose frames are
kept. Results that are there already are not made again, except simulations by another commit, so an interrupted run
goes on where it stopped. At the end, duplex report makes a page of all results.

Environment: FULL=1 (runs every point on the lab, which takes hours; otherwise some of each network, in minutes),
FIGURES (only these of chapter 6, such as "6.3 6.6"), SIMULATE_ONLY=1 (nothing is measured or run), OUT (runs/thesis),
PAGE (OUT/index.html), RATE (1000 Mbit/s), CONGESTION (cubic), DUPLEX. Without root there is no lab, and nothing is run
on it.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # For the package lab.
import costs
import diagrams
import points
from files import Files
from lab.machine import DUPLEX, Failed, commit, processor, run, setting


class Settings:
    def __init__(self):
        self.full = os.environ.get("FULL") == "1"
        self.mbit = float(os.environ.get("RATE") or 1000)
        there = setting("net.ipv4.tcp_available_congestion_control").split()
        self.congestion = os.environ.get("CONGESTION") or ("cubic" if "cubic" in there else there[0])
        self.measures = os.environ.get("SIMULATE_ONLY") != "1"
        self.commit = commit()
        self.lab = self.measures and os.geteuid() == 0
        self.figures = (os.environ.get("FIGURES") or " ".join(points.FIGURES)).split()
        unknown = [figure for figure in self.figures if figure not in points.FIGURES]
        if unknown:
            sys.exit(f"thesis: FIGURES={' '.join(unknown)}: there are {' '.join(points.FIGURES)}")
        self.files = Files(os.environ.get("OUT") or "runs/thesis")
        self.page = os.environ.get("PAGE") or self.files.path("index.html")

    @staticmethod
    def say(line):
        print("thesis: " + line, file=sys.stderr, flush=True)


def begin(settings):
    """Writes down the settings of the results. Raises Failed if OUT has results of another rate or congestion
    control."""
    now = {"version": 1, "command": "thesis", "mbit": settings.mbit, "congestion": settings.congestion}
    before = settings.files.read("thesis.json")
    if before and any(before.get(key) != value for key, value in now.items()):
        raise Failed(f"{settings.files.path('thesis.json')} has other settings, {before}: choose another OUT")
    settings.files.write("thesis.json", {
        **now, "processor": processor(), "cores": os.cpu_count(), "kernel": os.uname().release,
        "lab": settings.lab or bool(before and before.get("lab"))})


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not os.path.exists(DUPLEX):
        sys.exit(f"thesis: {DUPLEX} is missing: make builds it")
    settings = Settings()
    if settings.measures and not settings.lab:
        settings.say("no lab: tools/netlab.sh needs root; what would run on it is only simulated")
    failed = False
    try:
        begin(settings)
        costs.measure(settings)
        points.simulate(settings)
        if settings.lab:
            failed |= diagrams.draw(settings)
            failed |= points.replay(settings)
    except Failed as failure:
        settings.say(str(failure))
        failed = True
    try:
        print(run([DUPLEX, "report", settings.files.folder, "--output", settings.page]), end="")
    except Failed as failure:
        settings.say(str(failure))
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
