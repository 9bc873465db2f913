"""Training with differential privacy, DP-SGD (Abadi et al. 2016)."""
import numpy as np
import redco


class DpSgd(redco.Pipeline):
    reads = redco.Images((1, 28, 28), n_classes=10)
    terms = ("loss", "accuracy")
    shuffles = False  # each step samples every image with the same probability

    class Settings:
        lot_size: int = 100
        clip: float = 1.0
        epsilon: float = 8.0
        delta: float = 1e-5

    def params(self):
        p = redco.Params()
        for name, outputs, inputs in (("net.fc1", 64, 784), ("net.fc2", 64, 64), ("net.fc3", 10, 64)):
            p.linear(name, outputs, inputs, std=inputs**-0.5)
        return p

    def noise(self):
        """The noise of the whole run, in multiples of clip; 0 without data, in a plan."""
        s, job, n = self.settings, self.job, len(self.job.train_data or ())
        lots = -(-n // s.lot_size)
        steps = min(job.max_steps or 2**30, (job.n_epochs or (2**20 if job.max_steps else 1)) * lots)
        return redco.noise_for_epsilon(s.lot_size / n, steps, s.epsilon, s.delta) if n else 0.0

    def source(self, params, ctx):
        s, job, n = self.settings, self.job, len(self.train_data)
        rate, lots, rows = s.lot_size / n, -(-n // s.lot_size), []
        for lot in range(lots):
            drawn = np.flatnonzero(redco.random_uniform([n], f"lot {lot}", batch=False).numpy() < rate)
            if len(drawn) > job.global_batch_size:
                raise ValueError(f"a step has {len(drawn)} images: increase train.global_batch_size")
            rows += [*drawn, *[-1] * (job.global_batch_size - len(drawn))]
        spent = redco.privacy_epsilon(rate, self.noise(), ctx.step + lots, s.delta)
        return {"row": np.array(rows)[:, None]}, {"epsilon": spent}  # after this epoch

    def collate(self, examples, shape):
        x, y = np.zeros((len(examples), 784)), np.full(len(examples), -100)
        for i, e in enumerate(examples):
            if "row" in e:
                e = self.train_data[int(e["row"][0])] if e["row"][0] >= 0 else None
            if e:
                x[i], y[i] = e["pixel_values"], e["label"][0]
        weight = self.settings.lot_size / self.job.global_batch_size if "row" in examples[0] else 1
        return {"x": x, "y": y}, {k: weight * len(examples) for k in self.terms}

    def layers(self, params, x):
        """The inputs and outputs of the layers; the last output is the logits."""
        inputs, outputs = [x], []
        for i in (1, 2, 3):
            outputs.append(redco.dense(params, f"net.fc{i}", inputs[-1]))
            inputs.append(redco.tanh(outputs[-1]))
        return inputs[:3], outputs

    def loss(self, params, batch, ctx):
        inputs, outputs = self.layers(params, batch["x"])
        nll = redco.cross_entropy(outputs[-1], batch["y"])
        if not ctx.train:
            return {"loss": nll.sum(), "accuracy": redco.count_right(outputs[-1], batch["y"])}
        # The gradient of a layer for one example is g x^T, and g for the bias.
        squares = sum((g**2).sum(1) * ((x.detach() ** 2).sum(1) + 1)
                      for x, g in zip(inputs, redco.grad(nll.sum(), outputs, retain=True)))
        kept = redco.clamp(self.settings.clip * redco.rsqrt(squares + 1e-12), high=1).detach()
        private = (kept * nll).sum()
        share = batch.shape.rows / self.job.global_batch_size  # micro-batches add the noise once
        for name, w in params.items():
            noise = redco.random_normal(w.shape, f"noise of {name}", like=w)
            private = private + (w * noise).sum() * (share * self.noise() * self.settings.clip)
        return {"loss": private + (nll.sum() - private).detach()}  # the loss, with the private gradient
