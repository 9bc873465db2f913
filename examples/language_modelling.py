"""Causal language modelling."""
import math

import redco


class LanguageModelling(redco.Pipeline):
    unit = "tokens"

    def collate(self, examples, shape):
        labels = redco.rows(examples, "labels", shape.length, fill=-100)
        return {"input_ids": redco.rows(examples, "input_ids", shape.length), "labels": labels}, (labels >= 0).sum()

    def loss(self, params, batch, ctx):
        logits = self.model.apply(params, batch["input_ids"], options=ctx.apply)
        return redco.cross_entropy(logits, batch["labels"]).sum()

    def metrics(self, means):
        return {"loss": means["loss"], "perplexity": math.exp(means["loss"])}
