"""redco in a plain Python: a model on one rank in this process, and jobs as other processes."""

import inspect
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import numpy as np

from redco import _redco
from redco._pipeline import tensor


class LoadedModel:
    """A Hugging Face folder, GGUF file or checkpoint in memory: .model, .params, .tokenizer."""

    def __init__(self, loaded):
        self._loaded = loaded
        self.model, self.tokenizer = loaded.model, loaded.tokenizer

    @property
    def params(self):
        return self._loaded.params

    def _ids(self, text):
        if isinstance(text, str):
            return self.tokenizer.encode(text)
        return [int(i) for i in text]

    def logits(self, text):
        """[tokens, vocabulary] of a text or a list of ids, as a NumPy array."""
        ids = np.asarray([self._ids(text)], dtype=np.int32)
        return self.model.apply(self.params, tensor(ids)).numpy()[0]

    def generate(self, prompt, **generation):
        """The text that continues a prompt, or a list of them for a list of prompts. generation: max_new_tokens,
        temperature, top_k, top_p, seed, ... (the keys of predict:)."""
        prompts = [prompt] if isinstance(prompt, str) else prompt
        answers = self._loaded._generate([self._ids(p) for p in prompts], generation)
        return answers[0] if isinstance(prompt, str) else answers


def load(path, plugins=(), **settings):
    """A model on one rank. plugins: files with its family. settings: keys of the job's section `model`, such as
    weight_dtype="bf16"."""
    keys = [f"model.{k}={json.dumps(v)}" for k, v in settings.items()]
    return LoadedModel(_redco._load(os.fspath(path), [*keys, f"plugins={json.dumps([*map(os.fspath, plugins)])}"]))


def _program():
    here = os.path.dirname(os.path.abspath(__file__))
    for up in ("../../bin/redco", "../../../../bin/redco", "../../../../../bin/redco"):
        path = os.path.normpath(os.path.join(here, up))
        if os.access(path, os.X_OK):
            return path
    own = os.path.join(sysconfig.get_path("scripts"), "redco")
    path = own if os.access(own, os.X_OK) else shutil.which("redco")
    if path is None:
        raise _redco.UsageError("the program redco is not found: put it on PATH")
    return path


def run_command(command, job, *overrides, check=True):
    """`redco COMMAND job`: job is a dict, or the path of a job file. The ranks are other processes.

    The pipeline of a dict may be a class of the calling script. The ranks then run this script too, where the
    function does nothing.
    """
    if hasattr(sys, "_redco_embedded"):
        return 0
    if isinstance(job, dict):
        if isinstance(job.get("pipeline"), type):
            job = {**job, "pipeline": os.path.abspath(inspect.getfile(job["pipeline"]))}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as f:
            json.dump(job, f)
        path = f.name
    else:
        path = os.fspath(job)
    try:
        done = subprocess.run([_program(), command, path, *overrides])
    finally:
        if isinstance(job, dict):
            os.unlink(path)
    if check and done.returncode != 0:
        raise RuntimeError(f"redco {command} ended with exit code {done.returncode}")
    return done.returncode


def train(job, *overrides):
    """`redco train` of a dict or a job file; returns when the run has ended."""
    return run_command("train", job, *overrides)
