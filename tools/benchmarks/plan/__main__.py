"""make bench ONLY=plan: does duplex plan name the best way? Draws cases at random, asks plan, runs the ways that come
into question on the lab with replayed computing, and compares. Writes docs/results/plan.md. A case takes minutes.
Environment: CASES (default 12), SEED (default: that of OUT, or else drawn, and printed), ROUNDS (steps of every worker,
default 8; a way whose steps take long has fewer), OUT (folder that keeps a line for each case, so that the same command goes on where it was interrupted, and
with more CASES adds to them; default runs/plan)."""
import json
import math
import os
import random
import signal
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from lab.kept import Kept  # noqa: E402
from lab.machine import DUPLEX, WORK, Failed, Lab, commit, key_file, processor, run, start, stop, wait  # noqa: E402
from lab.probe import Probe  # noqa: E402

CLASSES = 256
# Parameters with so many classes decide how long a transfer takes.
NETS = ("lenet", "squeezenet", "googlenet", "resnet34")
BATCH = 840  # Images; shares of it are whole numbers, as far as a few images in a thousand matter.
SKIPPED = 2  # Steps that carry the first weights and fill the queues.
LONG, LEAST = 2.0, 5  # Where a step takes so many seconds, so many steps are enough: a replay varies little.
FAR = 2.0  # Ways that plan has as so many times slower than its own do not come into question.
CLOSE, PAYS_CLOSE = 1.03, 1.05
PAGE = "docs/results/plan.md"


def weight_bytes(net):
    lines = run([DUPLEX, "nets", net, "--classes", str(CLASSES)]).splitlines()
    return 4 * int(next(line for line in lines if line.startswith("total")).split()[1].replace(",", ""))


class Case:
    """A network on some machines of the lab, drawn at random."""

    def __init__(self, draw, number):
        self.number = number
        self.net = draw.choice(NETS)
        self.machines = draw.randint(2, 4)
        self.mbit = round(math.exp(draw.uniform(math.log(50), math.log(400))))
        t_comm = weight_bytes(self.net) * 8e-6 / self.mbit * 1514 / 1448
        self.t_grad = round(min(max(t_comm / math.exp(draw.uniform(math.log(0.1), math.log(3))), 0.01), 1.5), 4)
        self.slow = {draw.randrange(self.machines): round(draw.uniform(1.3, 3), 2)} if draw.random() < 0.4 else {}

    def __str__(self):
        slow = "".join(f", machine {machine} {factor} times slower" for machine, factor in self.slow.items())
        return f"{self.net}, {self.machines} machines, {self.mbit} Mbit/s, t_grad {self.t_grad} s{slow}"

    def plan(self):
        slow = [word for machine, factor in self.slow.items() for word in ("--slow", f"{machine}:{factor}")]
        # What TCP carries of a link: 1,448 of 1,514 bytes.
        return json.loads(run([DUPLEX, "plan", "--net", self.net, "--classes", str(CLASSES), "--batch", str(BATCH),
                               "--t-grad", str(self.t_grad), "--rate", f"{self.mbit * 1448 / 1514:.3f}Mbit/s",
                               "--machines", str(self.machines), "--queue", str(0.05 * self.mbit * 125e3),
                               "--burst", "131072", "--output", "json", *slow]))

    def candidates(self, plan):
        """Returns the ways that may be the best: plan's own, every usual one, and variants that come close to it. All
        of them have the result of one machine."""
        exact = [way for way in plan["ways"] if way["result"]]
        own = next(way for way in exact if name(way) == plan["best"])
        usual = [way for way in exact if not {"strict", "semaphore", "tensors"} & set(way["way"].split("-"))]
        close = [way for way in exact if way["image_s"] < 1.1 * own["image_s"] and way not in usual][:3]
        near = [way for way in usual if way["image_s"] < FAR * own["image_s"]]
        return [own] + [way for way in near + close if way is not own]

    def measure(self, lab, way, rounds):
        """Returns seconds an image of a way that runs on the lab."""
        words = way["way"].split("-")
        samples = BATCH * (1 if words[0] == "split" else way["workers"])
        if way["image_s"] * samples > LONG:
            rounds = min(rounds, LEAST)
        nodes = os.path.join(WORK, "nodes")
        with open(nodes, "w", encoding="ascii") as file:
            file.writelines(f"{lab.address(machine)}:7117\n" for machine in way["machines"])
        logdir = tempfile.mkdtemp(prefix="plan-", dir=WORK)
        flags = ["--net", self.net, "--classes", str(CLASSES), "--batch", str(BATCH), "--sync", words[0], "--server",
                 words[1], "--batches", str(rounds), "--nodefile", nodes, "--key", key_file(), "--secure", "off",
                 "--congestion", "cubic", "--timeout", "120", "--logdir", logdir]
        flags += ["--overlap", "off"] * ("strict" in words) + ["--semaphore", "on"] * ("semaphore" in words)
        flags += ["--shards", "tensors"] * ("tensors" in words)
        flags += ["--wire", "lossless"] * ("lossless" in words) + ["--factors", "on"] * ("factors" in words)
        flags += ["--share", ":".join(map(str, way["shares"]))] * bool(way["shares"])
        children = []
        try:
            for rank, machine in enumerate(way["machines"]):
                command = lab.on(machine, [DUPLEX, "dist", *flags, "--index", str(rank), "--device",
                                           f"replay:{self.t_grad * self.slow.get(machine, 1)}"])
                children.append((start(command), command))
            for child, command in children:
                wait(child, command)
        finally:
            for child, _ in children:
                stop(child)
        with open(os.path.join(logdir, "metrics.csv"), encoding="ascii") as file:
            lines = file.read().splitlines()
        column = lines[0].split(",").index("total_s")
        steps = [float(line.split(",")[column]) for line in lines[1:]][SKIPPED:]
        return statistics.mean(steps) / samples


