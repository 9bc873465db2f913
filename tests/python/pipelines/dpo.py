import redco


class DPO(redco.Pipeline):
    terms = ("loss", "accuracy")
    unit = "pairs"

    class Settings:
        beta: float = 0.1

    def example(self, record):
        prompt = self.prompt_ids(record["prompt"])
        end = [self.tokenizer.eos_id]
        out = {k: prompt + self.tokenizer.encode(record[k], add_special=False) + end for k in ("chosen", "rejected")}
        return {**out, "prompt": prompt}

    def collate(self, examples, shape):
        fields = {}
        for k in ("chosen", "rejected"):
            rows, _ = self.token_rows(shape, [(e[k], len(e["prompt"])) for e in examples], prefix=k + ".")
            fields.update(rows)
        return fields

    def loss(self, params, batch, ctx):
        theirs, fixed = self.reference_model(params)
        reward = {}
        for i, k in enumerate(("chosen", "rejected")):
            with ctx.scope("answer", i):
                mine = self.token_log_probs(params, batch, ctx, prefix=k + ".").sum(1)
            before = self.token_log_probs(fixed, batch, prefix=k + ".", model=theirs).sum(1)
            reward[k] = mine - before.detach()
        margin = self.settings.beta * (reward["chosen"] - reward["rejected"])
        return {"loss": -redco.log_sigmoid(margin).sum(), "accuracy": (margin > 0).sum()}
