#!/usr/bin/env python3
"""Reads a training's event files with TensorBoard's own reader and compares them with metrics.jsonl.

    pip install tensorboard
    scripts/check_tensorboard.py WORKDIR

Every number of metrics.jsonl must be in TensorBoard once, with the same name and step. Texts must equal those of the
text plugin. This is a manual check; the tests decode the records themselves.
"""
import json
import math
import os
import sys

from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.plugins.text import text_plugin
from tensorboard.util import tensor_util


def main(workdir):
    wanted = {}
    with open(os.path.join(workdir, "metrics.jsonl"), encoding="utf-8") as f:
        for line in f:
            values = json.loads(line)
            step = values.pop("step")
            values.pop("time", None)
            for name, value in values.items():
                assert (name, step) not in wanted or name == "epoch", f"{name} is twice at step {step}"
                wanted[name, step] = value

    # The accumulator of TensorBoard's server. It drops records that a later process repeats.
    reader = plugin_event_accumulator.EventAccumulator(
        os.path.join(workdir, "tensorboard"), tensor_size_guidance={"scalars": 0, "text": 0}
    ).Reload()
    scalars, tables = (sorted(reader.PluginTagToContent(kind)) for kind in ("scalars", "text"))
    assert sorted(scalars + tables) == sorted(reader.Tags()["tensors"]), reader.Tags()
    found = {}
    for name in scalars:
        for event in reader.Tensors(name):
            assert (name, event.step) not in found or name == "epoch", f"TensorBoard: {name} is twice at step {event.step}"
            found[name, event.step] = tensor_util.make_ndarray(event.tensor_proto).item()
    assert found.keys() == wanted.keys(), f"only on one side: {sorted(found.keys() ^ wanted.keys())[:10]}"
    for key, value in wanted.items():
        if value is None:
            assert not math.isfinite(found[key]), f"{key}: {found[key]} for null"
        else:
            # Event files hold fp32.
            assert math.isclose(found[key], value, rel_tol=1e-6, abs_tol=1e-37), f"{key}: {found[key]} for {value}"

    texts = 0
    for name in tables:
        for event in reader.Tensors(name):
            array = tensor_util.make_ndarray(event.tensor_proto)
            assert array.ndim == 2, f"{name}: a tensor of shape {array.shape}"
            html = text_plugin.text_array_to_html(array, enable_markdown=True)
            assert "<table>" in html and "<code>" in html, html[:200]
            path = os.path.join(workdir, "eval_outputs", f"step-{event.step:08d}.jsonl")
            with open(path, encoding="utf-8") as f:
                rows = [json.loads(line) for line in f]
            head = [cell.decode() for cell in array[0]]
            for row, cells in zip(rows, array[1:]):
                for column, cell in zip(head, cells):
                    text = "\n".join(line[4:] for line in cell.decode().split("\n"))
                    assert text == row[column].replace("\r", ""), f"{column} at step {event.step}: {text!r}"
            texts += 1
    print(f"{workdir}: {len(found)} numbers under {len(scalars)} names, {texts} tables of texts: all as in its files")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