def judge(case, rounds):
    """Runs a case; returns its line for the page as a dictionary."""
    plan = case.plan()
    with Lab(case.machines, case.mbit, "cubic") as lab, Probe() as probe:
        results = [(way, case.measure(lab, way, rounds)) for way in case.candidates(plan)]
    own = results[0][1]
    best, least = min(results, key=lambda result: result[1])
    alone = case.t_grad * min(case.slow.get(machine, 1) for machine in range(case.machines)) / BATCH
    speedup = alone / own
    clear = not 1 / PAYS_CLOSE < alone / least < PAYS_CLOSE
    return {"number": case.number, "case": str(case), "own": name(results[0][0]), "best": name(best), "ratio": own / least,
            "predicted": results[0][0]["speedup"], "measured": speedup, "named": own <= CLOSE * least, "clear": clear,
            "pays": plan["pays"] == (alone / least > 1), "stolen": probe.stolen, "count": len(results),
            "commit": commit(), "processor": processor()}


def name(way):
    return f"{way['way']}@{way['workers']}"


def kept_cases():
    """Returns the cases that have run. Draws a seed where the environment has none and no case was kept."""
    asked = {word: int(os.environ[word.upper()]) for word in ("seed", "rounds") if os.environ.get(word.upper())}
    settings = {"seed": random.SystemRandom().randrange(1 << 31), "rounds": 8, **asked}
    return Kept(os.path.join(os.environ.get("OUT") or "runs/plan", "cases.jsonl"), settings, asked)


def page(kept):
    rows = kept.rows
    named = sum(row["named"] for row in rows)
    clear = [row for row in rows if row["clear"]]
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows)
    text = ["# Does `plan` name the best way?", "",
            f"Written by `SEED={kept.settings['seed']} CASES={len(rows)} make bench ONLY=plan` at commit "
            f"{kept.every('commit')}, on {kept.every('processor')}. Each case is drawn at random. The ways that come into question ran on the lab, {kept.settings['rounds']} steps each",
            f"({LEAST} where a step takes more than {LONG:g} s), with replayed computing: plan's own, the best number of workers of every usual way that plan has as less than",
            f"{FAR:g} times slower, and variants that plan has within a tenth of its own. All have the result of one machine.", "",
            f"- The way that plan names is the fastest, or within 3% of it, in **{named} of {len(rows)}** cases.",
            f"- It is right about whether training in parallel pays in **{sum(row['pays'] for row in clear)} of "
            f"{len(clear)}** cases in which the best speedup is not within 5% of 1.",
            f"- The speedup of its way is off by {100 * statistics.median(errors):.1f}% in the median, by "
            f"{100 * errors[-1]:.1f}% at most.", "",
            "| case | plan's way | S foreseen | S measured | the fastest | plan's / fastest |", "|---|---|---|---|---|---|"]
    for row in rows:
        text.append(f"| {row['case']} | {row['own']} | {row['predicted']:.2f} | {row['measured']:.2f} | {row['best']} | "
                    f"{row['ratio']:.3f} |")
    return "\n".join(text) + "\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if os.geteuid() != 0:
        sys.exit("bench: the lab's hosts need root")
    cases, kept = int(os.environ.get("CASES") or 12), kept_cases()
    print(f"plan: SEED={kept.settings['seed']}, {cases} cases, of which {kept.path} has {len(kept.rows)}", flush=True)
    draw, done = random.Random(kept.settings["seed"]), {row["number"] for row in kept.rows}
    for number in range(cases):
        case = Case(draw, number)
        if number in done:
            continue
        try:
            row = judge(case, kept.settings["rounds"])
        except Failed as failure:
            sys.exit(f"plan: case {number} ({case}): {failure}")
        kept.add(row)
        print(f"plan: {number}: {case}: {row['own']} {row['ratio']:.3f} of the fastest of {row['count']}, foreseen "
              f"{row['predicted']:.2f}, measured {row['measured']:.2f}", flush=True)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(kept))
    print(f"plan: {PAGE}: {sum(row['named'] for row in kept.rows)} of {len(kept.rows)} within 3% of the fastest")


if __name__ == "__main__":
    main()
