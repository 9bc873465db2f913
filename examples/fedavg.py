"""Federated averaging (McMahan et al. 2017). An example is a client in a round; a step is a round."""
import functools

import numpy as np
import redco


class FedAvg(redco.Pipeline):
    reads = redco.Images((1, 28, 28), n_classes=10)
    terms = ("loss", "accuracy")
    shuffles = False

    class Settings:
        n_clients: int = 100
        local_epochs: int = 5
        local_batch_size: int = 10
        local_learning_rate: float = 0.1

    def params(self):
        p = redco.Params()
        p.linear("net.fc1", 64, 784, std=(2 / 784) ** 0.5)
        p.linear("net.fc2", 10, 64, std=(1 / 64) ** 0.5)
        return p

    @functools.cached_property
    def images(self):
        return tuple(redco.rows(list(self.train_data), k) for k in ("pixel_values", "label"))

    def clients(self):
        """The images of each client: two shards of them, sorted by class."""
        owner = redco.permutation(2 * self.settings.n_clients, self.job.seed) // 2
        shards = np.array_split(self.images[1][:, 0].argsort(kind="stable"), len(owner))
        return [np.concatenate([shards[k] for k in np.flatnonzero(owner == c)]) for c in range(len(owner) // 2)]

    def source(self, params, ctx):
        s, seed, examples, clients = self.settings, self.job.seed, [], self.clients()
        for r in range(20 * ctx.epoch, 20 * ctx.epoch + 20):  # rounds
            for client in redco.permutation(s.n_clients, seed, 1 + r)[: self.job.global_batch_size].tolist():
                mine, visit = clients[client], 2**40 + (r * s.n_clients + client) * s.local_epochs
                orders = [redco.permutation(len(mine), seed, visit + k) for k in range(s.local_epochs)]
                padding = np.full(-len(mine) % s.local_batch_size, -1)  # of the last batch of a local epoch
                examples.append({"rows": np.concatenate([np.append(mine[order], padding) for order in orders])})
        return examples

    def collate(self, examples, shape):
        if "rows" in examples[0]:
            rows, times = redco.rows(examples, "rows", shape.length, fill=-1), self.settings.local_epochs
            x, y = self.images[0][rows], np.where(rows >= 0, self.images[1][rows, 0], -100)
        else:  # an image of an evaluation
            x, y, times = redco.rows(examples, "pixel_values")[:, None], redco.rows(examples, "label"), 1
        n = (y >= 0).sum(1) / times  # images
        return {"x": x, "y": y, "n": n}, dict.fromkeys(self.terms, n.sum())

    def logits(self, params, x):  # [clients, rows, classes], of common weights or those of each client
        h = redco.relu(redco.linear(x, params["net.fc1.weight"]) + params["net.fc1.bias"])
        return redco.linear(h, params["net.fc2.weight"]) + params["net.fc2.bias"]

    def loss(self, params, batch, ctx):
        s, x, y, n = self.settings, batch["x"], batch["y"], batch["n"].reshape([-1, 1, 1])
        if not ctx.train:
            logits = self.logits(params, x)
            return {"loss": redco.cross_entropy(logits, y).sum(), "accuracy": redco.count_right(logits, y)}
        own, seen = {k: (w.detach() + 0 * n).watched() for k, w in params.items()}, 0  # weights of each client
        for i in range(0, y.shape[1], s.local_batch_size):
            mine = y[:, i : i + s.local_batch_size]
            nll = redco.cross_entropy(self.logits(own, x[:, i : i + s.local_batch_size]), mine)
            mean = nll / redco.clamp((mine >= 0).sum(1, keepdim=True), 1)
            steps = redco.grad(mean.sum(), list(own.values()))
            own = {k: (w - s.local_learning_rate * g).detach().watched() for (k, w), g in zip(own.items(), steps)}
            seen += nll.sum()
        # A term whose gradient is the server's weights minus the mean of the clients'.
        pull = sum((w * (n.sum() * w - (n * own[k]).sum(0).reshape(w.shape)).detach()).sum()
                   for k, w in params.items())
        return {"loss": pull + (seen * (1 / s.local_epochs) - pull).detach()}
