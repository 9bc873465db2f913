"""Lion (Chen et al. 2023): the sign of an average."""
import redco


class Lion(redco.Optimizer):
    elementwise = True
    state = ("momentum",)

    class Settings:
        beta1: float = 0.9
        beta2: float = 0.99

    def update(self, param, gradient, state, ctx):
        b1, b2 = self.settings.beta1, self.settings.beta2
        direction = (b1 * state["momentum"] + (1 - b1) * gradient).sign()
        new = param - ctx.learning_rate * (direction + ctx.weight_decay * param)
        return new, {"momentum": b2 * state["momentum"] + (1 - b2) * gradient}
