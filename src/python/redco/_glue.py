"""Functions that the C++ part calls."""

import dataclasses
import hashlib
import importlib.util
import json
import os
import random
import sys
import traceback

import numpy as np

from redco import _redco
from redco._checks import check_class, hint
from redco._pipeline import EmbeddingPipeline, ParamGroup, Pipeline, _settings_specs, tensor
from redco._plugins import (  # noqa: F401
    ModelFamily,
    Optimizer,
    config_text,
    facts,
    is_plugin,
    make_family,
    plugin_name,
    state_names,
    state_of,
)

_HERE = os.path.dirname(os.path.abspath(__file__))
loads = json.loads
ndarray = np.ndarray


def _plain(x):
    """For json: objects of dataclasses, NumPy's numbers and arrays."""
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, np.generic):
        return x.item()
    raise TypeError(f"{type(x).__name__} is no JSON value")


def dumps(x):
    return json.dumps(x, ensure_ascii=False, default=_plain)


def loaded(texts):
    return [json.loads(t) for t in texts]


def floats(x):
    return np.asarray(x, dtype=np.float32, order="C")


def ints(x):
    return np.asarray(x, dtype=np.int32, order="C")


def listed(f):
    """f with a list as its result."""

    def call(xs):
        result = f(xs)
        return [result] if isinstance(result, _redco.Tensor) else list(result)

    return call


# --- errors ---
def places(exception):
    """The user's lines of a traceback, the innermost first."""
    out = []
    for f in reversed(traceback.extract_tb(exception.__traceback__)):
        if f.filename.startswith(_HERE) or f.filename.startswith("<frozen"):
            continue
        out.append(f"\n  {os.path.relpath(f.filename) if f.filename.startswith(os.getcwd()) else f.filename}:"
                   f"{f.lineno}, in {f.name}: `{f.line}`")
    return "".join(out[:8])


def where():
    """The innermost line of the user's code that runs now: "mine.py:33, loss"."""
    for frame in sys._current_frames().values():
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((_HERE, "<frozen")):
                return f"{os.path.basename(code.co_filename)}:{frame.f_lineno}, {code.co_name}"
            frame = frame.f_back
    return ""


def describe(exception):
    if isinstance(exception, SyntaxError):
        line = (exception.text or "").strip()
        return f"SyntaxError: {exception.msg}\n  {exception.filename}:{exception.lineno}: `{line}`"
    if isinstance(exception, _redco.Error):
        return f"{exception}{places(exception)}"
    if isinstance(exception, KeyError):
        key = exception.args[0] if exception.args else ""
        return f"KeyError: {key if ' ' in str(key) else f'no key {key!r}'}{places(exception)}"
    return f"{type(exception).__name__}: {exception}{_only_source_sets(exception) or hint(exception)}{places(exception)}"


def _only_source_sets(exception):
    """A hint, if the missing attribute is one of a pipeline whose source() did not run."""
    pipeline = getattr(exception, "obj", None)
    if not isinstance(exception, AttributeError) or not isinstance(pipeline, Pipeline):
        return ""
    if "source" not in vars(type(pipeline)) or pipeline._source_ran:
        return ""
    return (". source() does not run when a run continues inside an epoch: let `keeps` name what it sets, or "
            "compute it in a functools.cached_property")


# --- loading ---
def _hash_of_code(path):
    """Of the script, and of the modules in its folder that are loaded."""
    folder = os.path.dirname(os.path.abspath(path))
    files = {os.path.abspath(path)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py"):
            file = os.path.abspath(file)
            if file.startswith(folder + os.sep) and not file.startswith(_HERE) and "site-packages" not in file:
                files.add(file)
    h = hashlib.sha256()
    for file in sorted(files):
        with open(file, "rb") as f:
            content = f.read()
        h.update(os.path.relpath(file, folder).encode() + b"\0" + str(len(content)).encode() + b"\0" + content)
    return h.hexdigest()


def _run_file(path, name):
    """The module of a file of the user's, under this name."""
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def load_plugin(path):
    """(optimizers, families: lists of (name, class); hash of the code) of a file of `plugins:`."""
    name = "redco_plugin_" + hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:12]
    found = [c for c in vars(_run_file(path, name)).values()
             if isinstance(c, type) and c.__module__ == name and is_plugin(c)]
    if not found:
        raise _redco.UsageError("it has no class derived from redco.Optimizer with update(), or from "
                                "redco.ModelFamily with decode() or encode_outputs()")
    named = [[(plugin_name(c), c) for c in found if issubclass(c, base)] for base in (Optimizer, ModelFamily)]
    return named[0], named[1], _hash_of_code(path)


def settings_specs(cls):
    return _settings_specs(cls.Settings) if cls.Settings is not None else []


def is_optimizer(x):
    return isinstance(x, Optimizer)


def params():
    return _redco.Params()


