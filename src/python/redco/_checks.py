"""Mistakes in scripts: checks of a class before it runs, and hints for exceptions."""

import difflib
import inspect
import re
import sys
import types

from redco import _redco
from redco._pipeline import EmbeddingPipeline, Pipeline

# The arguments that redco gives to a pipeline's functions, without self.
_ARGUMENTS = {
    "example": "record", "open": "request", "collate": "examples, shape", "loss": "params, batch, ctx",
    "predict": "params, examples, ctx", "params": "", "extra_params": "", "groups": "", "source": "params, ctx",
    "after_update": "params, ctx", "after_step": "params, means, ctx", "model_files": "", "metrics": "means",
    "output": "example, prediction", "output_metrics": "examples, outputs", "state": "", "restore": "values",
    "request": "record", "plan_example": "length",
}
_OF_AN_EMBEDDING = {"embed": "params, batch, ctx", "loss": "params, embedded, ctx"}
_TEXTS = ("terms", "keeps", "predicts_with")
_MEMBERS = (*_ARGUMENTS, *_TEXTS, "unit", "passes", "shuffles", "reads", "evaluates_loss", "predicts_any_number",
            "Settings")


def check_class(cls):
    """UsageError: the class of a script does not define what redco calls."""
    expected = {**_ARGUMENTS, **(_OF_AN_EMBEDDING if issubclass(cls, EmbeddingPipeline) else {})}
    for name, arguments in expected.items():
        function = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(function):
            _check_arguments(name, function, ["self", *filter(None, arguments.split(", "))],
                             expected[name] != _ARGUMENTS.get(name))
    for name in _TEXTS:
        if isinstance(value := getattr(cls, name), str):
            raise _redco.UsageError(f"{name} is the text {value!r}; expected a tuple of texts: {name} = ({value!r},)")
    if cls.unit == "token":
        raise _redco.UsageError("unit is 'token'; with unit = 'tokens' losses are means over the tokens of `labels`")
    for c in cls.__mro__:
        if c.__module__ == cls.__module__:
            _check_names(c)
    _check_settings(cls.Settings)


def _check_arguments(name, function, given, of_an_embedding):
    signature = inspect.signature(function)
    try:
        signature.bind(*given)
    except TypeError:
        own = ", ".join(map(str, signature.parameters.values()))
        kind = " of a redco.EmbeddingPipeline" if of_an_embedding else ""
        raise _redco.UsageError(f"line {function.__code__.co_firstlineno}: {name}({own}); expected "
                                f"{name}({', '.join(given)}){kind}") from None


def _names_in(code):
    """All names that a code object and those inside it use."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names |= _names_in(inner)
    return names


def _check_names(cls):
    """A member that nothing in its class uses, with nearly the name of one that redco uses, is a typing error."""
    members = [n for n in vars(cls) if not n.startswith("_") and not hasattr(Pipeline, n) and n not in _MEMBERS]
    if issubclass(cls, EmbeddingPipeline):
        members = [n for n in members if n != "embed"]
    functions = [getattr(f, "fget", None) or getattr(f, "__func__", f) for f in vars(cls).values()]
    used = set().union(*(_names_in(f.__code__) for f in functions if inspect.isfunction(f)))
    for name in members:
        near = difflib.get_close_matches(name, _MEMBERS, 1, 0.85)
        if near and name not in used:
            raise _redco.UsageError(f"{cls.__name__}.{name} is not used; did you mean {near[0]}?")


def _check_settings(cls):
    for c in getattr(cls, "__mro__", ())[:-1]:
        for name, value in vars(c).items():
            if isinstance(value, (bool, int, float, str)) and not name.startswith("__") and \
                    name not in c.__dict__.get("__annotations__", {}):
                raise _redco.UsageError(f"Settings.{name} has no type, so a job cannot set it; write "
                                        f"{name}: {type(value).__name__} = {value!r}")


# --- hints for exceptions ---
# What PyTorch's names are here.
_OF_PYTORCH = {
    "backward": "loss() returns the loss, and redco differentiates it; a gradient inside of it is redco.grad()",
    "cpu": "leave it out: tensors have no device", "cuda": "leave it out: tensors have no device",
    "to": "leave it out: tensors have no device; x.cast(dtype) converts",
    "requires_grad_": "redco.grad(loss, x) differentiates with respect to x = x.watched()",
    "masked_fill": "write redco.where(mask, value, x)", "repeat": "write x.expand(...), or redco.cat([x] * n, dim)",
    "mse_loss": "write ((x - target) ** 2).sum()", "l1_loss": "write (x - target).abs().sum()",
    "nll_loss": "write -redco.pick(log_probs, labels).sum()", "kl_div": "write (p * (p.log() - q.log())).sum()",
    "randn": "write redco.random_normal(shape, 'name')", "rand": "write redco.random_uniform(shape, 'name')",
    "randn_like": "write redco.random_normal(x.shape, 'name')", "topk": "write x.top_k(k, dim)",
    "any": "write mask.sum() > 0", "all": "write (1 - mask).sum() == 0", "item_": "write x.item()",
    "nn": "a layer is p.linear(name, out, in) in params() and redco.dense(params, name, x) in loss()",
    "index_select": "write x[ids]", "mul": "write x * y", "sub": "write x - y", "div": "write x / y",
    "t": "write x.T", "device": "leave it out: tensors have no device",
}


def hint(exception):
    """What to write in place of a call that failed, or ""."""
    text = str(exception)
    if isinstance(exception, TypeError):
        return _arguments_of_redco(text)
    found = isinstance(exception, AttributeError) and re.search(
        r"^(module 'redco'|'redco\._redco\.(\w+)' object) has no attribute '(\w+)'", text)
    if not found:
        return ""
    name, of = found.group(3), getattr(_redco, found.group(2)) if found.group(2) else sys.modules["redco"]
    if of in (_redco.Tensor, sys.modules["redco"]) and name in _OF_PYTORCH:
        return f". {_OF_PYTORCH[name][0].upper()}{_OF_PYTORCH[name][1:]}"
    if of is _redco.ParamTree:
        return f". Parameters are params[\"{name}\"]"
    near = difflib.get_close_matches(name, [n for n in dir(of) if not n.startswith("_")], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _arguments_of_redco(text):
    """The arguments of a function of redco that was called with others."""
    call = re.match(r"(\w+)(?:\.__init__)?\(\) (?:got|takes|missing)", text)
    function = call and getattr(sys.modules["redco"], call.group(1), None)
    if not callable(function):
        return ""
    try:
        arguments = inspect.signature(function).parameters.values()
    except ValueError:  # of C++, whose errors list the arguments
        return ""
    return f". It is redco.{call.group(1)}({', '.join(str(a.replace(annotation=a.empty)) for a in arguments)})"
