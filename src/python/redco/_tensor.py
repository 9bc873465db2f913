"""Functions of tensors that are composed of ops: PyTorch's and NumPy's names. Most are methods too."""

import math

import numpy as np

from redco import _redco
from redco._redco import Tensor

narrow, full = _redco.narrow, _redco.full


def _dim(x, dim):
    if not -x.ndim <= dim < x.ndim:
        raise _redco.ShapeError(f"dim {dim} of a tensor of the shape {x.shape}; expected {-x.ndim} to {x.ndim - 1}")
    return dim % x.ndim


def _dims(x, dim):
    if dim is None:
        return list(range(x.ndim))
    return sorted({_dim(x, d) for d in ([dim] if isinstance(dim, int) else dim)})


# --- shapes ---
def unsqueeze(x, dim):
    """x with a dim of size 1 at `dim`."""
    at = dim if dim >= 0 else dim + x.ndim + 1
    return x.reshape([*x.shape[:at], 1, *x.shape[at:]])


def squeeze(x, dim=None):
    """x without dims of size 1: all of them, or those given, which must have size 1."""
    drop = {d for d in _dims(x, dim) if x.shape[d] == 1}
    if dim is not None and len(drop) < len(_dims(x, dim)):
        raise _redco.ShapeError(f"squeeze() of dim {dim}: the shape is {x.shape}; expected the size 1")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in drop])


def flatten(x, start_dim=0, end_dim=-1):
    """The dims start_dim to end_dim as one."""
    if x.ndim == 0:
        return x.reshape([1])
    a, b = _dim(x, start_dim), _dim(x, end_dim)
    return x.reshape([*x.shape[:a], math.prod(x.shape[a : b + 1]), *x.shape[b + 1 :]])


def expand(x, *shape):
    """x repeated along dims of size 1, and along new dims in front. -1: the size of x."""
    shape = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    own = [1] * (len(shape) - x.ndim) + list(x.shape)
    return x.broadcast_to([n if m == -1 else m for m, n in zip(shape, own)])


def split(x, size, dim=0):
    """Parts of `size` along a dim, the last may be smaller; or parts of the sizes in a list."""
    d = _dim(x, dim)
    n = x.shape[d]
    sizes = [min(size, n - i) for i in range(0, n, size)] if isinstance(size, int) else list(size)
    if sum(sizes) != n:
        raise _redco.ShapeError(f"split() into {sizes} of a dim of {n} elements")
    starts = np.cumsum([0, *sizes])
    return [narrow(x, d, int(a), int(k)) for a, k in zip(starts, sizes)]


