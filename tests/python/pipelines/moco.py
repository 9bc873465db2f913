"""MoCo (He et al. 2020): contrastive learning with a queue of keys of a moving-average encoder."""
import numpy as np
import redco


class Moco(redco.EmbeddingPipeline):
    terms = ("loss", "accuracy")

    class Settings:
        width: int = 16
        queue: int = 64
        momentum: float = 0.99
        temperature: float = 0.2

    def open(self, request):
        r = np.random.default_rng(0)
        centre = r.normal(size=(8, 10))
        for i in range(192):
            base = centre[i % 8] + 0.3 * r.normal(size=10)
            yield {"q": base + 0.1 * r.normal(size=10), "k": base + 0.1 * r.normal(size=10)}

    def params(self):
        p, r, w = redco.Params(), np.random.default_rng(1), self.settings.width
        for name, o, i in (("fc1", 32, 10), ("fc2", w, 32)):
            p.linear("q." + name, o, i, init=(r.normal(size=(o, i)) / i**0.5, np.zeros(o)))
            p.linear("k." + name, o, i, init=("copy", "q." + name))
        queue = r.normal(size=(self.settings.queue, w))
        p.add("queue", [self.settings.queue, w], init=queue / np.linalg.norm(queue, axis=1, keepdims=True), buffer=True)
        return p

    def groups(self):
        return [redco.ParamGroup("query", has="q."),
                redco.ParamGroup("key", ema_of=("k.", "q."), tau=1 - self.settings.momentum)]

    def encode(self, params, prefix, x):
        h = redco.dense(params, prefix + "fc2", redco.relu(redco.dense(params, prefix + "fc1", x)))
        return h / h.norm(dim=1, keepdim=True)

    def embed(self, params, batch, ctx):
        return {"q": self.encode(params, "q.", batch["q"]), "k": self.encode(params, "k.", batch["k"]).detach()}

    def loss(self, params, all, ctx):
        q, k = all["q"], all["k"]
        logits = redco.cat([(q * k).sum(1, keepdim=True), q @ params["queue"].T], 1) / self.settings.temperature
        if ctx.train:
            ctx.add_sum("keys", k)
        zero = logits.argmax(1) * 0
        return {"loss": redco.cross_entropy(logits, zero).sum(), "accuracy": (logits.argmax(1) == 0).sum()}

    def after_update(self, params, ctx):
        keys = ctx.sums["keys"]
        return {"queue": redco.cat([keys, params["queue"][: -keys.shape[0]]], 0)}
