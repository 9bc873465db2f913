"""The gradient by a mean of its squares in each row: state of another shape, on shards."""
import redco


class RowScaled(redco.Optimizer):
    name = "rows"
    on_shards = True

    def state(self, spec):
        return {"squares": [*spec.shape[:-1], 1]}

    def update(self, param, gradient, state, ctx):
        assert ctx.spec.shape == param.shape and ctx.spec.kind in ("linear", "embedding", "norm", "bias"), ctx.spec
        squares = 0.9 * state["squares"] + 0.1 * gradient.square().mean(-1, keepdim=True)
        return param - ctx.learning_rate * gradient / (squares.sqrt() + 1e-6), {"squares": squares}