def load(path):
    """(object, names of the functions that the class defines, built-in base, hash of the code, is an embedding)."""
    name = "redco_pipeline_" + hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:12]
    module = _run_file(path, name)
    found = [c for c in vars(module).values()
             if isinstance(c, type) and issubclass(c, Pipeline) and c.__module__ == name]
    # Of several, the one that no other derives from.
    last = [c for c in found if not any(d is not c and issubclass(d, c) for d in found)]
    if len(last) != 1:
        names = ", ".join(c.__name__ for c in last)
        raise _redco.UsageError(
            f"it has {'no class' if not last else 'several classes, ' + names + ','} derived from redco.Pipeline; "
            "expected one")
    cls = last[0]
    check_class(cls)
    if cls.Settings is not None and not dataclasses.is_dataclass(cls.Settings):
        cls.Settings = dataclasses.dataclass(cls.Settings)
    own = set()
    for c in cls.__mro__:
        if c in (Pipeline, EmbeddingPipeline, object) or c.__module__ == "redco.builtin":
            continue
        own.update(n for n in vars(c) if not n.startswith("_"))
    if cls.keeps:
        own.update(("state", "restore"))
    return cls(), sorted(own), cls._built_in, _hash_of_code(path), issubclass(cls, EmbeddingPipeline)


def prepare(pipeline):
    pipeline._load_settings()


def another(pipeline):
    """An object of the same class and job, with another state."""
    other = type(pipeline)()
    other._cpp = pipeline._cpp
    if "params" in {n for c in type(pipeline).__mro__ if c is not Pipeline for n in vars(c)}:
        other.params()
    return other


def seed(number, name, k):
    key = int.from_bytes(hashlib.sha256(f"{number} {name} {k}".encode()).digest()[:4], "little")
    random.seed(key)
    np.random.seed(key)


