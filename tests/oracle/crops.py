"""Records the crops that torchvision makes, for tests/datasets/framing_test.cpp: the boxes of
RandomResizedCrop where it gets the draws that Duplex makes of a seed and a sample's number, the windows
of Resize with CenterCrop, and source.png cropped and scaled in both ways.

    python3 tests/oracle/crops.py | clang-format > tests/datasets/crops_recorded.h
"""
import pathlib

import torch
import torchvision
from PIL import Image
from torchvision.transforms import CenterCrop, InterpolationMode, RandomResizedCrop, Resize
from torchvision.transforms import functional

import philox

IMAGES = pathlib.Path(__file__).parents[1] / "datasets" / "images"
SEED = 11
RANGES = {"usual": (0.08, 1.0), "large": (0.9, 1.0)}
SIZES = [(500, 375), (375, 500), (28, 28), (61, 47), (1000, 90), (7, 300), (1, 1)]
CENTRES = [(500, 375, 256, 224), (375, 500, 256, 224), (301, 300, 255, 224), (28, 28, 32, 28), (61, 47, 24, 24)]
SAMPLES = 12


class Draws:
    """Stands for torch's generator: four draws an attempt, ten attempts a sample."""

    def __init__(self, sample):
        self.stream = philox.RandomStream(SEED, philox.stream_of("crop"))
        self.attempt = sample * 10 - 1
        self.integers = 0

    def uniform(self, low, high, second):
        if not second:
            self.attempt += 1
            self.integers = 0
        draw = self.attempt * 4 + (1 if second else 0)
        return float(low) + (float(high) - float(low)) * float(self.stream.uniform(1, draw)[0])

    def below(self, bound):
        draw = self.attempt * 4 + 2 + self.integers
        self.integers += 1
        return int(self.stream.below(1, bound, draw)[0])


class Empty:
    """Stands for the tensor that uniform_ fills: of areas and of ratios in turn."""

    def __init__(self, draws, second):
        self.draws, self.second = draws, second

    def uniform_(self, low, high):
        return torch.tensor([self.draws.uniform(low, high, self.second)], dtype=torch.float64)


def box(width, height, scale, sample):
    draws, turn, kept = Draws(sample), [False], (torch.empty, torch.randint)

    def empty(_):
        turn[0] = not turn[0]
        return Empty(draws, not turn[0])

    torch.empty = empty
    torch.randint = lambda low, high, size: torch.tensor([draws.below(high)])
    try:
        return RandomResizedCrop.get_params(Image.new("L", (width, height)), scale, (3 / 4, 4 / 3))
    finally:
        torch.empty, torch.randint = kept


def window(width, height, side, size):
    """The size that an image is scaled to, and the corner of its middle."""
    scaled = Resize(side)(Image.new("L", (width, height)))
    corner = []
    kept = functional.crop
    functional.crop = lambda image, top, left, h, w: corner.extend((top, left)) or image
    try:
        CenterCrop(size)(scaled)
    finally:
        functional.crop = kept
    return scaled.height, scaled.width, *corner


def draw(name, tensor):
    functional.to_pil_image(tensor).save(IMAGES / (name + ".ppm"))


print("// Written by tests/oracle/crops.py with torchvision %s." % torchvision.__version__.split("+")[0])
print("#pragma once\n#include <vector>\n\nnamespace duplex::recorded {\n")
print("constexpr unsigned crop_seed = %d;\n" % SEED)
print("/// An image's size, and the boxes of the first samples: top, left, height, width.")
print("struct Crops {\n  int width, height;\n  std::vector<std::vector<int>> boxes;\n};\n")
for name, scale in RANGES.items():
    print("inline const std::vector<Crops> %s_crops = {  // %g to %g" % (name, *scale))
    for width, height in SIZES:
        boxes = [box(width, height, scale, sample) for sample in range(SAMPLES)]
        print("    {%d, %d, {%s}}," % (width, height, ", ".join("{%d, %d, %d, %d}" % each for each in boxes)))
    print("};\n")
print("/// An image's width and height, the side, the crop; the scaled height and width, top, left.")
print("inline const std::vector<std::vector<int>> centres = {")
for case in CENTRES:
    print("    {%s}," % ", ".join(map(str, case + window(*case))))
print("};\n\n}  // namespace duplex::recorded")

source = functional.pil_to_tensor(Image.open(IMAGES / "source.png").convert("RGB"))
draw("cropped-24x24", functional.resized_crop(source, 9, 20, 33, 29, [24, 24],
                                              InterpolationMode.BILINEAR, antialias=True))
draw("cropped-20x36", functional.resized_crop(source, 3, 40, 17, 21, [20, 36],
                                              InterpolationMode.BILINEAR, antialias=True))
draw("central-24x24", CenterCrop(24)(Resize(32, antialias=True)(source)))
