"""Classification of texts: cross-entropy over the classes."""
import redco


class Classification(redco.Pipeline):
    reads = "classification"  # input_ids, token_type_ids, and the class in `targets`
    terms = ("loss", "accuracy")

    def collate(self, examples, shape):
        batch = {k: redco.rows(examples, k, shape.length) for k in ("input_ids", "token_type_ids")}
        batch["key_mask"] = redco.pad_rows([[1] * len(e["input_ids"]) for e in examples], shape.length)
        if "targets" in examples[0]:
            batch["labels"] = redco.rows(examples, "targets")[:, 0].astype("int32")
        return batch

    def logits(self, params, batch, options):
        inputs = {k: batch[k] for k in ("input_ids", "token_type_ids", "key_mask")}
        return self.model.apply_encoder(params, inputs, options)

    def loss(self, params, batch, ctx):
        logits = self.logits(params, batch, ctx.apply)
        return {"loss": redco.cross_entropy(logits, batch["labels"]).sum(),
                "accuracy": redco.count_right(logits, batch["labels"])}

    def predict(self, params, examples, ctx):
        best = self.logits(params, self.batch(examples), ctx.apply).numpy().argmax(-1)
        return [{"label_id": int(k)} for k in best]
