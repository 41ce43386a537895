"""How much options of duplex dist gain or cost: semaphores, the trace."""
import shutil

from lab.machine import Lab, launch
from page import Range, at_most, commands, count, section, table
from ranks import NOTHING, step_seconds, waits


def semaphore(settings):
    workers, rows, told = 8, [], {}
    for congestion in settings.congestion:
        with Lab(workers + 1, settings.mbit, congestion) as lab:
            for overlap in ("off", "on"):
                for turns in ("off", "on"):
                    settings.say(f"semaphore: {congestion}, overlap {overlap}, semaphore {turns}")
                    logdir, _ = launch(lab, ["--net", "googlenet", "--classes", "1000", "--device", NOTHING,
                                             "--batches", "8", "--server", "central", "--overlap", overlap,
                                             "--semaphore", turns], congestion)
                    steps = waits(logdir, workers)["weights"]
                    rows.append((turns, overlap, congestion, Range(step_seconds(logdir)).text(),
                                 Range(min(ends) for ends in steps.values()).text(),
                                 Range(sum(ends) / len(ends) for ends in steps.values()).text(),
                                 Range(max(ends) for ends in steps.values()).text()))
                    shutil.rmtree(logdir)
            told = {**lab.commands, **told}
    return section(
        f"6. Semaphores: a central server and {workers} workers at {settings.mbit:g} Mbit/s",
        "GoogLeNet, 1000 classes, no computing. Seconds of a step, and seconds until the first worker, the workers in "
        "the mean, and the last one have their weights, from the first byte that the server sends to anyone. With "
        "overlap off all weights are there at once, so one worker after the other gets them, as (7.1) to (7.3) "
        "suppose; with overlap on they appear chunk by chunk, and so do the turns.",
        commands(told),
        table(("semaphore", "overlap", "congestion", "s a step", "first worker s", "mean s", "last worker s"), rows))


def trace(settings):
    ranks, rows, verdicts, told = 4, [], [], {}
    for congestion in settings.congestion:
        steps = {"": [], "--trace": []}
        with Lab(ranks, settings.mbit, congestion) as lab:
            for turn in range(settings.repeats + 1):
                for flag, seconds in sorted(steps.items(), reverse=turn % 2 == 1):
                    settings.say(f"trace: {congestion}, turn {turn + 1} of {settings.repeats + 1}")
                    logdir, _ = launch(lab, ["--net", "squeezenet", "--classes", "1000", "--device", "replay:0.05",
                                             "--batches", "60", *([flag] if flag else [])], congestion)
                    seconds += step_seconds(logdir)
                    shutil.rmtree(logdir)
            told = {**lab.commands, **told}
        without, with_trace = Range(steps[""]), Range(steps["--trace"])
        verdicts.append(at_most(with_trace.median / without.median, 1.01))
        rows.append((congestion, without.text(), with_trace.text(), f"{with_trace.median / without.median:.4f}",
                     "<= 1.01", verdicts[-1]))
    return section(
        "7. What the trace costs",
        f"SqueezeNet, 1000 classes, {ranks} ranks at {settings.mbit:g} Mbit/s, 50 ms of computing a step: seconds of a "
        "step without and with `--trace`, in turns.",
        commands(told),
        table(("congestion", "without s", "with s", "ratio", "target", "verdict"), rows), count(verdicts))
