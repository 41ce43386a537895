#!/usr/bin/env python3
"""PyTorch's training speed on a CPU, the yardstick of `make bench`. A process measures one network and configuration.

torch_step.py NET BATCH float32|bf16 default|channels_last eager|compile STEPS THREADS

Prints one tab-separated line: images a second (median, low quartile, high quartile, of the fastest step), peak bytes.
If it does not run, one line says why, and the exit code is 1. Images and labels are random, with 1000 classes; the loss
is cross-entropy, the optimizer SGD with momentum 0.9; the networks are built as in models/ (TensorFlow's "same"
padding). bf16 is autocast; compile is torch.compile of the network and its loss, in its default mode.
"""
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Same(nn.Module):
    """Pads so that `kernel`/`stride` gives ceil(in / stride); the odd row and column go below and right."""

    def __init__(self, kernel, stride, value=0.0):
        super().__init__()
        self.kernel, self.stride, self.value = kernel, stride, value

    def forward(self, x):
        def total(size):
            return max((-(-size // self.stride) - 1) * self.stride + self.kernel - size, 0)
        rows, columns = total(x.shape[2]), total(x.shape[3])
        if rows == 0 and columns == 0:
            return x
        return F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2), value=self.value)


def conv(inputs, filters, kernel, stride=1, relu=True, bias=True, groups=1, same=True):
    # If the padding is symmetric, the convolution itself pads, which is PyTorch's fast path.
    symmetric = same and stride == 1 and kernel % 2 == 1
    layers = [] if symmetric or not same or kernel == 1 else [Same(kernel, stride)]
    layers.append(nn.Conv2d(inputs, filters, kernel, stride, padding=kernel // 2 if symmetric else 0,
                            bias=bias, groups=groups))
    if relu:
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


def pool(kernel=3, stride=2):
    if stride == 1:
        return nn.MaxPool2d(kernel, 1, padding=kernel // 2)
    return nn.MaxPool2d(kernel, stride, ceil_mode=True)  # The same windows as "same" padding: padding never wins.


class Inception(nn.Module):
    def __init__(self, inputs, one, reduce3, three, reduce5, five, project):
        super().__init__()
        self.a = conv(inputs, one, 1)
        self.b = nn.Sequential(conv(inputs, reduce3, 1), conv(reduce3, three, 3))
        self.c = nn.Sequential(conv(inputs, reduce5, 1), conv(reduce5, five, 5))
        self.d = nn.Sequential(pool(3, 1), conv(inputs, project, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)


def googlenet(classes):
    lrn = lambda: nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0)
    return nn.Sequential(
        conv(3, 64, 7, 2), pool(), lrn(), conv(64, 64, 1), conv(64, 192, 3), lrn(), pool(),
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), pool(),
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), pool(),
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, classes))


def vgg16e(classes):
    layers, inputs = [], 3
    for filters, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers.append(conv(inputs, filters, 3))
            inputs = filters
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(inplace=True),
                         nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, classes))


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, one, three):
        super().__init__()
        self.squeeze, self.one, self.three = conv(inputs, squeeze, 1), conv(squeeze, one, 1), conv(squeeze, three, 3)

    def forward(self, x):
        x = self.squeeze(x)
        return torch.cat([self.one(x), self.three(x)], 1)


def squeezenet(classes):
    return nn.Sequential(
        conv(3, 96, 7, 2), pool(), Fire(96, 16, 64, 64), Fire(128, 16, 64, 64), Fire(128, 32, 128, 128), pool(),
        Fire(256, 32, 128, 128), Fire(256, 48, 192, 192), Fire(384, 48, 192, 192), Fire(384, 64, 256, 256), pool(),
        Fire(512, 64, 256, 256), nn.Dropout(0.5), conv(512, classes, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Residual(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv(inputs, filters, 3, stride, relu=False, bias=False), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            conv(filters, filters, 3, relu=False, bias=False), nn.BatchNorm2d(filters))
        self.shortcut = nn.Sequential() if stride == 1 else nn.Sequential(
            conv(inputs, filters, 1, stride, relu=False, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet34(classes):
    layers, inputs = [conv(3, 64, 7, 2, relu=False, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), pool()], 64
    for stage, (filters, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(count):
            layers.append(Residual(inputs, filters, 2 if stage > 0 and block == 0 else 1))
            inputs = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        convolution = lambda inputs, outputs, kernel, stride=1: nn.Conv2d(
            inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        outputs = 4 * filters
        self.body = nn.Sequential(
            convolution(inputs, filters, 1), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            convolution(filters, filters, 3, stride), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            convolution(filters, outputs, 1), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential() if inputs == outputs else nn.Sequential(
            convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet50(classes):
    """Like models/resnet50.net, with the paddings of PyTorch's own networks."""
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                      nn.MaxPool2d(3, 2, padding=1)], 64
    for stage, (filters, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(count):
            layers.append(Bottleneck(inputs, filters, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))


def alexnet(classes):
    lrn = lambda: nn.LocalResponseNorm(5, 5e-4, 0.75, 2.0)
    return nn.Sequential(
        conv(3, 96, 11, 4, same=False), lrn(), nn.MaxPool2d(3, 2), conv(96, 256, 5, groups=2), lrn(), nn.MaxPool2d(3, 2),
        conv(256, 384, 3), conv(384, 384, 3, groups=2), conv(384, 256, 3, groups=2), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Linear(9216, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
        nn.Dropout(0.5), nn.Linear(4096, classes))


NETWORKS = {f.__name__: f for f in (alexnet, googlenet, resnet34, resnet50, squeezenet, vgg16e)}


WARM_UP = 2


def sgd(parameters):
    """Returns SGD with momentum: fused, which is the fastest, if this PyTorch has that on CPUs."""
    parameters = list(parameters)
    try:
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=True)
    except (TypeError, RuntimeError):
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def measure(name, batch, precision, layout, way, steps):
    """Returns the seconds of each step."""
    torch.manual_seed(1)
    net = NETWORKS[name](1000).train()
    size = 227 if name == "alexnet" else 224
    images, labels = torch.rand(batch, 3, size, size), torch.arange(batch) % 1000
    if layout == "channels_last":
        net, images = net.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)

    def loss_of(images, classes):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            return F.cross_entropy(net(images), classes)

    if way == "compile":
        loss_of = torch.compile(loss_of, dynamic=False)
    optimiser = sgd(net.parameters())
    times = []
    for step in range(WARM_UP + steps):
        begin = time.perf_counter()
        optimiser.zero_grad()
        loss_of(images, labels).backward()
        optimiser.step()
        if step >= WARM_UP:
            times.append(time.perf_counter() - begin)
    return times


def main():
    name, batch, precision, layout, way = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]
    steps, threads = int(sys.argv[6]), int(sys.argv[7])
    torch.set_num_threads(threads)
    try:
        times = measure(name, batch, precision, layout, way, steps)
    except Exception as error:  # For example torch.compile without a C++ compiler.
        reason = (str(error).strip().splitlines() or [""])[0]
        sys.exit(f"{type(error).__name__}: {reason}")
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    rates = [f"{batch / seconds:.3f}" for seconds in (statistics.median(times), high, low, min(times))]
    print(*rates, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, sep="\t")


if __name__ == "__main__":
    main()
