#!/usr/bin/env python3
"""PyTorch's training speed on a GPU, the yardstick of tools/gpu_check.sh. A process measures one network and precision.

gpu_torch_step.py NET float32|tf32|bf16 STEPS BATCH:WAY...     WAY: eager | channels_last | compile

Prints a tab-separated line for each BATCH:WAY as soon as it is measured: network, precision, batch, way, images a
second (median, low quartile, high quartile), peak bytes that were allocated, and that were reserved. If one fails, the
reason goes to standard error and the next one is tried; the exit code is then 1. bf16 is autocast; float32 is without
TF32. cudnn.benchmark is on. compile is torch.compile of the network and its loss, in the layout channels_last. The
networks, and the rest, are torch_step.py's.
"""
import gc
import inspect
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from torch_step import NETWORKS

DEVICE = "cuda"
WARM_UP = 6


class Feed:
    """Feeds batches as in training: from pinned memory, on a stream of its own that copies the next one during a
    step."""

    def __init__(self, *host):
        self.host = [tensor.pin_memory() for tensor in host]
        self.slots = [[torch.empty_like(tensor, device=DEVICE) for tensor in host] for _ in range(2)]
        self.stream = torch.cuda.Stream()
        self.turn = 0
        self.copy_ahead()

    def copy_ahead(self):
        self.stream.wait_stream(torch.cuda.current_stream())  # The step before the last may still read the slot.
        with torch.cuda.stream(self.stream):
            for to, source in zip(self.slots[self.turn], self.host):
                to.copy_(source, non_blocking=True)

    def take(self):
        """Returns the copied batch, which stays in place until the next but one is taken; begins to copy the next
        one."""
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.slots[self.turn]
        self.turn = 1 - self.turn
        self.copy_ahead()
        return batch


def measure(name, precision, steps, batch, way):
    """Returns the seconds of each step, and the peak bytes that were allocated and reserved."""
    torch.manual_seed(1)
    net = NETWORKS[name](1000).train().to(DEVICE)
    size = 227 if name == "alexnet" else 224
    images, labels = torch.rand(batch, 3, size, size), torch.arange(batch) % 1000
    if way != "eager":
        net, images = net.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)

    def loss_of(images, classes):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bf16"):
            return F.cross_entropy(net(images), classes)

    if way == "compile":
        loss_of = torch.compile(loss_of, dynamic=False)
    fused = {"fused": True} if "fused" in inspect.signature(torch.optim.SGD).parameters else {}
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, **fused)
    feed = Feed(images, labels)
    times = []
    for step in range(WARM_UP + steps):
        if step == WARM_UP - 2:  # Memory of cudnn.benchmark's trials and of compiling does not count.
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        images, classes = feed.take()
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(images, classes)
        loss.backward()
        optimiser.step()
        loss.item()  # The host gets every step's loss, as in duplex bench.
        torch.cuda.synchronize()
        if step >= WARM_UP:
            times.append(time.perf_counter() - begin)
    return times, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def main():
    name, precision, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    failed = False
    for cell in sys.argv[4:]:
        batch, way = cell.split(":")
        try:
            times, allocated, reserved = measure(name, precision, steps, int(batch), way)
        except Exception as error:  # Out of memory, or torch.compile lacks something here.
            print(f"{cell}: {type(error).__name__}: {error}"[:2000], file=sys.stderr, flush=True)
            failed = True
        else:
            low, _, high = statistics.quantiles(times, n=4, method="inclusive")
            rates = [f"{int(batch) / seconds:.3f}" for seconds in (statistics.median(times), high, low)]
            print(name, precision, batch, way, *rates, allocated, reserved, sep="\t", flush=True)
        if way == "compile":
            torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
