import redco


class Sourced(redco.Pipeline):
    """source() sets what collate() reads: an error in a run that does not call it."""

    def params(self):
        p = redco.Params()
        p.add("w", [1], init=1.0)
        return p

    def source(self, params, ctx):
        self.scale = 2.0
        return [{"x": float(i)} for i in range(8)]

    def collate(self, examples, shape):
        return {"x": self.scale * redco.rows(examples, "x")}

    def loss(self, params, batch, ctx):
        return (params["w"] * batch["x"]).sum()
