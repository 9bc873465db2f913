"""Jobs of the program, for tests: their data, output and metrics."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import unittest

REDCO = os.environ["REDCO"]
SOURCE = os.environ["REDCO_SOURCE"]
MODEL = {"arch": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64, "tokenizer": "bytes"}
HOME = tempfile.mkdtemp()
atexit.register(shutil.rmtree, HOME)
TEXT, PAIRS = os.path.join(HOME, "text.txt"), os.path.join(HOME, "pairs.jsonl")
with open(TEXT, "w") as f:
    f.write("".join(f"Sentence {i} of a small text has {i * 7 % 11} words. " for i in range(200)))
with open(PAIRS, "w") as f:
    WORDS = "ant bee cat dog elk fox".split()
    for a in WORDS:
        for b in WORDS:
            if a < b:
                f.write(json.dumps({"prompt": "Two: ", "chosen": f"{a} {b}", "rejected": f"{b} {a}"}) + "\n")


class Jobs(unittest.TestCase):
    maxDiff = None

    def redco(self, command, job, mesh=(1, 1), environment=None, code=0):
        """The output of a command; its exit code must be `code`."""
        job = {"parallel": {"n_ranks": mesh[0] * mesh[1], "n_model_shards": mesh[1], "threads_per_rank": 1}, **job}
        path = os.path.join(HOME, "job.yaml")
        with open(path, "w") as f:
            json.dump(job, f)
        done = subprocess.run([REDCO, command, path], cwd=HOME, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def job(self, pipeline, **sections):
        workdir = os.path.join(HOME, "run")
        base = {"pipeline": pipeline, "model": dict(MODEL), "data": {"train": [TEXT], "max_length": 32},
                "train": {"max_steps": 4, "global_batch_size": 8, "logging_steps": 1, "learning_rate": 1e-3,
                          "warmup_ratio": 0},
                "checkpoint": {"resume": "never"}, "workdir": workdir}
        for name, values in sections.items():
            base[name] = {**base.get(name, {}), **values} if isinstance(values, dict) else values
        return {k: v for k, v in base.items() if v is not None}

    def metrics(self, key="loss", workdir=None):
        with open(os.path.join(workdir or os.path.join(HOME, "run"), "metrics.jsonl")) as f:
            return [x[key] for x in map(json.loads, f) if key in x]

    def assertNear(self, a, b, tolerance):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLess(abs(x - y), tolerance * max(1, abs(y)), f"{a}\n{b}")

    def losses(self, job, mesh=(1, 1)):
        self.redco("train", job, mesh)
        return self.metrics()
