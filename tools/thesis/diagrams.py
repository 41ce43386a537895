"""Figures 4.1 to 4.6 show one iteration, drawn from the frames of a run."""
import os
import shutil

from lab.machine import Failed, Lab, launch

WORKERS = 3
FLAGS = ["--net", "googlenet", "--classes", "256", "--device", "replay:0.4", "--batches", "5", "--overlap", "off",
         "--trace", "--trace-steps", "5"]

# In the best case workers take turns at the server's link (7.2), in the worst all send at once.
FIGURES = {"4.1": ["--sync", "join", "--server", "central", "--semaphore", "on"],
           "4.2": ["--sync", "join", "--server", "central"],
           "4.3": ["--sync", "join", "--server", "distributed"],
           "4.4": ["--sync", "none", "--server", "central", "--semaphore", "on"],
           "4.5": ["--sync", "none", "--server", "central"],
           "4.6": ["--sync", "none", "--server", "distributed"]}


def draw(settings):
    """Makes the runs that are missing. Returns True if some failed."""
    failed = False
    for figure, flags in FIGURES.items():
        logdir = settings.files.path(os.path.join("diagrams", figure))
        if os.path.exists(os.path.join(logdir, "summary.json")):
            continue
        settings.say(f"figure {figure}")
        shutil.rmtree(logdir, ignore_errors=True)
        try:
            with Lab(WORKERS + ("central" in flags), settings.mbit, settings.congestion) as lab:
                launch(lab, FLAGS + flags, settings.congestion, os.path.abspath(logdir))
        except Failed as failure:
            settings.say(f"figure {figure}: {failure}")
            failed = True
    return failed
