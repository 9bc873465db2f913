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
from redco._tensor import tensor


# The pipelines that answer records for a model of each task.
_PIPELINES = {
    "sequence-classification": "classification",
    "image-classification": "classification",
    "token-classification": "token_classification",
    "question-answering": "question_answering",
    "multiple-choice": "multiple_choice",
    "vector-regression": "regression",
    "image-text-contrastive": "contrastive",
    "feature-extraction": "embedding",
}


class LoadedModel:
    """A Hugging Face folder, GGUF file or checkpoint in memory: .model, .params, .tokenizer, .chat_template."""

    def __init__(self, loaded):
        self._loaded = loaded
        self.model, self.tokenizer, self.chat_template = loaded.model, loaded.tokenizer, loaded.chat_template

    @property
    def params(self):
        return self._loaded.params

    def __repr__(self):
        m = self.model
        return f"redco.load(...): {m.family}, {m.n_layers} layers of width {m.hidden_size}, vocabulary {m.vocab_size}"

    def _ids(self, text):
        if isinstance(text, str):
            if self.tokenizer is None:
                raise _redco.UsageError("the folder has no tokenizer: give a list of ids, or load(..., tokenizer=FOLDER)")
            return self.tokenizer.encode(text)
        return [int(i) for i in text]

    def _row(self, text):
        return tensor(np.asarray([self._ids(text)], dtype=np.int32))

    def logits(self, text):
        """[tokens, vocabulary] of a text or a list of ids, as a NumPy array. Of an encoder: [labels], or a row of
        labels for each token."""
        if self.model.task == "causal-lm":
            return self.model.apply(self.params, self._row(text)).numpy()[0]
        return self.model.apply_encoder(self.params, {"input_ids": self._row(text)}).numpy()[0]

    def hidden_states(self, text):
        """The states [tokens, width] after the embedding and after each layer, as NumPy arrays."""
        if self.model.task == "causal-lm":
            states = self.model.apply_with_hidden_states(self.params, self._row(text))[1]
        else:
            states = self.model.apply_encoder_with_hidden_states(self.params, {"input_ids": self._row(text)})[1]
        return [x.numpy()[0] for x in states]

    def loss(self, text, params=None):
        """The mean cross-entropy of the tokens of a text, as a tensor: redco.grad(m.loss(text, p), p["NAME"]) with
        p = m.params.watched()."""
        ids = self._row(text)
        if ids.shape[1] < 2:
            raise _redco.UsageError("the loss of a text needs two tokens: each is predicted from those before it")
        return _redco.cross_entropy(self.model.apply(params or self.params, ids)[:, :-1], ids[:, 1:]).mean()

    def generate(self, prompt, on_text=None, **generation):
        """The text that continues a prompt, or a list of them for a list of prompts. generation: max_new_tokens,
        temperature, top_k, top_p, num_beams, stop, seed, ... (the keys of predict:). With num_return_sequences, a
        list for each prompt. on_text: a function that gets the text of one answer piece by piece."""
        one = isinstance(prompt, str) or (len(prompt) > 0 and not isinstance(prompt[0], (str, list)))
        if on_text is not None and not one:
            raise _redco.UsageError("on_text is for one prompt")
        answers = self._loaded._generate([self._ids(p) for p in ([prompt] if one else prompt)], generation, on_text)
        texts = [json.loads(a)["prediction"] for a in answers]
        return texts[0] if one else texts

    def chat(self, messages, on_text=None, **generation):
        """The assistant's answer to messages [{"role": "user", "content": TEXT}, ...], or to a text of the user."""
        if self.chat_template is None:
            raise _redco.UsageError("the folder has no chat template: use generate()")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        text = self.chat_template._render(json.dumps(messages), True, "", "")
        return self.generate(self.tokenizer.encode(text, add_special=False), on_text, **generation)

    def predict(self, records, pipeline=None):
        """The answers to records, dicts of the form of lines of predict.input, or texts. pipeline: default by the
        model's task."""
        one = isinstance(records, (str, dict))
        rows = [{"text": r} if isinstance(r, str) else r for r in ([records] if one else records)]
        name = pipeline or _PIPELINES.get(self.model.task)
        if name is None:
            raise _redco.UsageError(f"a model for {self.model.task} generates texts: use generate(), or name a pipeline")
        answers = [json.loads(a) for a in self._loaded._predict(name, [json.dumps(r) for r in rows])]
        return answers[0] if one else answers

    def embed(self, texts):
        """[texts, width] embeddings, or [width] of one text, as sentence-transformers makes them: pooling, prompts and
        norm of the folder."""
        answers = self.predict(texts, "embedding")
        if isinstance(texts, str):
            return np.asarray(answers["embedding"], dtype=np.float32)
        return np.asarray([a["embedding"] for a in answers], dtype=np.float32)


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
    return _run(command, job, overrides, check)[0]


def _run(command, job, overrides, check=True, output=None):
    """(exit code, standard output if output is PIPE) of a command."""
    if hasattr(sys, "_redco_embedded"):
        return 0, None
    if isinstance(job, dict):
        if isinstance(job.get("pipeline"), type):
            job = {**job, "pipeline": os.path.abspath(inspect.getfile(job["pipeline"]))}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as f:
            json.dump(job, f)
        path = f.name
    else:
        path = os.fspath(job)
    try:
        done = subprocess.run([_program(), command, path, *overrides], stdout=output, text=True)
    finally:
        if isinstance(job, dict):
            os.unlink(path)
    if check and done.returncode != 0:
        raise RuntimeError(f"redco {command} ended with exit code {done.returncode}")
    return done.returncode, done.stdout


def train(job, *overrides):
    """`redco train` of a dict or a job file; returns when the run has ended."""
    return run_command("train", job, *overrides)


def plan(job, *overrides):
    """`redco plan` of a dict or a job file, as a dict: mesh, memory, collectives, time."""
    out = _run("plan", job, ["--json", *overrides], output=subprocess.PIPE)[1]
    return json.loads(out) if out else None


def evaluate(job, *overrides):
    """`redco evaluate` of a dict or a job file: the metrics by name."""
    out = _run("evaluate", job, overrides, output=subprocess.PIPE)[1]
    return json.loads(out) if out else None


def predict(job, *overrides):
    """`redco predict` of a dict or a job file with predict.input: a dict for each line. predict.output of a dict or of
    an override is written too."""
    if hasattr(sys, "_redco_embedded"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        own = isinstance(job, dict) and (job.get("predict") or {}).get("output")
        named = [o.split("=", 1)[1] for o in overrides if o.startswith("predict.output=")]
        path = named[-1] if named else own or os.path.join(folder, "answers.jsonl")
        more = [] if named or own else [f"predict.output={path}"]
        run_command("predict", job, *overrides, *more)
        with open(path) as f:
            return [json.loads(line) for line in f]
