"""Writes tests/datasets/images: small images of every kind that data sets hold. A .ppm beside each
holds the pixels that another decoder than ours finds in it: libjpeg or libpng by way of Pillow.
`scaled-*.ppm` hold source.png as scaled by Pillow's bilinear filter, which PyTorch's Resize uses.
Usage: python3 tests/datasets/images.py   (needs numpy and Pillow)"""

import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent / "images"
WIDTH, HEIGHT = 19, 13


def scene(width, height):
    """Draws smooth colours, so that formats that lose detail lose little, with one hard edge."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [
        127 + 100 * np.sin(2 * np.pi * x / width),
        127 + 100 * np.cos(3 * y / height),
        255 * x * y / (width * height),
    ]
    rgb = np.stack(planes, axis=2)
    rgb[height // 2 :, : width // 3] = (200, 60, 30)
    return np.clip(rgb.round(), 0, 255).astype(np.uint8)


def png(path, width, height, depth, colour, interlace, raw):
    """Writes a PNG of scanlines that already bear their filter bytes."""

    def chunk(kind, content):
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )


def expect(name, rgb):
    Image.fromarray(rgb).save(HERE / (name + ".ppm"))


def main():
    HERE.mkdir(exist_ok=True)
    rgb = scene(WIDTH, HEIGHT)
    image = Image.fromarray(rgb)
    alpha = Image.fromarray((np.arange(WIDTH * HEIGHT).reshape(HEIGHT, WIDTH) % 256).astype(np.uint8))

    jpegs = {
        "baseline.jpg": (image, dict(quality=92, subsampling=0)),
        "halved-chroma.jpg": (image, dict(quality=92, subsampling=2)),
        "progressive.jpg": (image, dict(quality=92, progressive=True)),
        "grey.jpg": (image.convert("L"), dict(quality=92)),
        "cmyk.jpg": (image.convert("CMYK"), dict(quality=92)),
    }
    for name, (image, options) in jpegs.items():
        image.save(HERE / name, **options)
        expect(name, np.asarray(Image.open(HERE / name).convert("RGB")))

    Image.fromarray(scene(150, 110)).save(HERE / "large.jpg", quality=80)

    pngs = {
        "colour.png": image,
        "grey.png": image.convert("L"),
        "grey-alpha.png": Image.merge("LA", (image.convert("L"), alpha)),
        "alpha.png": Image.merge("RGBA", (*image.split(), alpha)),
        "palette.png": image.quantize(16),
        "bits.png": image.convert("1"),
    }
    for name, image in pngs.items():
        image.save(HERE / name, optimize=True)
        expect(name, np.asarray(Image.open(HERE / name).convert("RGB")))

    deep = np.zeros((HEIGHT, WIDTH, 3), ">u2")
    deep[:] = rgb.astype(np.uint16) * 256 + 77
    lines = b"".join(b"\0" + line.tobytes() for line in deep)
    png(HERE / "sixteen-bits.png", WIDTH, HEIGHT, 16, 2, 0, lines)
    expect("sixteen-bits.png", rgb)

    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    lines = b""
    for x, y, step_x, step_y in passes:
        part = rgb[y::step_y, x::step_x]
        if part.size:
            lines += b"".join(b"\0" + line.tobytes() for line in part)
    png(HERE / "interlaced.png", WIDTH, HEIGHT, 8, 2, 1, lines)
    expect("interlaced.png", np.asarray(Image.open(HERE / "interlaced.png").convert("RGB")))

    source = Image.fromarray(scene(61, 47))
    source.save(HERE / "source.png", optimize=True)
    for width, height in [(24, 24), (61, 20), (90, 64), (7, 47)]:
        source.resize((width, height), Image.BILINEAR).save(HERE / f"scaled-{width}x{height}.ppm")


if __name__ == "__main__":
    main()
