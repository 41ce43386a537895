"""Data sets of random images: PNG files that Duplex packs, so that no image's own size counts in a run's memory."""
import os
import random
import shutil
import struct
import zlib


def png(path, size, channels, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    stride = size * channels
    rows = b"".join(b"\0" + pixels[y * stride:(y + 1) * stride] for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 0 if channels == 1 else 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 0)) +
                   chunk(b"IEND", b""))


def packed(network, size, least, out, call):
    """Returns the path of a packed file of at least so many images to train on, which it makes if there is none."""
    channels = 1 if network == "lenet" else 3
    classes = 4
    each = -(-least * 5 // (4 * classes)) + 1  # A fifth of each class is for testing.
    path = f"{out}/{channels}x{size}-{each}.pack"
    if os.path.exists(path):
        return path
    folder = f"{out}/images"
    shutil.rmtree(folder, ignore_errors=True)
    draw = random.Random(1)
    for name in range(classes):
        os.makedirs(f"{folder}/{name}")
        for number in range(each):
            png(f"{folder}/{name}/{number:05}.png", size, channels, draw.randbytes(size * size * channels))
    call(["pack", "--datadir", folder, "--output", path, "--input", str(size), *(["--grey"] if channels == 1 else [])])
    shutil.rmtree(folder)
    return path
