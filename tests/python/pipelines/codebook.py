"""Sums of a step that after_update() turns into buffers (a codebook), and gradients inside of a loss."""
import numpy as np
import redco


class Codebook(redco.Pipeline):
    terms = ("loss", "adapted")

    def params(self):
        rng, p = np.random.default_rng(0), redco.Params()
        p.linear("encoder", 2, 3, init=rng.normal(size=(2, 3)))
        code = rng.normal(size=(4, 2))
        p.add("code", [4, 2], init=code, buffer=True)
        p.add("total", [4, 2], init=code, buffer=True)
        p.add("count", [4], init="ones", buffer=True)
        p.add("rate", [1], init=0.1)
        return p

    def open(self, request):
        return [{"x": x} for x in np.random.default_rng(1).normal(size=(8, 3))]

    def loss(self, params, batch, ctx):
        z = redco.dense(params, "encoder", batch["x"])
        distance = ((z.unsqueeze(1) - params["code"]) ** 2).sum(-1)
        used = redco.one_hot(distance.argmin(1), 4)
        ctx.add_sum("count", used.sum(0))
        ctx.add_sum("total", redco.einsum("nk,nd->kd", used, z))
        loss = ((z - used @ params["code"]) ** 2).sum()
        z = z.watched()
        z = z - params["rate"] * redco.grad(((z - 1) ** 2).sum(), z, create_graph=True)
        return {"loss": loss + ((z - 1) ** 2).sum(), "adapted": ((z - 1) ** 2).sum()}

    def after_update(self, params, ctx):
        count = 0.5 * params["count"] + 0.5 * ctx.sums["count"]
        total = 0.5 * params["total"] + 0.5 * ctx.sums["total"]
        return {"count": count, "total": total, "code": total / (count[:, None] + 1e-3)}

    def after_step(self, params, means, ctx):
        return {"used": params["count"].sum().item(), "code": params["code"][0, 0].item()}
