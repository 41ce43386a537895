"""Defines the networks in PyTorch, written from the thesis's tables (2.1-2.5), not from the C++ code.

Parameters bear the names that models/ gives them, so that records can be compared by name. What the
thesis leaves open follows TensorFlow: "same" padding puts an odd row at the bottom and an odd column
at the right, and max pooling never picks padding.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from philox import RandomStream, stream_of


class Net:
    """Holds the parameters by name, which are made when a layer first runs, and runs the layers."""

    def __init__(self, seed, dtype, batch_norm=None):
        self.seed = seed
        self.dtype = dtype
        self.batch_norm_start = batch_norm or {"weight": 1.0, "bias": 0.0}
        self.parameters = {}
        self.statistics = {}
        self.initial = {}  # Parameters as drawn, in float32.
        self.training = True
        self.first_sample = 0

    # ---- Parameters.

    def _draw(self, name, shape, fan_in, relu):
        """Draws weights by He et al. 2015, uniform, as layers/layer.h says."""
        bound = np.float32(math.sqrt(3.0 * ((2.0 if relu else 1.0) / fan_in)))
        uniform = RandomStream(self.seed, stream_of(name)).uniform(math.prod(shape))
        return ((np.float32(2) * uniform - np.float32(1)) * bound).reshape(shape)

    def _batch_norm_bias(self, channels):
        """Returns a bias with signs by channel, not by layer, so that residual blocks bring no channel back to 0."""
        signs = RandomStream(self.seed, stream_of("signs")).below(channels, 2).astype(np.float32) * 2 - 1
        return np.float32(self.batch_norm_start["bias"]) * signs

    def _parameter(self, name, make):
        if name not in self.parameters:
            self.initial[name] = make().astype(np.float32)
            value = torch.from_numpy(self.initial[name]).to(self.dtype).clone()
            self.parameters[name] = value.requires_grad_(True)
        return self.parameters[name]

    def _statistic(self, name, value, count):
        if name not in self.statistics:
            self.statistics[name] = torch.full((count,), value, dtype=self.dtype)
        return self.statistics[name]

    def _weights(self, name, shape, relu, bias):
        fan_in = math.prod(shape[1:])
        weight = self._parameter(name + ".weight", lambda: self._draw(name + ".weight", shape, fan_in, relu))
        if not bias:
            return weight, None
        return weight, self._parameter(name + ".bias", lambda: np.zeros(shape[0]))

    # ---- Layers. A window is (kernel, stride); "same" gives maps of ceil(in / stride).

    @staticmethod
    def _same(x, kernel, stride, value=0.0):
        def around(size):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            return total // 2, total - total // 2

        return F.pad(x, (*around(x.shape[3]), *around(x.shape[2])), value=value)

    def conv(self, name, x, filters, kernel, stride=1, padding="same", groups=1, bias=True, relu=True):
        shape = (filters, x.shape[1] // groups, kernel, kernel)
        weight, offset = self._weights(name, shape, relu, bias)
        if padding == "same":
            x = self._same(x, kernel, stride)
        y = F.conv2d(x, weight, offset, stride=stride, groups=groups)
        return F.relu(y) if relu else y

    def linear(self, name, x, outputs, relu):
        x = x.flatten(1)
        weight, bias = self._weights(name, (outputs, x.shape[1]), relu, True)
        y = F.linear(x, weight, bias)
        return F.relu(y) if relu else y

    def max_pool(self, x, kernel, stride, padding="same"):
        if padding == "same":
            x = self._same(x, kernel, stride, -math.inf)
        return F.max_pool2d(x, kernel, stride)

    def batch_norm(self, name, x, relu):
        channels = x.shape[1]
        y = F.batch_norm(
            x,
            self._statistic(name + ".running_mean", 0.0, channels),
            self._statistic(name + ".running_var", 1.0, channels),
            self._parameter(name + ".weight", lambda: np.full(channels, self.batch_norm_start["weight"])),
            self._parameter(name + ".bias", lambda: self._batch_norm_bias(channels)),
            training=self.training,
            momentum=0.1,
            eps=1e-5,
        )
        return F.relu(y) if relu else y

    def dropout(self, name, x, rate):
        if not self.training:
            return x
        sample = x[0].numel()
        stream = RandomStream(self.seed, stream_of(name))
        uniform = stream.uniform(x.numel(), self.first_sample * sample).reshape(x.shape)
        return x * torch.from_numpy(uniform >= np.float32(rate)) / (1.0 - rate)


def global_average(x):
    return x.mean(dim=(2, 3))


def vgg16e(net, x, options):
    """Computes Table 2.1. Returns (logits, [logits of the auxiliary classifiers])."""
    for stage, filters, count in ((1, 64, 2), (2, 128, 2), (3, 256, 4), (4, 512, 4), (5, 512, 4)):
        for i in range(count):
            x = net.conv("conv%d_%d" % (stage, i + 1), x, filters, 3)
        x = net.max_pool(x, 2, 2, "valid")
    x = net.linear("fc6", x, 4096, True)
    x = net.linear("fc7", x, 4096, True)
    return net.linear("fc8", x, options["classes"], False), []


def googlenet(net, x, options):
    """Computes Tables 2.2 and 2.3."""

    def inception(name, x, one, reduce_three, three, reduce_five, five, project):
        name = "inception_" + name
        a = net.conv(name + "/1x1", x, one, 1)
        b = net.conv(name + "/3x3", net.conv(name + "/3x3_reduce", x, reduce_three, 1), three, 3)
        c = net.conv(name + "/5x5", net.conv(name + "/5x5_reduce", x, reduce_five, 1), five, 5)
        d = net.conv(name + "/pool_proj", net.max_pool(x, 3, 1), project, 1)
        return torch.cat((a, b, c, d), 1)

    def auxiliary(name, x):
        x = net.conv(name + "/conv", F.avg_pool2d(x, 5, 3), 128, 1)
        x = net.dropout(name + "/dropout", net.linear(name + "/fc", x, 1024, True), 0.7)
        return net.linear(name + "/classifier", x, options["classes"], False)

    def lrn(x):
        return F.local_response_norm(x, 5, alpha=1e-4, beta=0.75, k=1.0)

    helpers = []
    with_helpers = options["auxiliary"] and net.training
    x = net.max_pool(net.conv("conv1", x, 64, 7, 2), 3, 2)
    x = net.conv("conv2", net.conv("conv2_reduce", lrn(x), 64, 1), 192, 3)
    x = net.max_pool(lrn(x), 3, 2)
    x = inception("3a", x, 64, 96, 128, 16, 32, 32)
    x = inception("3b", x, 128, 128, 192, 32, 96, 64)
    x = net.max_pool(x, 3, 2)
    x = inception("4a", x, 192, 96, 208, 16, 48, 64)
    if with_helpers:
        helpers.append(auxiliary("auxiliary1", x))
    x = inception("4b", x, 160, 112, 224, 24, 64, 64)
    x = inception("4c", x, 128, 128, 256, 24, 64, 64)
    x = inception("4d", x, 112, 144, 288, 32, 64, 64)
    if with_helpers:
        helpers.append(auxiliary("auxiliary2", x))
    x = inception("4e", x, 256, 160, 320, 32, 128, 128)
    x = net.max_pool(x, 3, 2)
    x = inception("5a", x, 256, 160, 320, 32, 128, 128)
    x = inception("5b", x, 384, 192, 384, 48, 128, 128)
    x = net.dropout("dropout", global_average(x), 0.4)
    return net.linear("classifier", x, options["classes"], False), helpers


def squeezenet(net, x, options):
    """Computes Table 2.4."""

    def fire(number, x, squeeze, one, three):
        name = "fire%d/" % number
        x = net.conv(name + "squeeze", x, squeeze, 1)
        return torch.cat((net.conv(name + "expand1x1", x, one, 1), net.conv(name + "expand3x3", x, three, 3)), 1)

    x = net.max_pool(net.conv("conv1", x, 96, 7, 2), 3, 2)
    x = fire(1, x, 16, 64, 64)
    x = fire(2, x, 16, 64, 64)
    x = fire(3, x, 32, 128, 128)
    x = net.max_pool(x, 3, 2)
    x = fire(4, x, 32, 128, 128)
    x = fire(5, x, 48, 192, 192)
    x = fire(6, x, 48, 192, 192)
    x = fire(7, x, 64, 256, 256)
    x = net.max_pool(x, 3, 2)
    x = net.dropout("dropout", fire(8, x, 64, 256, 256), 0.5)
    return global_average(net.conv("conv2", x, options["classes"], 1)), []


def resnet34(net, x, options):
    """Computes Table 2.5, with shortcuts by Figure 2.11 or 2.12. Convolutions have no bias: batch norm brings one."""

    def plain(name, x, filters, kernel, stride=1):
        return net.conv(name, x, filters, kernel, stride, bias=False, relu=False)

    def shortcut(name, x, filters):
        if not options["zero_padded_shortcuts"]:
            return net.batch_norm(name + "/shortcut_bn", plain(name + "/shortcut_conv", x, filters, 1, 2), False)
        x = x[:, :, ::2, ::2]
        return torch.cat((x, x.new_zeros(x.shape[0], filters - x.shape[1], *x.shape[2:])), 1)

    x = net.batch_norm("bn1", plain("conv1", x, 64, 7, 2), True)
    x = net.max_pool(x, 3, 2)
    for stage, filters, count in ((1, 64, 3), (2, 128, 4), (3, 256, 6), (4, 512, 3)):
        for i in range(count):
            name = "residual%d_%d" % (stage, i + 1)
            halves = stage > 1 and i == 0
            y = plain(name + "/conv1", x, filters, 3, 2 if halves else 1)
            y = plain(name + "/conv2", net.batch_norm(name + "/bn1", y, True), filters, 3)
            y = net.batch_norm(name + "/bn2", y, False)
            x = F.relu(y + (shortcut(name, x, filters) if halves else x))
    return net.linear("classifier", global_average(x), options["classes"], False), []


def alexnet(net, x, options):
    """Computes the network of Krizhevsky et al. 2012 for two GPUs. The paper's alpha, 1e-4, is a factor of the sum,
    PyTorch's of the mean."""

    def lrn(x):
        return F.local_response_norm(x, 5, alpha=5e-4, beta=0.75, k=2.0)

    x = net.conv("conv1", x, 96, 11, 4, "valid")
    x = net.max_pool(lrn(x), 3, 2, "valid")
    x = net.conv("conv2", x, 256, 5, groups=2)
    x = net.max_pool(lrn(x), 3, 2, "valid")
    x = net.conv("conv3", x, 384, 3)
    x = net.conv("conv4", x, 384, 3, groups=2)
    x = net.conv("conv5", x, 256, 3, groups=2)
    x = net.max_pool(x, 3, 2, "valid")
    x = net.dropout("dropout6", net.linear("fc6", x, 4096, True), 0.5)
    x = net.dropout("dropout7", net.linear("fc7", x, 4096, True), 0.5)
    return net.linear("fc8", x, options["classes"], False), []


def lenet(net, x, options):
    """Computes the network of LeCun et al. 1998, with the widths of Caffe's example."""
    x = net.max_pool(net.conv("conv1", x, 20, 5, padding="valid"), 2, 2, "valid")
    x = net.max_pool(net.conv("conv2", x, 50, 5, padding="valid"), 2, 2, "valid")
    x = net.linear("fc1", x, 500, True)
    return net.linear("fc2", x, options["classes"], False), []


ALL = {f.__name__: f for f in (vgg16e, googlenet, squeezenet, resnet34, alexnet, lenet)}
