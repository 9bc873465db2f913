#!/usr/bin/env python3
"""Makes tests/fixtures/images: images of every kind, with the results of Pillow and transformers.

    python3 scripts/make_image_fixtures.py tests/fixtures/images

Needs Pillow, numpy, torch and transformers. Pixels are hexadecimal, row by row.
"""

import io
import json
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageDraw, ImageOps
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

H, W = 9, 13
rng = np.random.default_rng(7)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows, width, height, depth, color, interlaced, extra=()):
    """rows: a list of passes, each a list of unfiltered byte rows."""
    raw = b"".join(b"\0" + r for p in rows for r in p)
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced)))
    for kind, data in extra:
        out += chunk(kind, data)
    return out + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def adam7(a):
    """Passes of an array (height, width, bytes of a pixel)."""
    steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    passes = []
    for y, x, dy, dx in steps:
        part = a[y::dy, x::dx]
        if part.shape[0] and part.shape[1]:
            passes.append([r.tobytes() for r in part])
    return passes


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def smooth(channels):
    """An image similar to a photograph, with few frequencies, so that files are small."""
    y, x = np.mgrid[0:H, 0:W]
    planes = [127 + 120 * np.sin(0.3 * x * (c + 1) + 0.5 * y + c) for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def files():
    rgb = rng.integers(0, 256, (H, W, 3), dtype=np.uint8)
    rgba = rng.integers(0, 256, (H, W, 4), dtype=np.uint8)
    grey = rng.integers(0, 256, (H, W), dtype=np.uint8)
    wide = rng.integers(0, 65536, (H, W, 3), dtype=np.uint16)
    bits = Image.fromarray(((grey > 100) * 255).astype(np.uint8)).convert("1")
    palette = Image.fromarray(rgb).quantize(11)
    clear = palette.copy()
    clear.info["transparency"] = 3
    yield "rgb.png", saved(Image.fromarray(rgb), "PNG")
    yield "rgba.png", saved(Image.fromarray(rgba), "PNG")
    yield "grey.png", saved(Image.fromarray(grey), "PNG")
    yield "grey-alpha.png", saved(Image.fromarray(rgba[..., :2], "LA"), "PNG")
    yield "one-bit.png", saved(bits, "PNG")
    yield "palette-4-bits.png", saved(palette, "PNG", bits=4)
    yield "palette-8-bits.png", saved(palette, "PNG", bits=8)
    yield "palette-clear.png", saved(clear, "PNG", transparency=3)
    yield "16-bits.png", png([[r.astype(">u2").tobytes() for r in wide]], W, H, 16, 2, False)
    yield "interlaced.png", png(adam7(rgb), W, H, 8, 2, True)
    yield "interlaced-alpha.png", png(adam7(rgba), W, H, 8, 6, True)
    yield "gamma.png", png([[r.tobytes() for r in rgb]], W, H, 8, 2, False, [(b"gAMA", struct.pack(">I", 100000))])
    photo = Image.fromarray(smooth(3))
    yield "rgb.jpg", saved(photo, "JPEG", quality=90)
    yield "full-colour.jpg", saved(photo, "JPEG", quality=95, subsampling=0)
    yield "progressive.jpg", saved(photo, "JPEG", quality=80, progressive=True)
    yield "grey.jpg", saved(photo.convert("L"), "JPEG", quality=85)
    yield "cmyk.jpg", saved(Image.fromarray(smooth(4), "CMYK"), "JPEG", quality=90)
    yield from turned_and_gif()
    yield from webp()


def turned_and_gif():
    """JPEG files with each Exif orientation, and GIF files."""
    photo, noise = Image.fromarray(smooth(3)), np.random.default_rng(8)
    for n in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = n
        yield f"turned-{n}.jpg", saved(photo, "JPEG", quality=70, exif=exif)
    frames = [Image.fromarray(noise.integers(0, 256, (H, W, 3), dtype=np.uint8)).quantize(c) for c in (60, 20)]
    yield "frames.gif", saved(frames[0], "GIF", save_all=True, append_images=frames[1:], interlace=0)
    yield "interlaced.gif", saved(frames[1], "GIF", interlace=1, transparency=3)
    large = Image.fromarray(noise.integers(0, 256, (90, 80), dtype=np.uint8)).convert("RGB").quantize(256)
    yield "codes.gif", saved(large, "GIF")  # more codes than the table has


def webp():
    """WebP files of each kind, and orientations in PNG and WebP files."""
    photo, noise = Image.fromarray(smooth(3)), np.random.default_rng(9)
    rgba = Image.fromarray(noise.integers(0, 256, (H, W, 4), dtype=np.uint8))
    yield "rgb.webp", saved(photo, "WEBP", quality=80)
    yield "exact.webp", saved(photo, "WEBP", lossless=True)
    yield "rgba.webp", saved(rgba, "WEBP", lossless=True, exact=True)
    yield "alpha.webp", saved(rgba, "WEBP", quality=70)
    # The first frame is smaller than the canvas.
    frames = [Image.new("RGBA", (W, H)), photo.convert("RGBA")]
    frames[0].paste(photo.crop((0, 0, 5, 4)), (4, 2))
    yield "frames.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True, minimize_size=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "turned.webp", saved(photo, "WEBP", lossless=True, exif=exif)
    yield "turned.png", saved(photo, "PNG", exif=exif)
    rows = [r.tobytes() for r in smooth(3)]
    head, end = png([rows], W, H, 8, 2, False)[:-12], chunk(b"IEND", b"")
    yield "turned-late.png", head + chunk(b"eXIf", exif.tobytes()[6:]) + end


def drawn(size, width):
    """Strokes like those of Omniglot."""
    image = Image.new("L", (size, size), 255)
    draw = ImageDraw.Draw(image)
    draw.line([(0.1 * size, 0.2 * size), (0.8 * size, 0.3 * size), (0.5 * size, 0.9 * size)], fill=0, width=width)
    draw.arc([0.2 * size, 0.3 * size, 0.7 * size, 0.8 * size], 20, 300, fill=0, width=width)
    return image


def pixels(image):
    a = np.asarray(image)
    return {"height": a.shape[0], "width": a.shape[1], "channels": 1 if a.ndim == 2 else a.shape[2],
            "pixels": a.tobytes().hex()}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    out = {"decoded": {}, "grey": {}, "resized": [], "processed": []}
    for name, data in files():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        grey = image.mode in ("1", "L", "LA") and not name.endswith(".gif")
        out["decoded"][name] = pixels(image.convert("L" if grey else "RGB"))
        out["grey"][name] = pixels(image.convert("RGB").convert("L"))["pixels"]

    strokes = drawn(53, 2)
    with open(os.path.join(folder, "strokes.png"), "wb") as f:
        f.write(saved(strokes.point(lambda v: 255 * (v > 127)).convert("1"), "PNG"))
    for name, sizes in {"rgb.png": [(5, 4), (20, 30), (9, 6), (3, 13), (1, 1)], "strokes.png": [(28, 28), (14, 20)]}.items():
        image = Image.open(os.path.join(folder, name)).convert("RGB" if name == "rgb.png" else "L")
        for height, width in sizes:
            for how in range(6) if name == "rgb.png" else [2]:
                r = image.resize((width, height), Image.Resampling(how))
                out["resized"].append({"name": name, "resample": how, **pixels(r)})

    configs = [
        {"do_resize": True, "size": {"height": 6, "width": 8}, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
        {"do_resize": True, "size": {"height": 6, "width": 8}, "resample": 3, "do_rescale": True,
         "rescale_factor": 1 / 127.5, "do_normalize": True, "image_mean": [0.485, 0.456, 0.406],
         "image_std": [0.229, 0.224, 0.225]},
        {"do_resize": True, "size": {"shortest_edge": 10}, "resample": 2, "do_center_crop": True,
         "crop_size": {"height": 6, "width": 8}, "do_normalize": False},
        {"do_resize": False, "do_center_crop": True, "crop_size": {"height": 12, "width": 16}},
        {"do_resize": True, "size": 8, "do_rescale": False, "do_normalize": False},
    ]
    for config in configs:
        processor = ViTImageProcessorPil(**config)
        for name in ["rgb.png", "grey.png", "rgb.jpg"]:
            image = Image.open(os.path.join(folder, name)).convert("RGB")
            values = np.asarray(processor(images=image, return_tensors="np")["pixel_values"][0], dtype=np.float64)
            out["processed"].append({"name": name, "config": config, "shape": list(values.shape),
                                     "values": [float(f"{v:.9g}") for v in values.astype(np.float32).ravel()]})
    with open(os.path.join(folder, "expected.json"), "w") as f:
        f.write('{\n')
        parts = []
        for key, value in out.items():
            items = value.items() if isinstance(value, dict) else [(None, v) for v in value]
            lines = [(json.dumps(k) + ": " if k else "") + json.dumps(v) for k, v in items]
            brackets = "{}" if isinstance(value, dict) else "[]"
            parts.append(json.dumps(key) + ": " + brackets[0] + "\n" + ",\n".join(lines) + "\n" + brackets[1])
        f.write(",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
