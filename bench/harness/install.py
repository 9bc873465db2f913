"""Makes the peers' environments and the models with random weights."""
import json
import os
import random
import subprocess
import sys

PEERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers")
# llama.cpp for this CPU, with its own matrix products and without its image models.
LLAMA_CPP = "-DGGML_NATIVE=ON -DGGML_LLAMAFILE=ON -DLLAVA_BUILD=OFF"
MODELS = {"llama-134m": ["f32", "bf16", "q8_0", "q4_0"], "llama-58m": ["f32"], "gpt2-124m": []}


def write_texts(folder):
    """Random letters: long texts, and pairs of 255 and 127 bytes."""
    r = random.Random(0)

    def text(n):
        return "".join(r.choice("abcdefgh ") for _ in range(n))

    with open(os.path.join(folder, "text.jsonl"), "w") as out:
        for _ in range(8):
            out.write(json.dumps({"text": text(2000)}) + "\n")
    with open(os.path.join(folder, "pairs.jsonl"), "w") as out:
        for _ in range(64):
            out.write(json.dumps({"source": text(255), "target": text(127)}) + "\n")


def lines(name):
    with open(os.path.join(PEERS, name)) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def install(home):
    def run(*command, **env):
        print("+ " + " ".join(command), file=sys.stderr, flush=True)
        subprocess.run(command, check=True, env=dict(os.environ, **env))

    os.makedirs(os.path.join(home, "inputs"), exist_ok=True)
    for env in ("torch", "jax"):
        python = os.path.join(home, env, "bin", "python")
        if not os.path.exists(python):
            run(sys.executable, "-m", "venv", os.path.join(home, env))
        run(python, "-m", "pip", "install", "-q", "-r", os.path.join(PEERS, f"requirements-{env}.txt"),
            CMAKE_ARGS=LLAMA_CPP)
    # RedCoast pins older versions of its dependencies than it needs.
    python = os.path.join(home, "jax", "bin", "python")
    run(python, "-m", "pip", "install", "-q", "--no-deps", *lines("requirements-redcoast.txt"))
    write_texts(os.path.join(home, "inputs"))
    python = os.path.join(home, "torch", "bin", "python")
    for name, kinds in MODELS.items():
        missing = [k for k in kinds if not os.path.exists(os.path.join(home, "inputs", f"{name}-{k}.gguf"))]
        if missing or not os.path.exists(os.path.join(home, "inputs", name, "model.safetensors")):
            run(python, os.path.join(PEERS, "make_models.py"), os.path.join(home, "inputs"), name, *kinds)
    return 0
