#!/usr/bin/env python3
"""Compares generated images of shapes with their captions, for the job text_to_image/shapes.

    redco predict workdir=runs/text-to-image predict.input=captions.jsonl predict.output=images.jsonl
    bench/accuracy/shapes_check.py images.jsonl

A rule-based classifier reads each image. Pixels take the nearest of the four colours or the background, and connected
pixels of a colour are a figure. The two largest figures count. Their size follows from the longer edge of their box, the
shape from the share of the box that they cover, the relation from their centers. A caption is correct if all seven words
(size, colour, shape of both, relation) are those of the image. --ceiling applies the classifier to 500 images that this
script draws as redco does, which gives the highest share that it can find.
"""
import argparse
import base64
import json
import os
import random
import struct
import sys
import zlib

BACKGROUND = (245, 245, 245)
COLOURS = {"red": (210, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 210), "yellow": (225, 195, 40)}


def read_png(data):
    """Rows of (r, g, b) of an 8-bit PNG without interlacing."""
    at, body, header = 8, b"", None
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
        if kind == b"IDAT":
            body += data[at + 8:at + 8 + n]
        at += 12 + n
    width, height, depth, kind = header[:4]
    assert (depth, kind, header[6]) == (8, 2, 0), header
    raw, before, rows = zlib.decompress(body), bytes(3 * width), []
    for y in range(height):
        how, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(len(line)):
            a, b, c = line[i - 3] if i >= 3 else 0, before[i], before[i - 3] if i >= 3 else 0
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[how]) % 256
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), 3)])
        before = line
    return rows


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def figures(rows):
    """(colour, pixels) of each connected region."""
    palette = dict(COLOURS, none=BACKGROUND)
    names = {(x, y): min(palette, key=lambda n: distance(palette[n], p)) for y, r in enumerate(rows) for x, p in enumerate(r)}
    found = []
    while names:
        start, name = names.popitem()
        region, queue = [start], [start]
        while queue:
            x, y = queue.pop()
            for next in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if names.get(next) == name:
                    del names[next]
                    region.append(next)
                    queue.append(next)
        if name != "none":
            found.append((name, region))
    return sorted(found, key=lambda f: -len(f[1]))


def describe(rows):
    """The caption that fits the image; "" without two figures."""
    said = []
    for name, region in figures(rows)[:2]:
        if len(region) < 8:
            return ""
        colour, size = COLOURS[name], distance(COLOURS[name], BACKGROUND)
        xs, ys = [x for x, _ in region], [y for _, y in region]
        # How much of each pixel in and next to the region's box the figure covers.
        cover = {}
        for y in range(max(0, min(ys) - 1), min(len(rows), max(ys) + 2)):
            for x in range(max(0, min(xs) - 1), min(len(rows[0]), max(xs) + 2)):
                share = sum((p - b) * (c - b) for p, c, b in zip(rows[y][x], colour, BACKGROUND)) / size
                cover[x, y] = min(1, max(0, share))
        width = sum(max(v for (x, _), v in cover.items() if x == column) for column in {x for x, _ in cover})
        height = sum(max(v for (_, y), v in cover.items() if y == row) for row in {y for _, y in cover})
        fill = sum(cover.values()) / (width * height)
        said.append((sum(xs) / len(xs), sum(ys) / len(ys), "a {} {} {}".format(
            "large" if max(width, height) > 9.5 else "small", name,
            "square" if fill > 0.9 else "circle" if fill > 0.71 else "triangle")))
    if len(said) < 2:
        return ""
    (x0, y0, _), (x1, y1, _) = said
    horizontal = abs(x0 - x1) > abs(y0 - y1)
    said.sort(key=lambda f: f[0] if horizontal else f[1])
    return f"{said[0][2]} {'left of' if horizontal else 'above'} {said[1][2]}"


def draw(scene):
    """An image with the geometry of src/data/builtin/drawn_images.cpp, and its caption."""
    above, rows, words = scene.random() < 0.5, [[BACKGROUND] * 32 for _ in range(32)], []
    for second in (False, True):
        shape, name, large = scene.choice(["circle", "square", "triangle"]), scene.choice(list(COLOURS)), scene.random() < 0.5
        r = scene.uniform(6, 7) if large else scene.uniform(3, 4)
        along, across = scene.uniform(8, 9) + 15 * second, scene.uniform(9, 23)
        cx, cy = (across, along) if above else (along, across)

        def inside(x, y):
            x, y = (x - cx) / r, (y - cy) / r
            if shape == "circle":
                return x * x + y * y < 1
            return max(abs(x), abs(y)) < 0.9 if shape == "square" else 2 * abs(x) - 1.1 < y < 0.8
        for y in range(32):
            for x in range(32):
                hits = sum(inside(x + (i % 4 + 0.5) / 4, y + (i // 4 + 0.5) / 4) for i in range(16))
                rows[y][x] = tuple((p * (16 - hits) + c * hits + 8) // 16 for p, c in zip(rows[y][x], COLOURS[name]))
        words.append(f"a {'large' if large else 'small'} {name} {shape}")
    return rows, f"{words[0]} {'above' if above else 'left of'} {words[1]}"


def pixels(line, folder):
    image = line["prediction"]
    if image.startswith("data:"):
        return read_png(base64.b64decode(image.split(",")[1]))
    for path in (image, os.path.join(folder, image)):
        if os.path.exists(path):
            with open(path, "rb") as file:
                return read_png(file.read())
    sys.exit(f"no such image: {image}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("predictions", nargs="?", help="the output of redco predict, or a file of eval_outputs")
    parser.add_argument("--ceiling", action="store_true")
    args = parser.parse_args()
    if args.ceiling:
        scene = random.Random(1)
        pairs = [draw(scene) for _ in range(500)]
    else:
        with open(args.predictions, encoding="utf-8") as lines:
            read = [json.loads(line) for line in lines]
        pairs = [(pixels(j, os.path.dirname(args.predictions)), j.get("caption", j.get("prompt"))) for j in read]
    kinds = {"size": (1, -3), "colour": (2, -2), "shape": (3, -1), "relation": (4,)}
    right, whole = dict.fromkeys(kinds, 0), 0
    for rows, caption in pairs:
        found, wanted = describe(rows).split(), caption.split()
        whole += found == wanted
        for kind, places in kinds.items():
            right[kind] += sum(len(found) > 7 and found[p] == wanted[p] for p in places) / len(places)
    n = len(pairs)
    print(f"{n} images, all words correct: {whole / n:.1%}; " + ", ".join(f"{k} {v / n:.1%}" for k, v in right.items()))


if __name__ == "__main__":
    main()
