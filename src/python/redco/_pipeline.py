"""The class that pipelines derive from, and helpers for its functions."""

import base64
import dataclasses
import json
from typing import Callable, Optional, Union

import numpy as np

from redco import _redco
from redco._plugins import Optimizer
from redco._tensor import tensor  # noqa: F401


def pad_rows(sequences, length, fill=0, dtype=np.int32):
    """[len(sequences), length] of sequences of any lengths; longer ones lose their end."""
    out = np.full((len(sequences), length), fill, dtype=dtype)
    for row, values in zip(out, sequences):
        n = min(len(values), length)
        row[:n] = values[:n]
    return out


def rows(examples, field, length=None, fill=0):
    """A field of all examples as an array [rows, ...]; with `length`, padded to [rows, length]."""
    if examples and isinstance(examples[0], _redco.Example):
        return _redco._stack(examples, field, length, fill)
    if length is not None:
        return pad_rows([e[field] for e in examples], length, fill)
    return np.stack([np.asarray(e[field]) for e in examples])


@dataclasses.dataclass
class Images:
    """For `reads`: images with fields pixel_values [channels, height, width] in [-1, 1] and, if they have one of
    n_classes classes, label."""

    shape: tuple
    n_classes: int = 0


class ParamGroup:
    """Parameters that are updated together. has: a function of a name, a list of names, or a prefix; without it
    all parameters, or those with the prefix of ema_of.

    The other arguments are those of ParamGroup in C++ (src/pipeline/pipeline.h). optimizer: a name, "adamw" or
    "sgd", (name, {setting: value}), or an object of a redco.Optimizer. ema_of: a function of a name, or a pair (prefix, prefix of the source). tau: a
    number, or a function of the step.
    """

    def __init__(
        self,
        name: str,
        has: Union[Callable[[str], bool], str, list, None] = None,
        term: str = "",
        plus=(),
        learning_rate_factor: float = 1.0,
        learning_rate: Optional[Callable[[int, float], float]] = None,
        clip_grad_norm: Optional[float] = None,
        optimizer=None,
        period: int = 1,
        ema_of=None,
        tau: Union[float, Callable[[int], float]] = 0.0,
    ):
        self.name, self.has, self.term, self.plus = name, has, term, plus
        self.learning_rate_factor, self.learning_rate = learning_rate_factor, learning_rate
        self.clip_grad_norm, self.optimizer, self.period = clip_grad_norm, optimizer, period
        self.ema_of, self.tau = ema_of, tau

    @property
    def _has(self):
        if self.has is None and self.ema_of is not None and not callable(self.ema_of):
            return lambda name: name.startswith(self.ema_of[0])
        if self.has is None:
            return lambda name: True
        if isinstance(self.has, str):
            prefix = self.has
            return lambda name: name.startswith(prefix)
        if callable(self.has):
            return lambda name: bool(self.has(name))
        names = set(self.has)
        return lambda name: name in names

    @property
    def _plus(self):
        return list(self.plus.items()) if isinstance(self.plus, dict) else [tuple(p) for p in self.plus]

    @property
    def _ema_of(self):
        if self.ema_of is None or callable(self.ema_of):
            return self.ema_of
        mine, source = self.ema_of
        return lambda name: source + name[len(mine):]

    @property
    def _optimizer(self):
        if self.optimizer is None:
            return None
        if isinstance(self.optimizer, Optimizer):
            return self.optimizer
        return (self.optimizer, {}) if isinstance(self.optimizer, str) else tuple(self.optimizer)


