import redco


class Bigram(redco.Pipeline):
    """A language model without a model of redco: texts become rows of tokens, as in pipeline lm."""

    unit = "tokens"

    def params(self):
        p = redco.Params()
        p.embedding("table", self.tokenizer.vocab_size, 16)
        p.linear("head", self.tokenizer.vocab_size, 16)
        return p

    def loss(self, params, batch, ctx):
        x = redco.embedding(params["table"], batch["input_ids"])
        return redco.cross_entropy(redco.dense(params, "head", x), batch["labels"]).sum()
