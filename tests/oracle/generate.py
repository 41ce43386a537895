#!/usr/bin/python3
"""Records what PyTorch computes for the networks, for tests/models/oracle_test.cpp to compare with.

Usage: generate.py [RECORD...]    (needs torch 1.13 or later, and numpy; minutes for all)

Weights, images, labels and dropout's masks are drawn by the counter-based generator (philox.py), so
that a record holds only results, and no images or weights. PyTorch computes the recorded values in
double precision. It also computes them in single precision, and the record says how far these are
off: a record is refused if PyTorch itself uses up more than a third of a tolerance. A record names
everything that the test needs to know of the run, so that the test repeats nothing of it.

Tolerances are relative. Rounding moves a result by 1e-6 or so; kinks move it more: an element that
rounding carries over the threshold of a ReLU, or another argmax of a max pooling, adds or removes one
element's whole gradient. Batch normalisation makes that worse: it enlarges rounding from layer to
layer, until, in Resnet34, PyTorch's own ways to sum differ by 1e-3 in a gradient. In Resnet34, batch
normalisation therefore starts with biases of three times its weight, half of the channels' above and
half below 0, so that few elements lie near ReLU's threshold. Seeds were chosen by how far the nearest
element is from a kink. Rates are such that losses fall and do not jump about, so that ten steps do not
amplify rounding; weight decay is so strong that its absence would show.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import networks
from philox import RandomStream, stream_of

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 10
HELPER_WEIGHT = 0.3  # Weight of the auxiliary classifiers' losses (Table 2.3).
ELEMENTS = 4  # Elements sampled of each gradient.


# Tolerances are relative: those of the loss and of a gradient's norm to themselves, that of a
# gradient's projection to the norm, that of an element to its size plus the elements' usual size.
TOLERANCE = {"loss": 1e-4, "norm": 1e-3, "projection": 3e-3, "element": 1e-2}
TRAINING_TOLERANCE = {"losses": 1e-3, "evaluation": 1e-3, "statistics": 1e-3}


def sgd(rate, weight_decay, momentum=0.9):
    return {"optimiser": "sgd", "rate": rate, "momentum": momentum, "weight_decay": weight_decay}


def adam(rate, weight_decay):
    return {"optimiser": "adam", "rate": rate, "weight_decay": weight_decay}


def case(network, size, classes, batch, training, seed=1, channels=3, batch_norm=None, tolerance=None,
         **switches):
    return {
        "network": network,
        "options": {
            "input": size,
            "channels": channels,
            "classes": classes,
            "auxiliary": switches.get("auxiliary", False),
            "zero_padded_shortcuts": switches.get("zero_padded_shortcuts", False),
        },
        "seed": seed,
        "batch": batch,
        "batch_norm": batch_norm,
        "tolerance": {**TOLERANCE, **(tolerance or {})},
        "training": [{**t, "tolerance": TRAINING_TOLERANCE} for t in training],
    }


def resnet34(size, classes, batch, seed, zero_padded_shortcuts):
    steps = [sgd(3e-6, 50.0), adam(1e-6, 0.1)]
    return case("resnet34", size, classes, batch, steps, seed, batch_norm={"weight": 0.25, "bias": 0.75},
                zero_padded_shortcuts=zero_padded_shortcuts)


# VGG16E's twenty steps of training run on smaller images: at 224 they would take minutes. At 224, some of 30
# million elements always lie so near a kink that Winograd's rounding carries them over, so the tolerance is three
# times the usual one. At 64 the usual one holds.
AT_KINKS = {"norm": 3e-3, "projection": 9e-3, "element": 3e-2}
CASES = {
    "lenet": case("lenet", 28, 10, 8, [sgd(1e-3, 0.3), adam(1e-4, 0.05)], channels=1),
    "alexnet": case("alexnet", 227, 1000, 2, [sgd(3e-5, 1.0), adam(1e-5, 0.05)]),
    "vgg16e": case("vgg16e", 224, 1000, 2, [], seed=8, tolerance=AT_KINKS),
    "vgg16e_64": case("vgg16e", 64, 100, 2, [sgd(1e-5, 3.0), adam(2e-6, 0.05)]),
    "googlenet": case("googlenet", 224, 1000, 2, [sgd(2e-5, 2.0), adam(5e-6, 0.1)], 17, auxiliary=True),
    "googlenet_80": case("googlenet", 80, 20, 2, [sgd(2e-5, 2.0), adam(5e-6, 0.1)], auxiliary=True),
    "squeezenet": case("squeezenet", 224, 1000, 2, [sgd(1e-4, 1.0), adam(5e-5, 0.05)]),
    "squeezenet_64": case("squeezenet", 64, 20, 2, [sgd(1e-4, 1.0), adam(5e-5, 0.05)]),
    "resnet34": resnet34(224, 1000, 2, 38, False),
    "resnet34_padded": resnet34(224, 1000, 2, 20, True),
    "resnet34_64": resnet34(64, 20, 4, 9, False),
    "resnet34_padded_64": resnet34(64, 20, 4, 9, True),
}


def images_and_labels(spec):
    """Returns one batch, in [-1, 1). Every step sees the same images, but draws other dropout masks."""
    options, batch = spec["options"], spec["batch"]
    shape = (batch, options["channels"], options["input"], options["input"])
    uniform = RandomStream(spec["seed"], stream_of("images")).uniform(int(np.prod(shape)))
    images = (np.float32(2) * uniform - np.float32(1)).reshape(shape)
    labels = RandomStream(spec["seed"], stream_of("labels")).below(batch, options["classes"])
    return images, labels.astype(np.int64)


class Run:
    """Runs a network with its batch, in one precision."""

    def __init__(self, spec, dtype):
        self.spec = spec
        self.net = networks.Net(spec["seed"], dtype, spec["batch_norm"])
        images, labels = images_and_labels(spec)
        self.images = torch.from_numpy(images).to(dtype)
        self.labels = torch.from_numpy(labels)

    def loss(self, step=0, training=True):
        self.net.training = training
        self.net.first_sample = step * self.spec["batch"]
        network = networks.ALL[self.spec["network"]]
        logits, helpers = network(self.net, self.images, self.spec["options"])
        loss = F.cross_entropy(logits, self.labels)
        return loss + HELPER_WEIGHT * sum(F.cross_entropy(helper, self.labels) for helper in helpers)

    def gradients(self):
        loss = self.loss()
        loss.backward()
        return loss.item(), {name: p.grad.double().numpy() for name, p in self.net.parameters.items()}

    def train(self, training, steps=STEPS):
        """Returns the losses before each step, the loss in evaluation after the last, and the running statistics."""
        losses, optimiser = [], None
        for step in range(steps):
            loss = self.loss(step)
            if optimiser is None:  # Parameters exist from the first forward on.
                optimiser = self.optimiser(training)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        with torch.no_grad():
            evaluation = self.loss(training=False).item()
        return losses, evaluation, {k: v.double().numpy() for k, v in self.net.statistics.items()}

    def optimiser(self, training):
        parameters = list(self.net.parameters.values())
        rate, decay = training["rate"], training["weight_decay"]
        if training["optimiser"] == "adam":
            return torch.optim.Adam(parameters, lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=decay)
        return torch.optim.SGD(parameters, lr=rate, momentum=training["momentum"], weight_decay=decay)


def checksum(values):
    """Returns a checksum of the bits of float32 values, which changes with any bit and with their order."""
    bits = values.reshape(-1).view(np.uint32).astype(np.uint64)
    weights = np.arange(bits.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return "%016x" % int((bits * weights).sum(dtype=np.uint64))


class Projection:
    """Sums values with fixed random factors, the same for every parameter, so that one number sees all elements."""

    def __init__(self, seed):
        self.stream = RandomStream(seed, stream_of("projection"))
        self.factors = np.empty(0)

    def __call__(self, values):
        if values.size > self.factors.size:
            self.factors = 2.0 * self.stream.uniform(values.size).astype(np.float64) - 1.0
        return float(np.dot(values.reshape(-1), self.factors[: values.size]))


def off(actual, expected):
    return abs(actual - expected) / abs(expected)


def refuse_beyond(tolerance, single_precision):
    for what, distance in single_precision.items():
        if distance > tolerance[what] / 3:
            raise SystemExit("%s: single precision is off by %.1e, the tolerance is %.1e; take another "
                             "seed or rate" % (what, distance, tolerance[what]))


def record_gradients(spec):
    exact = Run(spec, torch.float64)
    exact_loss, exact_gradients = exact.gradients()
    project = Projection(spec["seed"])
    parameters = []
    for name, gradient in exact_gradients.items():
        places = RandomStream(spec["seed"], stream_of(name + " elements")).below(ELEMENTS, gradient.size)
        places = sorted(set(int(place) for place in places))
        parameters.append({
            "name": name,
            "shape": list(gradient.shape),
            "initial": checksum(exact.net.initial[name]),
            "norm": float(np.linalg.norm(gradient)),
            "projection": project(gradient),
            "elements": [[place, float(gradient.reshape(-1)[place])] for place in places],
        })

    worst = dict.fromkeys(TOLERANCE, 0.0)

    def note(what, distance):
        worst[what] = max(worst[what], float(distance))

    for layout in (torch.contiguous_format, torch.channels_last):  # The layouts make two orders of summation.
        single = Run(spec, torch.float32)
        single.images = single.images.contiguous(memory_format=layout)
        loss, gradients = single.gradients()
        note("loss", off(loss, exact_loss))
        for parameter in parameters:
            gradient, norm = gradients[parameter["name"]], parameter["norm"]
            note("norm", off(np.linalg.norm(gradient), norm))
            note("projection", abs(project(gradient) - parameter["projection"]) / norm)
            for place, value in parameter["elements"]:
                usual = norm / np.sqrt(gradient.size)
                note("element", abs(gradient.reshape(-1)[place] - value) / (abs(value) + usual))
    return {"loss": exact_loss, "single_precision_off": worst, "parameters": parameters}


def record_training(spec, training):
    losses, evaluation, statistics = Run(spec, torch.float64).train(training)
    other_losses, other_evaluation, other_statistics = Run(spec, torch.float32).train(training)
    norms = {name: float(np.linalg.norm(values)) for name, values in statistics.items()}
    distances = [off(np.linalg.norm(other_statistics[name]), norms[name]) for name in norms]
    return {
        **training,
        "losses": losses,
        "evaluation": evaluation,
        "statistics": norms,
        "single_precision_off": {
            "losses": max(map(off, other_losses, losses)),
            "evaluation": off(other_evaluation, evaluation),
            "statistics": float(max(distances, default=0.0)),
        },
    }


def rounded(value, digits=9):
    """Rounds floats to `digits` significant digits, which is more than single precision has."""
    if isinstance(value, float):
        return float("%.*g" % (digits, value))
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    return value


def write(path, record):
    """Writes JSON with one line for each parameter."""
    parameters = ",\n".join("    " + json.dumps(p) for p in record.pop("parameters"))
    text = json.dumps(record, indent=2)
    path.write_text(text[: text.rindex("\n}")] + ',\n  "parameters": [\n' + parameters + "\n  ]\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("record", nargs="*", help="of " + ", ".join(CASES) + "; all if none is given")
    names = parser.parse_args().record or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit("unknown record %s; known: %s" % (", ".join(unknown), ", ".join(CASES)))
    for name in names:
        begin = time.time()
        spec = CASES[name]
        images, labels = images_and_labels(spec)
        record = {**spec, "torch": torch.__version__, "images": checksum(images), "labels": labels.tolist()}
        record.update(record_gradients(spec))
        record["training"] = [record_training(spec, training) for training in spec["training"]]
        print(name, record["single_precision_off"], *(t["single_precision_off"] for t in record["training"]))
        for part in (record, *record["training"]):
            refuse_beyond(part["tolerance"], part["single_precision_off"])
        write(HERE / (name + ".json"), rounded(record))
        print("%s: %.0f s" % (name, time.time() - begin), flush=True)


if __name__ == "__main__":
    main()