class Pipeline:
    """An algorithm as three functions, written for one device. Define `loss`, and of the others what differs.

    A step is one optimizer update. loss() returns sums, not means: redco divides by the sum of the weights that
    collate() gives, over all micro-batches and replicas.
    """

    # A dataclass: the keys of the job's section `settings`, with types, defaults and help. self.settings is
    # then an object of it.
    Settings = None
    # The loss terms, the first one is trained. Each has a weight from collate(); without one, the number of rows,
    # or, if the unit is "tokens", the number of `labels` that are not padding.
    terms = ("loss",)
    # What the first term's weight counts, for the log: "examples", "tokens", ...
    unit = "examples"
    # The passes through the examples of source() in an epoch.
    passes = 1
    # False if the steps take the examples of source() in their order.
    shuffles = True
    # How the job's files are read: "classification", "seq2seq" or another built-in pipeline, whose examples
    # they then are, or Images(shape). Without it: example(), or tokenized texts as pipeline lm reads them.
    reads = None
    # False if an evaluation consists of predict() only.
    evaluates_loss = True
    # True if predict() takes all examples in one call.
    predicts_any_number = False
    # Attributes of self that checkpoints keep: arrays, JSON values, and objects with state() and restore().
    keeps = ()
    # The models of `models:` that predict() uses.
    predicts_with = ()
    _built_in = ""
    _source_ran = False
    _cpp = None

    # --- the three functions ---
    def collate(self, examples, shape):
        """Examples of this replica -> arrays [len(examples), ...] by name, or (arrays, {term: weight}).

        shape.length is the length that all replicas pad to. Default: every field; sequences of ids are padded with
        0, `labels` with -100, and fields of one shape are stacked.
        """
        return _redco._stacked_fields(list(examples), shape)

    def loss(self, params, batch, ctx):
        """A sum, or a dict of named sums (one-element tensors)."""
        raise NotImplementedError("the pipeline defines no loss(self, params, batch, ctx)")

    def predict(self, params, examples, ctx):
        """An answer for each example: a text, a dict or a dataclass, written as JSON.

        Default: the text that the model continues `prompt` with.
        """
        return self.predict_text(params, examples, ctx)

    def state(self):
        """What checkpoints keep besides parameters, a JSON value. Default: the attributes in `keeps`."""
        return {name: _kept(getattr(self, name)) for name in self.keeps}

    def restore(self, values):
        """Sets the state of a checkpoint."""
        for name, x in values.items():
            if isinstance(x, dict) and "#state" in x:
                getattr(self, name).restore(x["#state"])
            elif isinstance(x, dict) and "#array" in x:
                data = np.frombuffer(base64.b64decode(x["#array"]), dtype=x["dtype"])
                setattr(self, name, data.reshape(x["shape"]).copy())
            else:
                setattr(self, name, x)

    # --- parts of the job ---
    @property
    def model(self):
        return self._need("model", "the job has no model: set model.path, model.preset or model.arch")

    @property
    def has_model(self):
        return self._job().model is not None

    @property
    def tokenizer(self):
        return self._need("tokenizer", "the job has no tokenizer: set model.tokenizer")

    @property
    def chat_template(self):
        return self._need("chat_template", "the job has no chat template: set data.chat_template")

    @property
    def models(self):
        """The models of the job's section `models`, by name: .model and .tokenizer."""
        return self._job().models

    @property
    def train_data(self):
        return self._need("train_data", "the job has no training data: set data.train")

    @property
    def settings(self):
        if self.Settings is None:
            raise AttributeError("the pipeline has no settings: give its class a dataclass `Settings`")
        if self.__dict__.get("_own") is None:
            self._load_settings()
        return self._own

    @property
    def job(self):
        """seed, max_length, global_batch_size, n_epochs, max_steps, max_new_tokens, weights_folder, ..."""
        return self._job()

    # --- helpers ---
    def predict_text(self, params, examples, ctx, encode=None, **generation):
        """Answers to each example's field `prompt` (ids), with the job's generation settings or others.

        For an encoder-decoder model, encode(examples) returns the encoder's states, or (states, mask): the
        decoder begins with its own start token.
        """
        return self._job().predict_text(params, list(examples), ctx, generation, encode)

    def batch(self, examples):
        """A batch of these examples alone, for predict(): what collate() makes of them."""
        return _redco._batch_of(self._job(), list(examples))

    def sample(self, params, prompts, first_ordinal=0, **generation):
        """Answers to prompts (lists of ids): for each a list of Rollouts (ids, text, log_probs, finish_reason).

        For source(), on all ranks together. generation: num_return_sequences, temperature, max_new_tokens, ...
        Give another first_ordinal in each epoch, such as ctx.epoch * len(prompts).
        """
        return self._job().sample(params, [[int(i) for i in p] for p in prompts], first_ordinal, generation)

    def score_examples(self, params, examples, batch_size, score):
        """A number for each example, of score(params, examples, shape) -> [rows]. For source()."""
        return self._job().score_examples(params, [_redco.Example(e) if isinstance(e, dict) else e for e in examples],
                                          batch_size, score)

    def reference_model(self, params):
        """(model, params) of the model that the training began with: models.reference, or without adapters."""
        return self._job().reference(params)

    def token_rows(self, shape, sequences, prefix=""):
        """Fields input_ids, positions and labels of rows (ids, index of the answer's first token), and the number
        of labels: what token_log_probs() reads."""
        return self._job().token_rows(shape, [([int(i) for i in ids], int(first)) for ids, first in sequences], prefix)

    def token_log_probs(self, params, batch, ctx=None, prefix="", model=None, options=None):
        """[rows, length] log-probabilities of the labels of token_rows(). options: in place of ctx.apply."""
        if options is None:
            options = ctx.apply if ctx is not None else _redco.ApplyOptions()
        return _redco.token_log_probs(model or self.model, params, batch, options, prefix)

    def prompt_ids(self, text):
        """The ids of a prompt that an answer follows."""
        return self._job().prompt_ids(text)

    def render(self, messages, add_generation_prompt=False, tools=None, **variables):
        """The text of a conversation by the chat template."""
        return self.chat_template._render(json.dumps(messages), add_generation_prompt,
                                          json.dumps(tools) if tools else "", json.dumps(variables) if variables else "")

    def tokenize_chat(self, messages, tools=None):
        """(ids, in_loss) of a conversation: in_loss is 1 for the tokens of the assistant's turns."""
        return self.chat_template._tokenize(self.tokenizer, json.dumps(messages), json.dumps(tools) if tools else "")

    # --- used by redco ---
    def _job(self):
        if self._cpp is None:
            raise _redco.UsageError("the pipeline has no job yet: read its parts in its functions, not in __init__")
        return self._cpp

    def _need(self, name, why):
        part = getattr(self._job(), name)
        if part is None:
            raise _redco.UsageError(why)
        return part

    def _load_settings(self):
        specs = _settings_specs(self.Settings) if self.Settings is not None else []
        values = self._job().load_settings(specs)
        self._own = self.Settings(**values) if self.Settings is not None else None


