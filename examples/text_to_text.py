"""Text to text with an encoder-decoder model: translation, summarization."""
import redco


class TextToText(redco.Pipeline):
    reads = "seq2seq"  # source, and the target's tokens in `labels`
    unit = "tokens"

    def collate(self, examples, shape):
        batch = {"source": redco.rows(examples, "source", shape.length),
                 "mask": redco.pad_rows([[1] * len(e["source"]) for e in examples], shape.length)}
        if "labels" not in examples[0]:
            return batch
        starts = [self.model.decoder_input_ids(e["labels"]) for e in examples]  # the target, shifted by one
        batch["decoder_input"] = redco.pad_rows(starts, shape.target_length)
        batch["labels"] = redco.rows(examples, "labels", shape.target_length, fill=-100)
        return batch, (batch["labels"] >= 0).sum()

    def encode(self, params, batch, options=redco.ApplyOptions()):
        return self.model.encode(params, {"input_ids": batch["source"], "key_mask": batch["mask"]}, options)

    def loss(self, params, batch, ctx):
        memory = self.encode(params, batch, ctx.apply)
        logits = self.model.apply(params, batch["decoder_input"], memory=memory, memory_mask=batch["mask"],
                                  options=ctx.apply)
        return redco.cross_entropy(logits, batch["labels"]).sum()

    predicts_any_number = True

    def predict(self, params, examples, ctx):
        def encode(rows):
            batch = self.batch(rows)
            return self.encode(params, batch), batch["mask"].numpy()

        return self.predict_text(params, examples, ctx, encode)
