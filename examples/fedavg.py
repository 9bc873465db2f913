"""Federated averaging (McMahan et al. 2017). An example is a client in a round; a step is a round."""
import numpy as np
import redco


class FedAvg(redco.Pipeline):
    reads = redco.Images((1, 28, 28), n_classes=10)
    terms = ("loss", "accuracy")
    shuffles = False

    class Settings:
        n_clients: int = 100
        shards_per_client: int = 2
        local_epochs: int = 5
        local_batch_size: int = 10
        local_learning_rate: float = 0.1
        rounds_per_epoch: int = 20

    def params(self):
        p = redco.Params()
        p.linear("net.fc1", 64, 784, std=(2 / 784) ** 0.5)
        p.linear("net.fc2", 10, 64, std=(1 / 64) ** 0.5)
        return p

    def deal(self):
        """Each client gets shards of the images, which are sorted by class."""
        s = self.settings
        self.x, self.y = (redco.rows(list(self.train_data), k) for k in ("pixel_values", "label"))
        dealt = redco.permutation(s.n_clients * s.shards_per_client, self.job.seed)
        shards = np.array_split(self.y[:, 0].argsort(kind="stable"), len(dealt))
        self.images = [[] for _ in range(s.n_clients)]
        for client, shard in zip(dealt // s.shards_per_client, shards):
            self.images[client] += shard.tolist()

    def source(self, params, ctx):
        if not hasattr(self, "images"):
            self.deal()
        s, clients = self.settings, []
        for r in range(ctx.epoch * s.rounds_per_epoch, (ctx.epoch + 1) * s.rounds_per_epoch):
            for client in redco.permutation(s.n_clients, self.job.seed, 1 + r)[: self.job.global_batch_size]:
                mine, rows = np.array(self.images[client]), []
                for k in range(s.local_epochs):
                    visit = 2**40 + (r * s.n_clients + int(client)) * s.local_epochs + k
                    rows += mine[redco.permutation(len(mine), self.job.seed, visit)].tolist()
                    rows += [-1] * (-len(rows) % s.local_batch_size)
                clients.append({"rows": rows, "n": [float(len(mine))]})
        return clients

    def collate(self, examples, shape):
        if "rows" in examples[0]:
            rows, n = redco.rows(examples, "rows", shape.length, fill=-1), redco.rows(examples, "n")
            x, y = self.x[rows], np.where(rows >= 0, self.y[rows, 0], -100)
        else:  # an image of an evaluation
            x, y = redco.rows(examples, "pixel_values")[:, None], redco.rows(examples, "label")
            n = np.ones(y.shape)
        return {"x": x, "y": y, "n": n}, {"loss": n.sum(), "accuracy": n.sum()}

    def logits(self, params, x):  # [clients, rows, classes], of common weights or those of each client
        h = redco.relu(redco.linear(x, params["net.fc1.weight"]) + params["net.fc1.bias"])
        return redco.linear(h, params["net.fc2.weight"]) + params["net.fc2.bias"]

    def loss(self, params, batch, ctx):
        s, x, y, n = self.settings, batch["x"], batch["y"], batch["n"][:, :, None]
        if not ctx.train:
            logits = self.logits(params, x)
            return {"loss": redco.cross_entropy(logits, y).sum(), "accuracy": redco.count_right(logits, y)}
        own, seen = {k: w.detach() + 0 * n for k, w in params.items()}, 0  # weights of each client
        for i in range(0, y.shape[1], s.local_batch_size):
            own = {k: w.watched() for k, w in own.items()}
            part = y[:, i : i + s.local_batch_size]
            nll = redco.cross_entropy(self.logits(own, x[:, i : i + s.local_batch_size]), part)
            mean = nll / redco.clamp((part >= 0).sum(1, keepdim=True), 1)
            steps = redco.grad(mean.sum(), list(own.values()))
            with redco.no_grad():
                own = {k: w - s.local_learning_rate * g for (k, w), g in zip(own.items(), steps)}
            seen = nll.sum() + seen
        # A term whose gradient is the server's weights minus the mean of the clients'.
        pull = 0
        for k, w in params.items():
            pull = (w * (n.sum() * w - (n * own[k]).sum(0).reshape(w.shape)).detach()).sum() + pull
        return {"loss": pull + (seen * (1 / s.local_epochs) - pull).detach()}

    def metrics(self, means):
        return means