class EmbeddingPipeline(Pipeline):
    """A pipeline whose loss is one of the whole batch: embed() of each micro-batch, then loss() once a step."""

    def embed(self, params, batch, ctx):
        """Tensors by name, with a row for each example of the micro-batch."""
        raise NotImplementedError("the pipeline defines no embed(self, params, batch, ctx)")


def _kept(x):
    if isinstance(x, np.ndarray):
        return {"#array": base64.b64encode(np.ascontiguousarray(x).tobytes()).decode(), "dtype": x.dtype.str,
                "shape": list(x.shape)}
    return {"#state": x.state()} if hasattr(x, "state") else x


def _settings_specs(cls):
    """(name, kind, is a list, may be None, choices, help, default) of each member."""
    import typing

    if not dataclasses.is_dataclass(cls):
        cls = dataclasses.dataclass(cls)
    hints = typing.get_type_hints(cls)
    out = []
    for f in dataclasses.fields(cls):
        kind, nullable, is_list, choices = hints[f.name], False, False, []
        if typing.get_origin(kind) is Union:
            inner = [a for a in typing.get_args(kind) if a is not type(None)]
            nullable, kind = len(inner) < len(typing.get_args(kind)), inner[0]
        if typing.get_origin(kind) in (list, tuple):
            is_list, kind = True, typing.get_args(kind)[0]
        if typing.get_origin(kind) is typing.Literal:
            choices, kind = [str(c) for c in typing.get_args(kind)], str
        if kind not in (bool, int, float, str):
            raise _redco.UsageError(f"setting {f.name} has the type {hints[f.name]}; expected bool, int, float, str, "
                                    "Literal[...] of texts, Optional or list of these")
        if f.default is not dataclasses.MISSING:
            default = f.default
        elif f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        else:
            raise _redco.UsageError(f"setting {f.name} has no default")
        out.append((f.name, kind.__name__, is_list, nullable, choices, f.metadata.get("help", ""), default))
    return out
