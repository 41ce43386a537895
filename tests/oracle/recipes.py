"""Records what PyTorch makes of the parts of published recipes: learning rates along a cosine, smoothed
labels and clipped gradients, for tests/core/recipes_test.cpp and tests/core/operations/loss_test.cpp.

    python3 tests/oracle/recipes.py | clang-format > tests/core/recipes_recorded.h
"""
import torch

LOGITS = [[0.5, -1.0, 2.0, 0.0, 3.5], [4.0, 1.0, -2.0, 0.25, -0.75], [-3.0, -3.0, 1.5, 0.5, 0.0]]
LABELS = [4, 1, 2]
GRADIENTS = [[0.5, -2.0, 0.125], [3.0, -0.25, 1.0, -1.5]]
WEIGHTS = [[1.0, -1.0, 0.5], [0.25, 2.0, -0.5, 0.0]]

UPDATES = [[1.0, -2.0, 0.5], [2.0, -2.0, 0.25], [0.0, 4.0, 0.125], [-1.0, 0.0, 3.0]]


def rates(base, least, warmup, steps):
    """The rate of each step: a linear warm-up, then CosineAnnealingLR over the steps behind it."""
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
    lr = torch.optim.lr_scheduler
    parts = [lr.LinearLR(optimiser, start_factor=1 / warmup, total_iters=warmup - 1)] if warmup else []
    parts.append(lr.CosineAnnealingLR(optimiser, T_max=steps - warmup, eta_min=least))
    schedule = lr.SequentialLR(optimiser, parts, [warmup] if warmup else [])
    found = []
    for _ in range(steps):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return found


def smoothed(amount):
    logits = torch.tensor(LOGITS, requires_grad=True)
    loss = torch.nn.CrossEntropyLoss(label_smoothing=amount)(logits, torch.tensor(LABELS))
    loss.backward()
    return loss.item(), logits.grad.flatten().tolist()


def clipped(clip, optimiser, options):
    """The weights after two steps with these gradients, clipped."""
    weights = [torch.tensor(each, requires_grad=True) for each in WEIGHTS]
    stepper = optimiser(weights, lr=0.1, **options)
    for _ in range(2):
        for each, gradient in zip(weights, GRADIENTS):
            each.grad = torch.tensor(gradient)
        clip(weights)
        stepper.step()
    return [value for each in weights for value in each.tolist()]


def averages(decay):
    """The average after each of four updates of the weights, by AveragedModel."""
    model = torch.nn.Linear(3, 1, bias=False)
    swa = torch.optim.swa_utils
    average = swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(decay))
    found = []
    for values in UPDATES:
        with torch.no_grad():
            model.weight.copy_(torch.tensor([values]))
        average.update_parameters(model)
        found.extend(average.module.weight.flatten().tolist())
    return found


def literal(value):
    text = format(value, ".9g")
    return (text if "." in text or "e" in text else text + ".0") + "F"


def array(name, values):
    print("constexpr std::array<float, %d> %s = {%s};"
          % (len(values), name, ", ".join(literal(value) for value in values)))


def flat(rows):
    return [value for row in rows for value in row]


def clip_value(weights):
    torch.nn.utils.clip_grad_value_(weights, 0.75)


def clip_norm(weights):
    torch.nn.utils.clip_grad_norm_(weights, 1.5)


def loose_norm(weights):
    torch.nn.utils.clip_grad_norm_(weights, 100.0)


SGD, MOMENTUM = (torch.optim.SGD, {}), (torch.optim.SGD, dict(momentum=0.9, weight_decay=0.05))
ADAM = (torch.optim.Adam, dict(weight_decay=0.05))

print("// Written by tests/oracle/recipes.py with PyTorch %s." % torch.__version__.split("+")[0])
print("#pragma once\n#include <array>\n#include <cstdint>\n\nnamespace duplex::recorded {\n")
print("// Base, minimum, warm-up and steps: 0.4, 0, 0, 8 and 0.4, 0.02, 3, 11.")
array("cosine", rates(0.4, 0.0, 0, 8))
array("warm_cosine", rates(0.4, 0.02, 3, 11))
print("\n// Three samples of five classes.")
array("logits", flat(LOGITS))
print("constexpr std::array<std::int32_t, 3> labels = {%s};" % ", ".join(map(str, LABELS)))
for name, amount in (("tenth", 0.1), ("all", 1.0)):
    loss, gradient = smoothed(amount)
    print("constexpr double smoothed_%s_loss = %.9g;" % (name, loss))
    array("smoothed_%s_gradient" % name, gradient)
print("\n// Two parameters of three and four elements, after two steps at a rate of 0.1.")
array("clip_weights", flat(WEIGHTS))
array("clip_gradients", flat(GRADIENTS))
for name, (optimiser, options) in (("sgd", SGD), ("momentum", MOMENTUM), ("adam", ADAM)):
    array("value_%s" % name, clipped(clip_value, optimiser, options))
    array("norm_%s" % name, clipped(clip_norm, optimiser, options))
array("loose_norm_sgd", clipped(loose_norm, *SGD))
print("\n// Three weights after each of four updates, and their averages after each.")
array("updates", flat(UPDATES))
array("average_slow", averages(0.9))
array("average_fast", averages(0.25))
print("\n}  // namespace duplex::recorded")
