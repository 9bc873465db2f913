"""The classes that optimizers and model families derive from."""

import dataclasses
import json
import re

from redco import _redco


def plugin_name(cls):
    """The name of a class in jobs: its own `name`, or MyLion -> my_lion."""
    own = vars(cls).get("name", "")
    return own or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()


class Optimizer:
    """An optimizer as one function of a parameter, written with ops for one device (docs/add_an_optimizer.md).

    A job names it by its file, `train.optimizer: ./lion.py`; the keys of `train.optimizer_settings` are the members
    of `Settings`. A pipeline may give an object of it to a redco.ParamGroup.
    """

    # A dataclass: the keys of train.optimizer_settings, with types, defaults and help.
    Settings = None
    # The name for train.optimizer and checkpoints; "": the name of the class, MyLion is my_lion.
    name = ""
    # True: each element is updated separately. update() then gets vectors, which are parts of the parameter.
    elementwise = False
    # True: ops on each element and reductions along dims only. With sharded state update() then gets the parameter
    # sharded over the replicas.
    on_shards = False
    # Names of the state: tensors of the parameter's shape, zeros at first. Or a function state(self, spec) of the
    # parameter that returns names, or shapes by name, whose dims are those of the parameter or 1.
    state = ()

    def __init__(self, **settings):
        if settings and self.Settings is None:
            raise TypeError(f"{type(self).__name__} has no Settings, but got {', '.join(settings)}")
        self.settings = _dataclass(type(self), "Settings")(**settings) if self.Settings is not None else None

    def update(self, param, gradient, state, ctx):
        """The parameter and its state after one update: (param, {name: tensor}), or param if there is no state.

        All tensors are float32. gradient is clipped already; state is a dict. ctx has learning_rate, weight_decay,
        updates and spec.
        """
        raise NotImplementedError("the optimizer defines no update(self, param, gradient, state, ctx)")


class ModelFamily:
    """A model family: a config, parameters, and a forward pass for one device (docs/add_a_model.md).

    A job names it by its file, `model.arch: ./my_decoder.py`; the other keys of the section `model` are those of
    `Config`. A decoder defines decode(), a model of another task encode_outputs().
    """

    # A dataclass: the keys of config.json, by Hugging Face's names. Members without a default are required.
    Config = None
    # model_type in config.json, and the name for model.arch; "": the name of the class, MyDecoder is my_decoder.
    name = ""
    # "causal-lm" (decode), "seq2seq-lm" or "image-captioning" (encode and decode), or "masked-lm",
    # "sequence-classification", "token-classification", "image-classification", "vector-regression",
    # "image-text-contrastive", ... (encode_outputs)
    task = "causal-lm"
    # False: the family neither reads nor writes text, so that a job needs no tokenizer.
    vocabulary = True
    # True: positions have no limit; max_length is then a default.
    relative_positions = False
    # False: no layer calls attend() or self_attention().
    attends = True
    # True: every text is padded to max_length tokens, which attention includes (SigLIP).
    pads_texts = False
    # "tokens": layers keep keys and values of each token. "state": a recurrent state. Or a list, one for each layer.
    cache = "tokens"

    def spec(self, p):
        """Declares the parameters, in order, on a redco.Params."""
        raise NotImplementedError("the family defines no spec(self, p)")

    def decode(self, params, inputs, options):
        """[rows, tokens, vocab_size] logits. inputs: input_ids, positions and key_mask, [rows, tokens]."""
        raise NotImplementedError("the family defines no decode(self, params, inputs, options)")

    def encode(self, params, inputs, options):
        """[rows, tokens, width]: the memory of an encoder-decoder model, of input_ids or pixel_values.

        decode() then gets it as inputs.memory, with inputs.memory_mask, for redco.cross_attention().
        """
        raise NotImplementedError("the family defines no encode(self, params, inputs, options)")

    def encode_outputs(self, params, inputs, options):
        """The outputs of a model without decoder. inputs: input_ids and key_mask, pixel_values, or features."""
        raise NotImplementedError("the family defines no encode_outputs(self, params, inputs, options)")

    def window(self, layer):
        """The most tokens that a query of the layer attends to; 0: all."""
        return 0

    # Optional: def positions(self, mask, generating): the positions of a row, from its mask of tokens (a list); for
    # models that do not count 0, 1, 2, ... And def canonical_name(self, stored): the name in spec() of a tensor in
    # a checkpoint; None: it is left out.

    def fail(self, key, why):
        """An error about a key of the config, for spec(): with the file or the place in the job."""
        self._config_place.fail(key, why)

    # Sizes that redco reads. Override a size that has another name in the config.
    @property
    def vocab_size(self):
        return getattr(self.config, "vocab_size", 0)

    @property
    def hidden_size(self):
        return getattr(self.config, "hidden_size", 0)

    @property
    def n_layers(self):
        return getattr(self.config, "num_hidden_layers", 0)

    @property
    def max_length(self):
        return getattr(self.config, "max_position_embeddings", 0)

    @property
    def decoder_start_token_id(self):
        """The first token of every output of an encoder-decoder model."""
        return getattr(self.config, "decoder_start_token_id", -1)

    @property
    def pad_token_id(self):
        return getattr(self.config, "pad_token_id", -1)

    @property
    def num_labels(self):
        return getattr(self.config, "num_labels", 0)

    @property
    def n_features(self):
        return getattr(self.config, "input_size", 0)

    @property
    def problem_type(self):
        return getattr(self.config, "problem_type", None) or ""

    @property
    def image_shape(self):
        """(channels, height, width)"""
        c = self.config
        size = getattr(c, "image_size", 0)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return (getattr(c, "num_channels", 3) if height else 0, height, width)


