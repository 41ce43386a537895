#!/usr/bin/env python3
"""PyTorch's training speed on a GPU, the yardstick of tools/gpu_check.sh: one network, batch and way a process.

bench_gpu_torch.py NET BATCH float32|tf32|bf16 eager|channels_last|compile STEPS

Prints one tab-separated line: network, batch, precision, way, pictures a second (median, low quartile, high quartile),
peak bytes. bf16: autocast; float32: no TF32. cudnn.benchmark on; compile: torch.compile of the network and its loss, in
the layout channels_last. The networks, and the rest, are bench_torch.py's.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from bench_torch import NETWORKS


def main():
    name, batch, precision, way, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    net = NETWORKS[name](1000).train().cuda()
    size = 227 if name == "alexnet" else 224
    images, labels = torch.rand(batch, 3, size, size), torch.arange(batch) % 1000
    if way != "eager":
        net, images = net.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)

    def loss_of(pictures, classes):
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            return F.cross_entropy(net(pictures), classes)

    if way == "compile":
        loss_of = torch.compile(loss_of)
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    times = []
    warm_up = 5
    for step in range(warm_up + steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        pictures, classes = images.cuda(), labels.cuda()  # As duplex bench has it: every batch comes from the host.
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(pictures, classes)
        loss.backward()
        optimiser.step()
        loss.item()
        torch.cuda.synchronize()
        if step == warm_up:
            torch.cuda.reset_peak_memory_stats()
        if step >= warm_up:
            times.append(time.perf_counter() - begin)
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    median = statistics.median(times)
    print(name, batch, precision, way, f"{batch / median:.3f}", f"{batch / high:.3f}", f"{batch / low:.3f}",
          torch.cuda.max_memory_allocated(), sep="\t")


if __name__ == "__main__":
    main()