def chunk(x, n, dim=0):
    """n parts along a dim, of one size but for the last."""
    return split(x, -(-x.shape[_dim(x, dim)] // n), dim)


def unbind(x, dim=0):
    """The slices along a dim, without it."""
    return [squeeze(part, dim) for part in split(x, 1, dim)]


def flip(x, dims):
    """The reverse order along dims."""
    for d in _dims(x, dims):
        x = x[(slice(None),) * d + (slice(None, None, -1),)]
    return x


def roll(x, shift, dim):
    """Element i moves to i + shift, around the end."""
    d = _dim(x, dim)
    n = x.shape[d]
    k = shift % n if n else 0
    return x if k == 0 else _redco.concat([narrow(x, d, n - k, k), narrow(x, d, 0, n - k)], d)


def gather(x, dim, ids):
    """Elements along a dim at ids, which have the other dims of x, as torch.gather()."""
    d, last = _dim(x, dim), x.ndim - 1
    return _redco.take_along(x.transpose(d, last), ids.transpose(d, last)).transpose(d, last)


def tril(x, diagonal=0):
    """0 above a diagonal of the last two dims."""
    return x * np.tril(np.ones(x.shape[-2:], dtype=np.float32), diagonal)


def triu(x, diagonal=0):
    """0 below a diagonal of the last two dims."""
    return x * np.triu(np.ones(x.shape[-2:], dtype=np.float32), diagonal)


# --- reductions ---
def amax(x, dim=None, keepdim=False):
    """The largest elements along dims. Their gradient goes to the first of equal ones."""
    for d in reversed(_dims(x, dim)):
        ids = _redco.argmax(x, d)
        y = _redco.pick(x.transpose(d, x.ndim - 1), ids) if d == x.ndim - 1 else squeeze(
            gather(x, d, unsqueeze(ids, d)), d)
        x = unsqueeze(y, d) if keepdim else y
    return x


def amin(x, dim=None, keepdim=False):
    """The smallest elements along dims."""
    return -amax(-x, dim, keepdim)


def _of_all(name, f):
    def whole(x, *args, **kwargs):
        if args or kwargs:
            raise TypeError(f"{name}() is that of all elements. Along a dim: x.a{name}(dim) are values with "
                            f"gradient, x.arg{name}(dim) ids")
        return f(x)

    whole.__name__, whole.__doc__ = name, f"The {'largest' if name == 'max' else 'smallest'} element."
    return whole


_max, _min = _of_all("max", amax), _of_all("min", amin)


def argmax(x, dim=None):
    """ids of the largest elements along a dim; the first of equal ones. One dim needs no `dim`."""
    if dim is None and x.ndim != 1:
        raise TypeError(f"argmax() or argmin() of {list(x.shape)} needs a dim: x.argmax(-1) are ids along the last one. "
                        "PyTorch's id among all elements is x.reshape([-1]).argmax()")
    return _redco.argmax(x, 0 if dim is None else dim)


def argmin(x, dim=None):
    """ids of the smallest elements along a dim; the first of equal ones. One dim needs no `dim`."""
    return argmax(-x, dim)


def var(x, dim=None, correction=1, keepdim=False):
    """The variance along dims: squared differences to the mean, divided by their number minus `correction`."""
    n = math.prod(x.shape[d] for d in _dims(x, dim))
    difference = x - x.mean(_dims(x, dim), keepdim=True)
    return (difference * difference).sum(_dims(x, dim), keepdim=keepdim) * (1 / (n - correction))


def std(x, dim=None, correction=1, keepdim=False):
    """The square root of var()."""
    return var(x, dim, correction, keepdim).sqrt()


def norm(x, p=2, dim=None, keepdim=False):
    """The Euclidean length along dims. As torch.norm(), its first argument is the order, and p=2 is the only one."""
    if p not in (2, "fro"):
        raise _redco.UsageError(f"norm(p={p!r}) is of another order than 2. A dim is norm(dim={p!r}); an absolute sum "
                                "is x.abs().sum(dim), a maximum x.abs().amax(dim)")
    return (x * x).sum(_dims(x, dim), keepdim=keepdim).sqrt()


# --- products ---
def einsum(equation, *operands):
    """Sums of products by names of dims: einsum("bqhd,bkhd->bhqk", q, k). Each name once in an operand."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    names = inputs.split(",")
    if "." in equation:
        raise _redco.ShapeError(f"einsum('{equation}'): '...' is not supported; give each dim a name")
    if len(names) != len(operands):
        raise _redco.ShapeError(f"einsum('{equation}') has {len(names)} operands, got {len(operands)}")
    for n, x in zip(names, operands):
        if len(n) != x.ndim or len(set(n)) != len(n):
            raise _redco.ShapeError(f"einsum('{equation}'): '{n}' for a tensor of the shape {x.shape}")
    if not arrow:
        output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    if len(set(output)) != len(output) or not set(output) <= set(inputs):
        raise _redco.ShapeError(f"einsum('{equation}'): the result '{output}' needs each of its names once, from operands")
    x, have = operands[0], names[0]
    for k in range(1, len(operands)):
        later = set(output).union(*names[k + 1 :])
        x, have = _product(x, have, operands[k], names[k], later)
    alone = [d for d, c in enumerate(have) if c not in output]
    if alone:
        x, have = x.sum(alone), "".join(c for c in have if c in output)
    order = [have.index(c) for c in output]
    return x if order == sorted(order) else x.permute(order)


def _product(a, of_a, b, of_b, later):
    """(product, names of its dims): a sum over what both have and nothing later needs."""
    size = {}
    for x, of in ((a, of_a), (b, of_b)):
        for c, n in zip(of, x.shape):
            if size.setdefault(c, n) != n:
                raise _redco.ShapeError(f"einsum: the dim '{c}' has the sizes {size[c]} and {n}")
    batch = [c for c in of_a if c in of_b and c in later]
    summed = [c for c in of_a if c in of_b and c not in later]
    left, right = [c for c in of_a if c not in of_b], [c for c in of_b if c not in of_a]

    def matrix(x, of, *parts):
        order = [of.index(c) for part in parts for c in part]
        x = x if order == sorted(order) else x.permute(order)
        return x.reshape([*(size[c] for c in parts[0]), *(math.prod(size[c] for c in p) for p in parts[1:])])

    y = _redco.matmul(matrix(a, of_a, batch, left, summed), matrix(b, of_b, batch, summed, right))
    names = [*batch, *left, *right]
    return y.reshape([size[c] for c in names]), "".join(names)


def outer(a, b):
    """[N], [M] to [N, M]."""
    return unsqueeze(a, 1) * unsqueeze(b, 0)


# --- of each element ---
def leaky_relu(x, negative_slope=0.01):
    """x, or negative_slope * x where x is negative."""
    return _redco.relu(x) - negative_slope * _redco.relu(-x)


def elu(x, alpha=1.0):
    """x, or alpha * (exp(x) - 1) where x is negative."""
    return _redco.relu(x) + alpha * (_redco.exp(-_redco.relu(-x)) - 1)


def huber_loss(x, target, delta=1.0):
    """For each element: half the square of the error up to delta, linear beyond it."""
    error = abs(x - target)
    inside = error.clamp(high=delta)
    return inside * (error - 0.5 * inside)


def binary_cross_entropy_with_logits(logits, target):
    """For each element: -log of the probability of a target in [0, 1]."""
    return _redco.softplus(logits) - logits * target


# --- new tensors ---
def _filled(shape, value, dtype):
    if len(shape) == 2 and isinstance(shape[1], str):  # zeros([2, 3], "int32")
        shape, dtype = shape[:1], shape[1]
    return full(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, value, dtype)


def zeros(*shape, dtype="float32"):
    """A tensor of zeros: zeros(2, 3) or zeros([2, 3])."""
    return _filled(shape, 0, dtype)


def ones(*shape, dtype="float32"):
    """A tensor of ones."""
    return _filled(shape, 1, dtype)


def eye(n, m=None):
    """[n, m], 1 where row and column are equal."""
    return tensor(np.eye(n, m, dtype=np.float32))


def linspace(start, stop, steps):
    """`steps` numbers from start to stop."""
    return tensor(np.linspace(start, stop, steps, dtype=np.float32))


def full_like(x, value):
    """A constant with the shape, type and placement of x."""
    return _redco.zeros_like(x) + value


def tensor(values, dtype=None):
    """A constant of numbers, lists or an array: float32, int32 for integers, or `dtype`."""
    if isinstance(values, Tensor):
        return values if dtype is None else values.cast(_type_name(dtype))
    array = np.asarray(values)
    if array.dtype.kind not in "iubf":
        raise _redco.UsageError(f"a tensor of values of the type {array.dtype}; expected numbers of equal shapes")
    kind = _type_name(dtype) if dtype is not None else "int32" if array.dtype.kind in "iub" else "float32"
    if kind == "int32" and array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise _redco.UsageError("tensors of integers have 32 bits; the values exceed them")
    return _redco._from_array(np.asarray(array, dtype=kind, order="C"), kind)


def _type_name(dtype):
    names = {float: "float32", int: "int32", "float": "float32", "int": "int32"}
    kind = names.get(dtype) or (dtype if isinstance(dtype, str) else np.dtype(dtype).name)
    if kind not in ("int32", "float32", "float64"):
        raise _redco.UsageError(f"tensors have the types float32, float64 and int32, not {kind}")
    return kind


# --- methods ---
_described = Tensor.__repr__


def shown(x):
    """For print() in a plain Python: the values, of one rank."""
    try:
        values = x.numpy()
    except _redco.Error:  # weights in a storage type
        return _described(x)
    if values.ndim != x.ndim:  # in vmap
        return _described(x)
    return f"redco.Tensor({np.array2string(values, separator=', ', prefix='redco.Tensor(')}, {x.dtype})"


def _size(x, dim=None):
    """The shape, or the size of a dim."""
    return x.shape if dim is None else x.shape[_dim(x, dim)]


def _array(x, dtype=None, copy=None):
    values = x.numpy()
    return values if dtype is None else values.astype(dtype)


def _modulo(x, n):
    return x - (x // n) * n


def _floor_divide(x, n):
    if x.dtype != "int32" or not isinstance(n, (int, np.integer)):
        raise TypeError("// and % are those of int32 tensors and an integer")
    toward_zero = (x.cast("float64") / tensor(float(n), "float64")).int()  # exact for 32 bits
    rest = x - toward_zero * n
    return toward_zero - (rest * (1 if n > 0 else -1) < 0).int()


def _only_masks(a, b):
    if any(isinstance(x, Tensor) and x.dtype == "int32" for x in (a, b)):
        raise TypeError("&, | and ~ are those of masks, the results of comparisons, not of int32 tensors")


def _and(a, b):
    _only_masks(a, b)
    return a * b


def _or(a, b):
    _only_masks(a, b)
    return a + b - a * b


def _invert(a):
    _only_masks(a, a)
    return 1 - a


def _transposed(x):
    return x.permute(list(reversed(range(x.ndim))))


_METHODS = (unsqueeze, squeeze, flatten, expand, split, chunk, unbind, flip, roll, gather, tril, triu, amax, amin,
            _max, _min, argmax, argmin, var, std, norm)
for _f in _METHODS:
    setattr(Tensor, _f.__name__, _f)
for _name, _f in {
    "size": _size, "view": Tensor.reshape, "clip": Tensor.clamp, "logsumexp": Tensor.log_sum_exp,
    "numel": lambda x: math.prod(x.shape), "dim": lambda x: x.ndim, "tolist": lambda x: x.numpy().tolist(),
    "double": lambda x: x.cast("float64"), "long": lambda x: x.int(), "__array__": _array,
    "T": property(_transposed), "mT": property(lambda x: x.transpose(-2, -1)),
    "__floordiv__": _floor_divide, "__mod__": _modulo, "__and__": _and, "__rand__": _and, "__or__": _or,
    "__ror__": _or, "__invert__": _invert, "__rpow__": lambda x, base: _redco.exp(x * (
        base.log() if isinstance(base, Tensor) else math.log(base))),
}.items():
    setattr(Tensor, _name, _f)