def _dataclass(cls, member):
    """The class's dataclass of this name."""
    inner = getattr(cls, member)
    if not dataclasses.is_dataclass(inner):
        inner = dataclasses.dataclass(inner)
        setattr(cls, member, inner)
    return inner


def is_plugin(cls):
    """Whether a class is one to register, and not a base of others."""
    if issubclass(cls, Optimizer):
        return cls.update is not Optimizer.update
    return (issubclass(cls, ModelFamily)
            and (cls.decode is not ModelFamily.decode or cls.encode_outputs is not ModelFamily.encode_outputs))


# --- configs ---
def make_family(cls, config):
    """An object of the class with its config, of a ModelConfig."""
    import typing

    family = cls()
    family._config_place = config
    if cls.Config is None:
        raise _redco.UsageError(f"{cls.__name__} has no Config: declare the keys of its config.json, such as\n"
                                "class Config:\n    vocab_size: int")
    made = _dataclass(cls, "Config")
    hints = typing.get_type_hints(made)
    values = {}
    for f in dataclasses.fields(made):
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        kind, nullable = hints[f.name], False
        if typing.get_origin(kind) is typing.Union:
            inner = [a for a in typing.get_args(kind) if a is not type(None)]
            nullable, kind = len(inner) < len(typing.get_args(kind)), inner[0]
        if f.name == "num_labels":
            values[f.name] = config.labels()
        elif required and kind is int:
            values[f.name] = config.integer(f.name)
        elif config.has(f.name):
            values[f.name] = _checked(config, f.name, kind, config.value(f.name))
        elif nullable and config.mentions(f.name):
            values[f.name] = None
        elif required:
            config.require(f.name)
    config.finish()
    family.config = made(**values)
    return family


def _checked(config, name, kind, x):
    import typing

    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        if x in typing.get_args(kind):
            return x
        config.fail(name, "expected " + " or ".join(map(repr, typing.get_args(kind))))
    if origin in (list, tuple) or kind in (list, tuple):
        if isinstance(x, list):
            inner = typing.get_args(kind)
            return [_checked(config, name, inner[0], y) for y in x] if inner else x
        config.fail(name, "expected a list")
    if kind is float and isinstance(x, (int, float)) and not isinstance(x, bool):
        return float(x)
    if kind is int and isinstance(x, int) and not isinstance(x, bool):
        return x
    if kind in (bool, str, dict) and isinstance(x, kind):
        return x
    if kind not in (bool, int, float, str, dict):
        return x
    words = {bool: "true or false", int: "an integer", float: "a number", str: "a text", dict: "an object"}
    config.fail(name, f"expected {words[kind]}")


def config_text(family, given):
    """config.json: the given keys and the defaults of the others, which a later version of the class may change."""
    config = json.loads(given)
    for f in dataclasses.fields(family.config):
        if f.name not in config and f.name != "num_labels":
            config[f.name] = getattr(family.config, f.name)
    if family.decoder_start_token_id >= 0:
        config["decoder_start_token_id"] = family.decoder_start_token_id
    return json.dumps(config, indent=2) + "\n"


def facts(family):
    """What redco reads of a family, by name."""
    names = ("vocab_size", "hidden_size", "n_layers", "max_length", "num_labels", "n_features", "problem_type",
             "image_shape", "task", "relative_positions", "attends", "pads_texts", "decoder_start_token_id",
             "pad_token_id")
    out = {name: getattr(family, name) for name in names}
    out["own"] = [name for name in ("positions", "canonical_name") if hasattr(family, name)]
    if out["task"] in ("seq2seq-lm", "image-captioning") and type(family).encode is ModelFamily.encode:
        raise _redco.UsageError(f"a family for {out['task']} defines encode(self, params, inputs, options) too")
    forms = [family.cache] * out["n_layers"] if isinstance(family.cache, str) else list(family.cache)
    if len(forms) != out["n_layers"] or any(f not in ("tokens", "state") for f in forms):
        raise _redco.UsageError(f"`cache` is {family.cache!r}; expected 'tokens' or 'state', or a list of these with an "
                                f"entry for each of the {out['n_layers']} layers")
    out["cache"] = forms
    out["windows"] = [int(family.window(i)) for i in range(out["n_layers"])]
    return out


# --- state of optimizers ---
def state_names(names):
    if isinstance(names, str):
        raise TypeError(f"`state` is a text; expected names: state = ({names!r},)")
    return [str(n) for n in names]


def state_of(optimizer, spec):
    """[(name, shape)] of a parameter."""
    state = optimizer.state(spec) if callable(optimizer.state) else optimizer.state
    if isinstance(state, dict):
        return [(str(name), [int(n) for n in shape]) for name, shape in state.items()]
    return [(name, list(spec.shape)) for name in state_names(state)]
