"""redco in Python: pipelines as three functions, and its ops.

    import redco

    class MyPipeline(redco.Pipeline):
        def collate(self, examples, shape): ...
        def loss(self, params, batch, ctx): ...
        def predict(self, params, examples, ctx): ...

A job names the file: `pipeline: ./my_pipeline.py`. docs/python.md explains it; the names are those of
docs/api.md.
"""

import sys

from redco._redco import *  # noqa: F401,F403
from redco import _redco
from redco._redco import Error, UsageError, ContentsError, IoError, ShapeError  # noqa: F401
from redco._pipeline import (  # noqa: F401
    EmbeddingPipeline,
    Images,
    ParamGroup,
    Pipeline,
    pad_rows,
    rows,
)
from redco._tensor import (  # noqa: F401
    amax,
    amin,
    argmax,
    argmin,
    binary_cross_entropy_with_logits,
    chunk,
    einsum,
    elu,
    expand,
    eye,
    flatten,
    flip,
    full_like,
    gather,
    huber_loss,
    leaky_relu,
    linspace,
    norm,
    ones,
    outer,
    roll,
    split,
    squeeze,
    std,
    tensor,
    tril,
    triu,
    unbind,
    unsqueeze,
    var,
    zeros,
)
from redco._plugins import ModelFamily, Optimizer  # noqa: F401
from redco import _tensor, builtin  # noqa: F401

Tensor = _redco.Tensor
cat, bmm, logsumexp = _redco.concat, _redco.matmul, _redco.log_sum_exp

if not hasattr(sys, "_redco_embedded"):
    # A plain Python: ops run on one rank, in this process.
    _redco.ensure_context()
    Tensor.__repr__ = _tensor.shown
from redco._standalone import evaluate, load, plan, predict, run_command, train  # noqa: E402,F401
