"""Pipeline lm with the default of collate() and of weights, which the environment may break."""

import os

import redco


class LM(redco.Pipeline):
    unit = os.environ.get("UNIT", "tokens")

    def collate(self, examples, shape):
        fields = super().collate(examples, shape)
        return {"targets" if k == os.environ.get("RENAME") else k: x for k, x in fields.items()}

    def loss(self, params, batch, ctx):
        logits = self.model.apply(params, batch["input_ids"], options=ctx.apply)
        return redco.cross_entropy(logits, batch["labels"]).sum()
