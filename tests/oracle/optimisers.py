"""Records ten steps of PyTorch's optimisers for tests/core/optimiser_test.cpp.

    python3 tests/oracle/optimisers.py > tests/core/optimiser_recorded.h

The loss is sum(curvature / 2 * (w - target)^2), so each gradient depends on the weights that the
step before has left.
"""
import torch

START = [1.0, -2.0, 0.5, 0.0]
TARGET = [0.25, 1.0, 0.5, -3.0]
CURVATURE = [1.0, 0.5, 4.0, 0.125]

CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_weight_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.05)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.05, nesterov=True)),
    "adam": (torch.optim.Adam, dict(lr=0.1)),
    "adam_weight_decay": (torch.optim.Adam, dict(lr=0.1, betas=(0.8, 0.99), eps=1e-6,
                                                weight_decay=0.05)),
}


def run(optimiser, options):
    weights = torch.tensor(START, requires_grad=True)
    target, curvature = torch.tensor(TARGET), torch.tensor(CURVATURE)
    stepper = optimiser([weights], **options)
    rows = []
    for _ in range(10):
        stepper.zero_grad()
        weights.grad = curvature * (weights.detach() - target)
        stepper.step()
        rows.append([format(value, ".9g") for value in weights.tolist()])
    return rows


def literal(text):
    return (text if "." in text or "e" in text else text + ".0") + "F"


def values(row):
    return ", ".join(literal(text) for text in row)


print("// Written by tests/oracle/optimisers.py with PyTorch %s: the weights after each of ten steps."
      % torch.__version__.split("+")[0])
print("#pragma once")
print("#include <array>\n\nnamespace duplex::recorded {\n")
print("using Weights = std::array<float, 4>;\nusing Steps = std::array<Weights, 10>;\n")
for name, row in (("start", START), ("target", TARGET), ("curvature", CURVATURE)):
    print("constexpr Weights %s = {%s};" % (name, values(format(v, ".9g") for v in row)))
for name, (optimiser, options) in CASES.items():
    print("\n// %s(%s)" % (optimiser.__name__, ", ".join("%s=%s" % item for item in options.items())))
    print("constexpr Steps %s = {{" % name)
    for row in run(optimiser, options):
        print("    {%s}," % values(row))
    print("}};")
print("\n}  // namespace duplex::recorded")