def rng(number, name, step, epoch):
    digest = hashlib.sha256(f"{number} {name} {step} {epoch}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


# --- examples ---
def _as_array(name, x):
    a = np.asarray(x)
    if a.dtype.kind in "iub":
        if a.size and (a.max() > 2**31 - 1 or a.min() < -(2**31)):
            raise ValueError(f"field '{name}' has integers outside of 32 bits")
        return np.asarray(a, dtype=np.int32, order="C")
    if a.dtype.kind == "f":
        return np.asarray(a, dtype=np.float32, order="C")
    return None


def example_parts(fields):
    """(ids, values, text, id) of a dict. Arrays and lists of numbers are ids or values; all else is kept as JSON."""
    if not isinstance(fields, dict):
        raise TypeError(f"an example is a dict of fields, not {type(fields).__name__}")
    ids, values, more, shapes, identity = {}, {}, {}, {}, ""
    for name, x in fields.items():
        if name == "id":
            identity = dumps(x)
            continue
        if x is None:
            continue
        a = None
        if isinstance(x, (list, tuple)) and not x:
            a = np.zeros(0, dtype=np.int32)
        elif isinstance(x, (bool, int, float, np.ndarray, np.generic)) or (
                isinstance(x, (list, tuple)) and _is_numeric(x)):
            a = _as_array(name, x)
        elif hasattr(x, "numpy") and not isinstance(x, _redco.Tensor):  # of another library
            a = _as_array(name, x.numpy())
        if a is None:
            more[name] = x
            continue
        if a.ndim != 1:
            shapes[name] = list(a.shape)
        (ids if a.dtype == np.int32 else values)[name] = a.reshape(-1)
    if shapes:
        more["#shapes"] = shapes
    if not more:
        text = ""
    elif list(more) == ["text"] and isinstance(more["text"], str) and not more["text"].startswith("\x1e"):
        text = more["text"]
    else:
        text = "\x1e" + dumps(more)
    return ids, values, text, identity


def _is_numeric(x):
    while isinstance(x, (list, tuple)):
        if not x:
            return False
        x = x[0]
    return isinstance(x, (bool, int, float, np.number, np.ndarray))


def example(pipeline, record, where):
    try:
        return pipeline.example(json.loads(record))
    except (_redco.Error, NotImplementedError):
        raise
    except Exception as e:
        e.args = (f"{e.args[0] if e.args else ''} (at {where})",) + e.args[1:]
        raise


def request(pipeline, record, where):
    own = getattr(pipeline, "request", None)
    return own(json.loads(record)) if own else example(pipeline, record, where)


def opened(pipeline, request):
    """(an iterator of examples or None, the data's fingerprint or "")."""
    data = pipeline.open(request)
    if data is None:
        return None, ""
    example_of = getattr(pipeline, "example", None)

    # Without __iter__, Python would index until an IndexError, which data sets with a length need not raise.
    items = (data[i] for i in range(len(data))) if not hasattr(data, "__iter__") and hasattr(data, "__len__") else data

    def examples():
        for item in items:
            made = example_of(item) if example_of else item
            if made is not None:
                yield made

    return examples(), str(getattr(data, "_fingerprint", "") or "")


def next_item(items):
    return next(items, None)


def source(pipeline, params, ctx):
    """(examples, notes): a list of examples, or a dict of arrays with a row for each."""
    pipeline._source_ran = True
    result, notes = pipeline.source(params, ctx), {}
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        result, notes = result
    if result is None:
        raise TypeError("source() returned None; expected a list of examples, or a dict of arrays")
    if not isinstance(result, dict):
        return list(result), notes
    table = {name: _as_array(name, x) for name, x in result.items()}
    for name, a in table.items():
        if a is None:
            raise TypeError(f"column '{name}' of source() is not an array of numbers")
    if len({len(a) if a.ndim else -1 for a in table.values()}) != 1:
        raise ValueError("the columns of source() have " + ", ".join(f"{k}: {a.shape}" for k, a in table.items())
                         + "; expected arrays with a row for each example")
    return table, notes


# --- results ---
def collate(pipeline, examples, shape):
    """(fields: arrays of int32 or float32, or tensors; weights)."""
    made = pipeline.collate(examples, shape)
    fields, weights = made if isinstance(made, tuple) else (made, None)
    if not isinstance(fields, dict):
        raise TypeError(f"collate() returned {type(fields).__name__}; expected a dict of arrays, or that and weights")
    out = {}
    for name, x in fields.items():
        if isinstance(x, _redco.Tensor):
            out[name] = x
            continue
        a = _as_array(name, x.numpy() if hasattr(x, "numpy") and not isinstance(x, np.ndarray) else x)
        if a is None:
            raise TypeError(f"field '{name}' of collate() is not an array of numbers")
        out[name] = a
    if weights is None:
        weights = {}
    elif not isinstance(weights, dict):
        weights = {pipeline.terms[0]: weights}
    return out, {k: float(v) for k, v in weights.items()}


def terms(result):
    if isinstance(result, _redco.Tensor):
        result = {"loss": result}
    if not isinstance(result, dict):
        kind = "None" if result is None else type(result).__name__
        raise TypeError(f"loss() returned {kind}; expected a tensor with one element, or a dict of them")
    out = []
    for name, value in result.items():
        if not isinstance(value, _redco.Tensor):
            raise TypeError(f"the term '{name}' of loss() is {type(value).__name__}; expected a tensor with one element")
        out.append((name, value if value.ndim == 0 else value.sum()))
    return out


def step_log(d):
    """(numbers, arrays of float32) of a dict with both."""
    values, arrays = {}, {}
    for name, x in d.items():
        a = np.asarray(x.numpy() if hasattr(x, "numpy") else x, dtype=np.float32)
        if a.ndim == 0:
            values[str(name)] = float(a)
        else:
            arrays[str(name)] = np.ascontiguousarray(a).reshape(-1)
    return values, arrays


def files(d):
    """Texts or bytes by path, as bytes."""
    return {str(path): x.encode() if isinstance(x, str) else bytes(x) for path, x in d.items()}


def numbers(d):
    return {str(k): float(v) for k, v in (d or {}).items()}


def answers(result, n):
    out = []
    for a in result:
        if dataclasses.is_dataclass(a):
            a = _plain(a)
        elif hasattr(a, "_asdict"):  # of a named tuple
            a = a._asdict()
        if isinstance(a, str):
            # predict_text() already gives JSON objects.
            out.append(a if a.startswith("{") and _is_object(a) else dumps({"prediction": a}))
        else:
            out.append(dumps(a if isinstance(a, dict) else {"prediction": a}))
    if len(out) != n:
        raise ValueError(f"predict() returned {len(out)} answers for {n} examples")
    return out


def _is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def declared(params):
    found = getattr(params, "_params", params)
    if not isinstance(found, _redco.ModelParams):
        kind = "None" if params is None else type(params).__name__
        raise TypeError(f"the function returned {kind}; expected redco.Params")
    return found


def group_list(groups):
    if not isinstance(groups, (list, tuple)) or any(not isinstance(g, ParamGroup) for g in groups):
        raise TypeError(f"it returned {type(groups).__name__}; expected a list of redco.ParamGroup")
    return list(groups)


# --- indices and constants ---
def index_ids(entry, n):
    """int32 ids of a list, an array or a mask, for a dim of n elements."""
    array = np.asarray(entry)
    if array.dtype == bool:
        if array.shape != (n,):
            raise IndexError(f"a mask of the shape {array.shape} for a dim of {n} elements")
        array = np.flatnonzero(array)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise IndexError(f"an index is {entry!r}; expected integers, slices, None, ... or int32 ids")
    if array.size and (array.min() < -n or array.max() >= n):
        raise IndexError(f"ids {array.min()} to {array.max()} of a dim of {n} elements")
    return np.asarray(np.where(array < 0, array + n, array), dtype=np.int32, order="C")


def constant(value, like):
    """A tensor of a number, a list or an array, for an op with one of the type `like`."""
    number = np.asarray(value).dtype.kind
    return tensor(value, "int32" if like == "int32" and number in "iub" else
                  "float64" if like == "float64" else "float32")
