import numpy as np
import redco

class Regress(redco.Pipeline):
    """Its own parameters and its own data."""
    def params(self):
        p = redco.Params()
        p.linear("fc1", out=32, in_=3, std=0.5)
        p.linear("fc2", out=1, in_=32, std=0.2)
        p.add("scale", [1], init=1.0)
        return p

    def open(self, request):
        rng = np.random.default_rng(7 if request.evaluation else 3)
        for i in range(64):
            x = rng.normal(size=3)
            yield {"x": x, "y": float(np.sin(x).sum()), "name": f"point {i}"}

    def loss(self, params, batch, ctx):
        h = redco.tanh(redco.dense(params, "fc1", batch["x"]))
        y = (redco.dense(params, "fc2", h) * params["scale"])[:, 0]
        return ((y - batch["y"]) ** 2).sum()

    def metrics(self, means):
        return {"rmse": means["loss"] ** 0.5}

    def predict(self, params, examples, ctx):
        x = redco.tensor(redco.rows(examples, "x"))
        y = redco.dense(params, "fc2", redco.tanh(redco.dense(params, "fc1", x))).numpy()[:, 0]
        return [{"prediction": float(v)} for v in y]

    def request(self, record):
        return {"x": [float(v) for v in record["x"]]}
