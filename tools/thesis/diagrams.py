"""Figures 4.1 to 4.6 show one iteration, drawn from the frames of a run."""
import csv
import os
import shutil

from lab.machine import Failed, Lab, launch

WORKERS = 3
STEPS, STEP = 5, 3  # How many a run has, and which is shown.
FLAGS = ["--net", "googlenet", "--classes", "256", "--device", "replay:0.4", "--batches", str(STEPS),
         "--overlap", "off", "--ledger", "all"]

# In the best case workers take turns at the server's link (7.2), in the worst all send at once.
FIGURES = {"4.1": ["--sync", "join", "--server", "central", "--semaphore", "on"],
           "4.2": ["--sync", "join", "--server", "central"],
           "4.3": ["--sync", "join", "--server", "distributed"],
           "4.4": ["--sync", "none", "--server", "central", "--semaphore", "on"],
           "4.5": ["--sync", "none", "--server", "central"],
           "4.6": ["--sync", "none", "--server", "distributed"]}

RESULTS = "diagrams.json"


def frames(path, step):
    """Returns the rows of a ledger that are weights or gradients of the step."""
    with open(path, encoding="ascii") as file:
        return [{**row, "first": int(row["first_ns"]), "last": int(row["last_ns"])} for row in csv.DictReader(file)
                if row["kind"] in ("weights", "gradient") and int(row["step"]) == step]


def iteration(ledgers, step):
    """Returns when the weights that each rank received and the gradients that it sent crossed, in seconds since the
    first weights of the step left; by rank, as `ledgers` are. When a gradient is there, its receiver knows: the sender
    hands it to the kernel before."""
    rows = [(rank, row) for rank, path in enumerate(ledgers) for row in frames(path, step)]

    def chosen(kind, direction, of=lambda rank, row: True):
        return [row for rank, row in rows if row["kind"] == kind and row["direction"] == direction and of(rank, row)]

    sent, arrived = chosen("weights", "sent"), chosen("gradient", "received")
    if not sent or not arrived:
        raise Failed(f"no weights and gradients of step {step} in {', '.join(ledgers)}")
    begin, end = min(row["first"] for row in sent), max(row["last"] for row in arrived)

    def time(crossed):
        if not crossed:
            return None
        edges = min(row["first"] for row in crossed), max(row["last"] for row in crossed)
        return [round((edge - begin) * 1e-9, 6) for edge in edges]

    ranks = [{"weights": time(chosen("weights", "received", lambda at, row: at == rank)),
              "gradients": time(chosen("gradient", "received", lambda at, row: int(row["peer"]) == rank))}
             for rank in range(len(ledgers))]
    return {"step": step, "seconds": round((end - begin) * 1e-9, 6), "ranks": ranks}


def draw(settings):
    """Makes the runs that are missing. Returns True if some failed."""
    known = settings.files.read(RESULTS) or {"version": 1, "figures": {}}
    failed = False
    for figure, flags in FIGURES.items():
        if figure in known["figures"]:
            continue
        settings.say(f"figure {figure}")
        hosts = WORKERS + ("central" in flags)
        try:
            with Lab(hosts, settings.mbit, settings.congestion) as lab:
                logdir, _ = launch(lab, FLAGS + flags, settings.congestion)
            known["figures"][figure] = iteration([os.path.join(logdir, f"ledger-{rank}.csv") for rank in range(hosts)],
                                                 STEP)
            settings.files.write(RESULTS, known)
            shutil.rmtree(logdir)
        except Failed as failure:
            settings.say(f"figure {figure}: {failure}")
            failed = True
    return failed
