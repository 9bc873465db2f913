"""Image to text: captions by a vision encoder and a text decoder."""
import redco


class ImageToText(redco.Pipeline):
    reads = "captioning"  # pixels, and the caption's tokens in `labels`
    unit = "tokens"

    def collate(self, examples, shape):
        labels = redco.rows(examples, "labels", shape.length, fill=-100)
        starts = [self.model.decoder_input_ids(e["labels"]) for e in examples]  # the caption, shifted by one
        batch = {"pixels": redco.rows(examples, "pixels").reshape(-1, *self.model.image_shape), "labels": labels,
                 "decoder_input": redco.pad_rows(starts, shape.length)}
        return batch, (labels >= 0).sum()

    def loss(self, params, batch, ctx):
        memory = self.model.encode(params, {"pixel_values": batch["pixels"]}, ctx.apply)
        logits = self.model.apply(params, batch["decoder_input"], memory=memory, options=ctx.apply)
        return redco.cross_entropy(logits, batch["labels"]).sum()

    predicts_any_number = True

    def predict(self, params, examples, ctx):
        def encode(rows):
            pixels = redco.rows(rows, "pixels").reshape(-1, *self.model.image_shape)
            return self.model.encode(params, {"pixel_values": redco.tensor(pixels)})

        return self.predict_text(params, examples, ctx, encode)
