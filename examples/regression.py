"""Regression from texts to a number: the squared error."""
import redco


class Regression(redco.Pipeline):
    reads = "regression"  # input_ids, token_type_ids, and the number in `targets`

    def collate(self, examples, shape):
        batch = {k: redco.rows(examples, k, shape.length) for k in ("input_ids", "token_type_ids")}
        batch["key_mask"] = redco.pad_rows([[1] * len(e["input_ids"]) for e in examples], shape.length)
        if "targets" in examples[0]:
            batch["targets"] = redco.rows(examples, "targets")
        return batch

    def outputs(self, params, batch, options):
        inputs = {k: batch[k] for k in ("input_ids", "token_type_ids", "key_mask")}
        return self.model.apply_encoder(params, inputs, options)  # [rows, 1]

    def loss(self, params, batch, ctx):
        return ((self.outputs(params, batch, ctx.apply) - batch["targets"]) ** 2).sum()

    def predict(self, params, examples, ctx):
        y = self.outputs(params, self.batch(examples), ctx.apply).numpy()[:, 0]
        return [{"prediction": float(v)} for v in y]
