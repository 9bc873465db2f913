"""Bidirectional attention in a prefix, a moving average of the model, steering, and what a step logs."""

import redco


class Points:
    """A data set with a length and an index only, which never ends if it is iterated."""

    def __len__(self):
        return 32

    def __getitem__(self, i):
        return {"ids": [(7 * i + 3 * t) % 250 for t in range(12)], "prefix": i % 5, "source": f"item {i}"}


class Hooks(redco.Pipeline):
    terms = ("loss", "distance")

    def open(self, request):
        return None if request.evaluation else Points()

    def collate(self, examples, shape):
        ids = redco.rows(examples, "ids")
        return {"ids": ids[:, :-1], "targets": ids[:, 1:], "prefix": redco.rows(examples, "prefix")}

    def extra_params(self):
        p = redco.Params()
        p.copies(self.model.params, "ema.")
        p.add("direction", [1, 1, self.model.hidden_size], init=[[[0.01] * self.model.hidden_size]])
        return p

    def groups(self):
        rate = lambda step: 0.5 + 0.25 * (step >= self.job.max_steps // 2)
        return [redco.ParamGroup("ema", has="ema.", ema_of=("ema.", ""), tau=rate),
                redco.ParamGroup("own", has=lambda name: not name.startswith("ema."))]

    def loss(self, params, batch, ctx):
        ids = batch["ids"]
        bias = redco.prefix_bias(batch["prefix"], ids.shape[1])
        seen = redco.Activations(["layers.1.mlp"], replace={"layers.0": lambda x: x + params["direction"]})
        options = ctx.options(causal=False, attention_bias=bias, activations=seen)
        logits = self.model.apply(params, ids, options=options)
        ema = self.model.apply(params.with_prefix("ema."), ids, options=ctx.options(causal=False, attention_bias=bias))
        sparsity = (seen["layers.1.mlp"] ** 2).mean(-1).sum()
        loss = redco.cross_entropy(logits, batch["targets"]).sum() + 0.1 * sparsity
        return {"loss": loss, "distance": ((logits - ema.detach()) ** 2).mean(-1).sum().detach()}

    def after_step(self, params, means, ctx):
        return {"progress": (ctx.step + 1) / ctx.total_steps, "twice": 2 * means["distance"],
                "direction": params["direction"]} if ctx.logged else None

    def model_files(self):
        return {"notes/why.txt": "for a test"}
