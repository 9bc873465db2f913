"""Model-agnostic meta-learning (Finn et al. 2017): weights that a few gradient steps adapt to a task."""
import redco


class Maml(redco.Pipeline):
    reads = "maml"  # tasks: support_x, support_y, query_x, query_y
    terms = ("loss", "accuracy")
    unit = "tasks"

    class Settings:
        inner_steps: int = 1
        inner_learning_rate: float = 0.4

    def collate(self, examples, shape):
        batch = {k: redco.rows(examples, k) for k in ("support_x", "support_y", "query_x", "query_y")}
        for k in ("support_x", "query_x"):
            batch[k] = batch[k].reshape(len(examples), -1, *self.model.image_shape)
        return batch

    def logits(self, params, x, options):  # [tasks, images, classes]; params differ between tasks
        return redco.vmap(lambda x: self.model.apply_encoder(params, {"pixel_values": x}, options), [x])[0]

    def loss(self, params, batch, ctx):
        def support_loss(params):
            return redco.cross_entropy(self.logits(params, batch["support_x"], ctx.apply), batch["support_y"]).mean(1).sum()

        fast = redco.FastWeights(self.model.params, params, batch.shape.rows, "second" if ctx.train else "none")
        for k in range(self.settings.inner_steps):
            with ctx.scope("inner", k):
                fast.descend(support_loss, self.settings.inner_learning_rate)
        logits = self.logits(fast.params(), batch["query_x"], ctx.apply)
        right = redco.count_right(logits, batch["query_y"])
        return {"loss": redco.cross_entropy(logits, batch["query_y"]).mean(1).sum(),
                "accuracy": right * (1 / batch["query_y"].shape[1])}

    def metrics(self, means):
        return means
