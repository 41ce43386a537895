"""How much options of duplex dist gain or cost: semaphores, the trace, sealed frames."""
import resource
import shutil

from lab.machine import Lab, launch
from page import Range, at_most, commands, count, section, table
from ranks import NOTHING, step_seconds, waits, weight_bytes


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


KINDS = (("plain", ["--secure", "off"]), ("checksum", ["--secure", "off", "--checksum", "on"]),
         ("sealed", ["--secure", "on"]))


def processor_seconds():
    """Returns the processors' seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def secure(settings):
    """An exchange that only exchanges, plain, with checksums and sealed, in turns."""
    ranks, batches, rows, told = 4, 20, [], {}
    size = weight_bytes("resnet34", 1000)
    crossed = 4 * (ranks - 1) / ranks * size  # Bytes a step that a rank sends and receives.
    for congestion in settings.congestion:
        steps, works = {name: [] for name, _ in KINDS}, {name: [] for name, _ in KINDS}
        with Lab(ranks, settings.mbit, congestion) as lab:
            for turn in range(settings.repeats):
                for name, flags in (KINDS if turn % 2 == 0 else reversed(KINDS)):
                    settings.say(f"secure: {congestion}, {name}, turn {turn + 1} of {settings.repeats}")
                    before = processor_seconds()
                    logdir, _ = launch(lab, ["--net", "resnet34", "--classes", "1000", "--device", NOTHING,
                                             "--batches", str(batches), *flags[2:]], congestion, secure=flags[1])
                    works[name].append((processor_seconds() - before) / (ranks * batches))
                    steps[name] += step_seconds(logdir, 8)
                    shutil.rmtree(logdir)
            told = {**lab.commands, **told}
        plain, least = Range(steps["plain"]), Range(works["plain"])
        for name, _ in KINDS:
            seconds, work = Range(steps[name]), Range(works[name])
            more = work.median - least.median
            rows.append((name, congestion, seconds.text(), f"{seconds.median / plain.median:.3f}", work.text(),
                         f"{1e3 * more:.0f}", f"{crossed * 1e-9 / more:.2f}" if more > 0 else "-"))
    return section(
        "8. What checksums and sealing cost",
        f"Resnet34, 1000 classes, {ranks} ranks at {settings.mbit:g} Mbit/s, no computing: seconds of a step with plain "
        "frames, with a CRC32C each, and sealed (AES-256-GCM), in turns. work: processor seconds of "
        "a rank, over its steps; more ms: so much more of them than with plain frames (sealed frames are also copied, "
        f"which plain ones are not); GB/s: the {crossed * 1e-6:.0f} MB that a rank sends and receives a step, by that "
        "time.",
        commands(told),
        table(("frames", "congestion", "s a step", "ratio", "work s", "more ms", "GB/s"), rows))
