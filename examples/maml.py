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
        return redco.vmap(lambda xs: self.model.apply_encoder(params, {"pixel_values": xs[0]}, options), [x])[0]

    def loss(self, params, batch, ctx):
        def loss(params, part):  # the sum over tasks of the mean over images
            logits = self.logits(params, batch[part + "_x"], ctx.apply)
            right = redco.count_right(logits, batch[part + "_y"]) * (1 / logits.shape[1])
            return redco.cross_entropy(logits, batch[part + "_y"]).mean(1).sum(), right

        order = "second" if ctx.train else "none"
        fast = redco.FastWeights(self.model.params, params, batch.shape.rows, order)
        for k in range(self.settings.inner_steps):
            with ctx.scope("inner", k):
                fast.descend(lambda own: loss(own, "support")[0], self.settings.inner_learning_rate)
        return dict(zip(self.terms, loss(fast.params(), "query")))
