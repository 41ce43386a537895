"""Networks that are cut over two ranks of this machine, of one core each, and train on Fashion-MNIST: are their steps
as plan says, and do they learn what one machine learns?"""
import json
import os
import re
import shutil
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor

from lab.machine import DUPLEX, WORK, commit, data_folder, nodefile_here, processor, run

# Small maps, so that a training takes a minute or two. Batch normalisation is over a micro-batch, so a batch is not small.
NETWORKS = {"squeezenet": (["--input", "48", "--batch", "32"], ["--batches", "400", "--optimizer", "adam", "--lr", "0.0005"]),
            "resnet34": (["--input", "32", "--batch", "32"], ["--batches", "200", "--lr", "0.02", "--momentum", "0.9", "--lr-schedule", "cosine"])}
STRATEGIES = ("pipeline", "hybrid")
TURNS, STEPS = 5, 40  # Of the cut network and one machine's, after each other: they meet the same disturbances.
RANKS, BATCH, SEEDS, LIMIT = 2, 32, 3, 1800


def plan_for(network, strategy, data, folder):
    """Measures the machine, and writes the plan of the fastest cut by this strategy. Returns its file and its flags."""
    computing, _ = NETWORKS[network]
    model = ["--net", network, "--classes", "10", *computing]
    logdir = os.path.join(folder, "measured")
    measured = os.path.join(logdir, "machines.json")
    if not os.path.exists(measured):
        run([DUPLEX, "plan", *model, "--nodefile", nodefile_here(folder, RANKS), "--datadir", data, "--threads", "1", "--logdir", logdir], LIMIT)
    known = ["--measured", measured, "--machines", str(RANKS)]
    found = json.loads(run([DUPLEX, "plan", *model, *known, "--output", "json"], LIMIT))
    ways = [way for way in found["ways"] if strategy in way["cut_flags"] and not re.search("lossless|bf16", way["way"])]
    path = os.path.join(folder, f"{strategy}.json")
    run([DUPLEX, "plan", *model, *known, "--file", path, "--way", f"{ways[0]['way']}@{RANKS}"], LIMIT)
    return path, ways[0]["cut_flags"]


def summary_of(logdir):
    with open(os.path.join(logdir, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def step_of(logdir):
    """Returns the median seconds of a step."""
    return summary_of(logdir)["step_s"]["median"]


def top1_of(logdir):
    """Returns the accuracy in per cent."""
    return 100 * summary_of(logdir)["accuracy"]["top1"]


def flag(words, name):
    return int(words[words.index(name) + 1])


def own_step(measured):
    """Returns the seconds in which one of the machines computes its batch, as they were measured."""
    with open(measured, encoding="utf-8") as file:
        return statistics.mean(machine["t_grad_s"] for machine in json.load(file)["machines"])


def in_turns(network, plan, data):
    """Returns the medians, over turns, of the seconds of a step as planned, and in steps of a rank's batch alone. As many
    processes take these at once as there are ranks, since they share this machine then, too, and when it is measured."""
    computing, learning = NETWORKS[network]
    common = ["--datadir", data, "--threads", "1"]
    nodes = os.path.join(os.path.dirname(plan), "nodes")
    steps, ratios = [], []
    for _ in range(TURNS):
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            cut = os.path.join(folder, "cut")
            run([DUPLEX, "launch", "--plan", plan, "--nodefile", nodes, "--", *common, *learning[2:], "--batches", str(STEPS), "--logdir", cut], LIMIT)
            alone = [os.path.join(folder, f"alone-{rank}") for rank in range(RANKS)]
            local = [DUPLEX, "local", "--net", network, *computing, *common, *learning[2:], "--batches", str(STEPS), "--logdir"]
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda logdir: run([*local, logdir], LIMIT), alone))
            steps.append(step_of(cut))
            ratios.append(steps[-1] / statistics.mean(map(step_of, alone)))
    return statistics.median(steps), statistics.median(ratios)


def train(network, strategy, seed, data, plan, cut_flags):
    """Trains by the plan and on one machine, which sees the same images in each step."""
    computing, learning = NETWORKS[network]
    common = ["--datadir", data, "--threads", "1", "--seed", str(seed), "--accuracy"]
    micro_batches, steps = flag(cut_flags, "--micro-batches"), flag(learning, "--batches")
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        cut, alone = os.path.join(folder, "cut"), os.path.join(folder, "alone")
        # The plan has the network, its input and the batch, and is for the nodefile that was measured.
        nodes = os.path.join(os.path.dirname(plan), "nodes")
        run([DUPLEX, "launch", "--plan", plan, "--nodefile", nodes, "--", *common, *learning, "--logdir", cut], LIMIT)
        accumulated = ["--accumulate", str(micro_batches)] if micro_batches > 1 else []
        run([DUPLEX, "local", "--net", network, "--input", str(flag(computing, "--input")), "--batch", str(RANKS * BATCH // micro_batches), *accumulated,
             *common, *learning[2:], "--batches", str(steps * micro_batches), "--logdir", alone], LIMIT)
        top1, top1_alone = top1_of(cut), top1_of(alone)
    step, ratio = in_turns(network, plan, data)
    with open(plan, encoding="utf-8") as file:
        planned = json.load(file)["step_s"]
    own = own_step(os.path.join(os.path.dirname(plan), "measured", "machines.json"))
    return {"network": network, "strategy": strategy, "flags": " ".join(cut_flags), "seed": seed, "planned, s": planned,
            "measured, s": step, "planned ratio": planned / own, "measured ratio": ratio, "top1": top1, "alone": top1_alone,
            "commit": commit(), "processor": processor()}


def trained(kept, nets, seeds):
    data = data_folder()
    for network in nets:
        if network not in NETWORKS:
            continue
        for seed in range(1, seeds + 1):
            folder = tempfile.mkdtemp(dir=WORK)  # Machines are measured anew for each seed.
            for strategy in STRATEGIES:
                if any((row["network"], row.get("strategy"), row.get("seed")) == (network, strategy, seed) for row in kept.rows):
                    continue
                plan, cut_flags = plan_for(network, strategy, data, folder)
                kept.add(train(network, strategy, seed, data, plan, cut_flags))
                print(kept.rows[-1], flush=True)
            shutil.rmtree(folder)


def rows_of(kept):
    """Returns a row for each network and strategy."""
    found = []
    for network in NETWORKS:
        for strategy in STRATEGIES:
            rows = [row for row in kept.rows if (row["network"], row.get("strategy")) == (network, strategy)]
            if not rows:
                continue
            errors = [row["planned ratio"] / row["measured ratio"] - 1 for row in rows]
            apart = [row["top1"] - row["alone"] for row in rows]
            found.append({"network": network, "flags": ", ".join(dict.fromkeys(f"`{row['flags']}`" for row in rows)), "seeds": len(rows),
                          "planned, s": statistics.median(row["planned, s"] for row in rows),
                          "measured, s": statistics.median(row["measured, s"] for row in rows),
                          "planned, t_grad": statistics.median(row["planned ratio"] for row in rows),
                          "measured, t_grad": statistics.median(row["measured ratio"] for row in rows),
                          "off by": f"{100 * statistics.median(errors):+.1f}%, {100 * min(errors):+.1f}% to {100 * max(errors):+.1f}%",
                          "top-1, %": f"{statistics.mean(row['top1'] for row in rows):.2f}",
                          "one machine, %": f"{statistics.mean(row['alone'] for row in rows):.2f}",
                          "apart, points": f"{statistics.mean(apart):+.2f}, {min(apart):+.2f} to {max(apart):+.2f}"})
    return found
