#!/usr/bin/env python3
"""Makes tests/fixtures/torch_bin/: files of torch.save, and expected.safetensors with the same tensors.

  state.bin       every type, strided and shared tensors, a parameter, a scalar, an empty one
  sharded/        two shards with their index
  legacy.bin      the format before PyTorch 1.6
  evil.bin, nested.bin, expanded.bin, sparse.bin, protocol4.bin, number.bin, script.bin, deflated.bin: redco must reject them
Needs torch and safetensors. The files are committed, so the tests do not need them. Usage: scripts/make_torch_bin_fixtures.py
"""
import collections
import json
import os
import pathlib
import zipfile

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "torch_bin"


class Evil:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def state():
    torch.manual_seed(1)
    big = torch.randn(6, 8)
    tied = torch.randn(3, 4)
    s = collections.OrderedDict()
    for name in ("float64", "float32", "float16", "bfloat16"):
        s[f"types.{name}"] = torch.randn(2, 3).to(getattr(torch, name))
    for name in ("int64", "int32", "int16", "int8", "uint8"):
        s[f"types.{name}"] = torch.randint(0 if name == "uint8" else -100, 100, (2, 3)).to(getattr(torch, name))
    s["types.bool"] = torch.tensor([True, False, True])
    s["view.transposed"] = big.t()
    s["view.rows"] = big[2:5]
    s["view.columns"] = big[:, 3:6]
    s["view.steps"] = big[::2, 1::3]
    s["view.permuted"] = torch.randn(2, 3, 4).permute(2, 0, 1)
    s["view.one_wide"] = big[:, 3:4]
    s["tied.a"] = tied
    s["tied.b"] = tied
    s["parameter"] = torch.nn.Parameter(torch.randn(4))
    s["scalar"] = torch.tensor(2.5)
    s["empty"] = torch.zeros(0, 3)
    s["ünïcode"] = torch.ones(1)
    s._metadata = collections.OrderedDict({"": {"version": 1}})
    return s


if __name__ == "__main__":
    (FOLDER / "sharded").mkdir(parents=True, exist_ok=True)
    s = state()
    torch.save(s, FOLDER / "state.bin")
    save_file({k: v.detach().contiguous().clone() for k, v in s.items()}, FOLDER / "expected.safetensors")
    shards = {f"pytorch_model-0000{i + 1}-of-00002.bin": dict(list(s.items())[i::2]) for i in range(2)}
    for name, part in shards.items():
        torch.save(part, FOLDER / "sharded" / name)
    index = {"metadata": {"total_size": 0}, "weight_map": {k: name for name, part in shards.items() for k in part}}
    (FOLDER / "sharded" / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2) + "\n")
    small = torch.arange(4.0)
    torch.save({"a": small}, FOLDER / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({"a": small, "b": Evil()}, FOLDER / "evil.bin")
    torch.save({"model": {"a": small}, "epoch": 3}, FOLDER / "nested.bin")
    torch.save({"a": small[:1].expand(100)}, FOLDER / "expanded.bin")
    torch.save({"a": torch.eye(3).to_sparse()}, FOLDER / "sparse.bin")
    torch.save({"a": small}, FOLDER / "protocol4.bin", pickle_protocol=4)
    torch.save({"a": small, "epoch": 3}, FOLDER / "number.bin")
    torch.jit.script(torch.nn.Linear(2, 2)).save(FOLDER / "script.bin")
    torch.save({"a": small}, FOLDER / "plain.tmp")
    with zipfile.ZipFile(FOLDER / "plain.tmp") as old, zipfile.ZipFile(FOLDER / "deflated.bin", "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry), zipfile.ZIP_DEFLATED)
    (FOLDER / "plain.tmp").unlink()
