"""Deep equilibrium (Bai et al. 2019): a fixed point, and its implicit gradient."""
import numpy as np
import redco


class Deq(redco.Pipeline):
    terms = ("loss", "residual")

    class Settings:
        width: int = 16
        solver_steps: int = 25

    def open(self, request):
        r = np.random.default_rng(0)
        for i in range(128):
            x = r.uniform(-2, 2, size=3)
            yield {"x": x, "y": [np.sin(x).prod()]}

    def params(self):
        p, r, w = redco.Params(), np.random.default_rng(1), self.settings.width
        for name, o, i, g in (("inject", w, 3, 1.0), ("hidden", w, w, 0.5), ("out", 1, w, 1.0)):
            p.linear(name, o, i, init=(g * r.normal(size=(o, i)) / i**0.5, np.zeros(o)))
        return p

    def f(self, params, z, x):
        return redco.tanh(redco.dense(params, "hidden", z) + redco.dense(params, "inject", x))

    def loss(self, params, batch, ctx):
        x = batch["x"]
        with redco.no_grad():
            z = redco.zeros(x.shape[0], self.settings.width)
            for _ in range(self.settings.solver_steps):
                z = self.f(params, z, x)
        z = z.watched()
        error = (redco.dense(params, "out", z) - batch["y"]).square().sum()
        step = self.f(params, z, x)
        residual = (step - z).square().sum().detach()
        if not ctx.train:
            return {"loss": error, "residual": residual}
        g = redco.grad(error, z, retain=True).detach()
        u = g
        for _ in range(self.settings.solver_steps):  # u = g + J^T u
            u = g + redco.grad((step * u).sum(), z, retain=True).detach()
        implicit = (self.f(params, z.detach(), x) * u).sum()
        return {"loss": error + implicit - implicit.detach(), "residual": residual}
