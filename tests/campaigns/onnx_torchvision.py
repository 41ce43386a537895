#!/usr/bin/env python3
"""Networks of torchvision come through `duplex onnx import` and `onnx export`: their probabilities in onnxruntime must be
the same to 1e-5 of the largest. Prints a line for each network and each of PyTorch's two exporters; what the program does
not import has to be refused in one line that names the node. Needs torch, torchvision, onnx, onnxscript, onnxruntime.
Usage: DUPLEX=bin/duplex python3 tests/campaigns/onnx_torchvision.py [NETWORK[:SIDE]]..."""
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnxruntime
import torch
import torchvision

DUPLEX = os.environ.get("DUPLEX", "bin/duplex")
NETWORKS = ("alexnet:224", "resnet18", "resnet50", "squeezenet1_0", "squeezenet1_1", "googlenet", "densenet121",
            "mobilenet_v2", "shufflenet_v2_x1_0")
LIMIT = 1e-5


def probabilities(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images})[0].ravel()


def through(path, folder, images, wanted):
    """Returns what became of a file, and whether that is as it should be."""
    net, weights, back = (os.path.join(folder, name) for name in ("back.net", "back.safetensors", "back.onnx"))
    took = subprocess.run([DUPLEX, "onnx", "import", path, "--output", net, "--save", weights], capture_output=True,
                          text=True)
    if took.returncode != 0:
        return took.stderr.strip(), took.returncode == 1 and took.stderr.count("\n") == 1 and "node '" in took.stderr
    subprocess.run([DUPLEX, "onnx", "export", "--net", net, "--weights", weights, "--output", back], check=True,
                   stdout=subprocess.DEVNULL)
    error = float(abs(probabilities(back, images) - wanted).max() / wanted.max())
    return f"{error:.1e} of the largest probability", error <= LIMIT


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(3)
    bad = 0
    for word in sys.argv[1:] or NETWORKS:
        name, _, side = word.partition(":")
        torch.manual_seed(1)
        more = {"init_weights": True, "aux_logits": False} if name == "googlenet" else {}
        network = getattr(torchvision.models, name)(weights=None, **more).eval()
        images = torch.rand(1, 3, int(side or 64), int(side or 64))
        with torch.no_grad():
            wanted = torch.softmax(network(images), 1).numpy().ravel()
        for dynamo in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "net.onnx")
                more = {"external_data": False, "verbose": False} if dynamo else {}
                torch.onnx.export(network, (images,), path, dynamo=dynamo, **more)
                said, good = through(path, folder, numpy.asarray(images), wanted)
            bad += not good
            print(f"{name}, {'newer' if dynamo else 'older'} exporter: {said}{'' if good else '  WRONG'}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
