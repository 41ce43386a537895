"""Measures t_comm and t_grad, the costs of Table 6.1, on this machine."""
from lab.machine import DUPLEX, Failed, Lab, run, transport

CLASSES = 256  # The number of classes of Caltech256.

# Table 6.1: t_grad of a GTX 970 and t_comm over 1 Gbit/s, in seconds.
TABLE_6_1 = {"vgg16e": (0.719, 5.153), "googlenet": (0.763, 0.210), "squeezenet": (0.758, 0.033),
             "resnet34": (0.821, 0.811)}

TURNS = 3
GRADIENT_BATCH = 8  # Images; t_grad grows with their number.


def weight_bytes(net):
    lines = run([DUPLEX, "nets", net, "--classes", str(CLASSES)]).splitlines()
    return 4 * int(next(line for line in lines if line.startswith("total")).split()[1].replace(",", ""))


def gradient(settings, net, device):
    """Returns the seconds of a step on this machine, or None if it has no such device."""
    settings.say(f"t_grad of {net} on {device}, {GRADIENT_BATCH} images")
    try:
        row = run([DUPLEX, "bench", "--net", net, "--classes", str(CLASSES), "--batch", str(GRADIENT_BATCH), "--steps",
                   "3" if net == "vgg16e" else "5", "--device", device, "--row"]).split("\t")
    except Failed as failure:
        settings.say(str(failure))
        return None
    return float(row[6])


def measure(settings):
    """Writes costs.json, which has {network: {"t_comm", "t_grad_cpu", ...}}."""
    known = settings.files.read("costs.json") or {"version": 1, "classes": CLASSES, "networks": {}}
    missing = set()  # Devices that this machine does not have.
    for net in TABLE_6_1:
        costs = known["networks"].setdefault(net, {"bytes": weight_bytes(net)})
        if settings.lab and "t_comm" not in costs:
            settings.say(f"t_comm of {net}, over {settings.mbit:g} Mbit/s")
            with Lab(2, settings.mbit, settings.congestion) as lab:
                repeats = 1 if net == "vgg16e" else 5
                turns = [transport(lab, net, settings.congestion, repeats, classes=CLASSES) for _ in range(TURNS)]
            # A shaped link has one rate. Times differ only by disturbances, which make them longer, so the least
            # counts.
            times = [turn["t_comm_s"] for turn in turns]
            costs["t_comm"] = min(max(turn["down"], turn["up"]) for turn in times)
            costs["t_comm_both"] = min(max(turn["down_both"], turn["up_both"]) for turn in times)
            costs["owner_rate"] = max(turn["owner_bytes_per_s"] for turn in turns)
        if "t_comm" not in costs:  # Without the lab, the line's rate counts: 1,448 of 1,514 bytes are payload.
            costs["t_comm_line"] = costs["bytes"] * 8e-6 / settings.mbit * 1514 / 1448
        for device, name in (("cpu", "t_grad_cpu"), ("cuda", "t_grad_gpu")):
            if settings.measures and name not in costs:
                costs[name] = None if device in missing else gradient(settings, net, device)
                if costs[name] is None:
                    missing.add(device)
        costs["grad_batch"] = GRADIENT_BATCH
        settings.files.write("costs.json", known)


def of(settings, net):
    costs = settings.files.read("costs.json")["networks"][net]
    return costs.get("t_comm", costs.get("t_comm_line"))


def owner_flags(settings, net):
    rate = settings.files.read("costs.json")["networks"][net].get("owner_rate")
    return ["--owner-rate", f"{rate}B/s"] if rate else []


def best_probe(settings, seconds):
    """Returns the least seconds that a probe took on this machine (lab/probe.py), this one included."""
    known = settings.files.read("costs.json")
    if seconds and seconds < known.get("probe", seconds + 1):
        known["probe"] = seconds
        settings.files.write("costs.json", known)
    return known.get("probe", seconds)
