"""A loss of the whole batch: InfoNCE of points and their noisy copies."""

import numpy as np
import redco


class Pairs(redco.EmbeddingPipeline):
    def params(self):
        p = redco.Params()
        p.linear("net", out=8, in_=4, std=0.5)
        return p

    def open(self, request):
        rng = np.random.default_rng(0)
        for _ in range(32):
            a = rng.normal(size=4)
            yield {"a": a, "b": a + 0.1 * rng.normal(size=4)}

    def embed(self, params, batch, ctx):
        return {k: redco.dense(params, "net", batch[k]) for k in ("a", "b")}

    def loss(self, params, batch, ctx):
        scores = redco.matmul(batch["a"], batch["b"], trans_b=True)
        return redco.log_sum_exp(scores).sum() - (batch["a"] * batch["b"]).sum()
