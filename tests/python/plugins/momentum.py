"""The built-in sgd with momentum 0.9, to the bit; an optimizer with state of other shapes; and mistakes."""
import os

import redco


class Momentum(redco.Optimizer):
    elementwise = True
    state = ("momentum_buffer",)

    class Settings:
        momentum: float = 0.9

    def update(self, param, gradient, state, ctx):
        mistake = os.environ.get("MISTAKE")
        if mistake == "exception":
            return 1 / 0
        if mistake == "shape":
            return param + redco.zeros([7]), state
        if mistake == "state":
            return param, {}
        if mistake == "sum":
            return param - gradient.sum() * ctx.learning_rate, state
        d = gradient + ctx.weight_decay * param
        buffer = self.settings.momentum * state["momentum_buffer"] + d
        return param - ctx.learning_rate * buffer, {"momentum_buffer": buffer}
