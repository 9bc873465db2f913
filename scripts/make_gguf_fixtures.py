#!/usr/bin/env python3
"""GGUF files for tests/gguf and tests/ckpt, by llama.cpp's own converter and quantizers.

    make_gguf_fixtures.py LLAMA_CPP OUTPUT

LLAMA_CPP: the source folder of llama.cpp (the sdist of llama-cpp-python has it in vendor/llama.cpp). Needs torch,
transformers and gguf. The models of tests/fixtures are converted in fp32, without a tokenizer; their weights must then be
equal to the folders' to the bit. blocks.gguf has random blocks of each type, and blocks.safetensors what they decode to.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from safetensors.numpy import save_file

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/fixtures")
MODELS = ["llama-rope-llama3", "qwen3", "gemma2", "gpt2", "mixtral"]
# The converter knows tokenizers by a hash. Those of the tests are unknown to it, so no tokenizer is written.
CONVERT = """
import sys
sys.path[:0] = [sys.argv[1] + "/gguf-py", sys.argv[1]]
import conversion
from conversion.base import ModelBase
import convert_hf_to_gguf as c
def plain(cls):
    for s in cls.__subclasses__():
        plain(s)
        if "set_vocab" in vars(s):
            s.set_vocab = lambda self: None
for name in set(getattr(conversion, "TEXT_MODEL_MAP", {}).values()):
    __import__("conversion." + name)
plain(ModelBase)
sys.argv = ["convert", sys.argv[2], "--outfile", sys.argv[3], "--outtype", "f32"]
c.main()
"""


def blocks(output):
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(os.path.join(output, "blocks.gguf"), "llama")
    expected = {}
    for t in [T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K]:
        elements, size = GGML_QUANT_SIZES[t]
        raw = rng.integers(0, 256, (3, 512 // elements, size), dtype=np.uint8)
        # Scales are half numbers; random ones could be infinite or NaN.
        half = rng.normal(size=(3, 512 // elements, 4)).astype(np.float16).view(np.uint8).reshape(3, -1, 8)
        if t in (T.F32, T.F16, T.BF16):
            values = rng.normal(size=(3, 512)).astype(np.float32)
            raw = gguf.quants.quantize(values, t).view(np.uint8).reshape(3, -1)
        else:
            if t == T.Q6_K:
                raw[:, :, -2:] = half[:, :, :2]
            else:
                n = 4 if t in (T.Q4_1, T.Q5_1, T.Q4_K, T.Q5_K) else 2
                raw[:, :, :n] = half[:, :, :n]
            raw = raw.reshape(3, -1)
        name = t.name.lower()
        expected[name] = gguf.quants.dequantize(raw, t).astype(np.float32).reshape(3, 512)
        writer.add_tensor(name, raw, raw_dtype=t)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, os.path.join(output, "blocks.safetensors"))


def main():
    llama_cpp, output = sys.argv[1:3]
    os.makedirs(output, exist_ok=True)
    blocks(output)
    scratch = tempfile.mkdtemp()
    for model in MODELS:
        folder = os.path.join(scratch, model)
        shutil.copytree(os.path.join(FIXTURES, model), folder)
        path = os.path.join(folder, "config.json")
        config = json.load(open(path))
        config.setdefault("n_ctx", config.get("n_positions"))  # the converter of GPT-2 needs the old key
        json.dump(config, open(path, "w"))
        subprocess.run([sys.executable, "-c", CONVERT, llama_cpp, folder, os.path.join(output, model + ".gguf")], check=True)


main()
