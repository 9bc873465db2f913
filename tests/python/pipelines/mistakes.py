import os

import helper
import redco

MISTAKE = os.environ.get("MISTAKE", "")


class Mistakes(redco.Pipeline):
    class Settings:
        alpha: float = 0.5

    def collate(self, examples, shape):
        if MISTAKE == "field":
            examples[0]["inputs"]
        if MISTAKE == "rows":
            return {"input_ids": [[1, 2]]}
        return {
            "input_ids": redco.rows(examples, "input_ids", shape.length),
            "labels": redco.rows(examples, "labels", shape.length, fill=-100),
        }

    def loss(self, params, batch, ctx):
        if MISTAKE == "exception":
            1 / 0
        if MISTAKE == "helper":
            helper.broken(1)
        if MISTAKE == "none":
            return None
        while MISTAKE == "endless":
            pass
        logits = self.model.apply(params, batch["input_ids"], options=ctx.apply)
        if MISTAKE == "shape":
            logits = logits + redco.zeros([3, 5, 7])
        if MISTAKE == "parameter":
            params["transformer.wte.wieght"]
        if MISTAKE == "branch" and logits.sum() > 0:
            return logits.sum()
        losses = redco.cross_entropy(logits, batch["labels"])
        if MISTAKE == "infinite":
            losses = redco.log(losses * 0)
        if MISTAKE == "term":
            return {"loss": losses.sum(), "other": logits.sum()}
        if MISTAKE == "recompute":
            return redco.recompute(lambda x: x * helper.broken(1), losses).sum()
        return losses.sum()
