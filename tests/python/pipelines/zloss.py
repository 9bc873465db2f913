import redco

class ZLoss(redco.Pipeline):
    unit = "tokens"
    class Settings:
        coefficient: float = 1e-4

    def collate(self, examples, shape):
        ids = redco.rows(examples, "input_ids", shape.length)
        labels = redco.rows(examples, "labels", shape.length, fill=-100)
        return {"input_ids": ids, "labels": labels}, {"loss": (labels >= 0).sum()}

    def loss(self, params, batch, ctx):
        logits = self.model.apply(params, batch["input_ids"], options=ctx.apply)
        nll = redco.cross_entropy(logits, batch["labels"])
        z = nll + redco.pick(logits, batch["labels"])
        return (nll + self.settings.coefficient * z ** 2).sum()
