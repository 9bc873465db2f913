"""Text to image: rectified flow (Liu et al. 2022) with classifier-free guidance (Ho & Salimans 2022)."""
import redco


class TextToImage(redco.Pipeline):
    reads = "text_to_image"  # pixels, and the caption's tokens in `labels`
    unit = "images"

    class Settings:
        caption_dropout: float = 0.1
        guidance_scale: float = 3.0
        num_inference_steps: int = 20

    def collate(self, examples, shape):
        batch = {"caption": redco.rows(examples, "labels", shape.length),
                 "mask": redco.pad_rows([[1] * len(e["labels"]) for e in examples], shape.length)}
        if "pixels" in examples[0]:
            batch["pixels"] = redco.rows(examples, "pixels").reshape(-1, *self.model.image_shape)
        return batch

    def velocity(self, params, batch, mask, image, time, options):
        memory = self.model.encode(params, {"input_ids": batch["caption"], "key_mask": mask}, options)
        inputs = {"pixel_values": image, "features": time, "memory": memory, "key_mask": mask}
        return self.model.apply_encoder(params, inputs, options)

    def loss(self, params, batch, ctx):
        image, rows = batch["pixels"], batch.shape.rows
        time = redco.random_uniform([rows, 1], "time")
        noise = redco.random_normal(image.shape, "noise")
        mask = batch["mask"]
        if ctx.train:  # some captions are hidden, so that the model also learns to draw without
            shown = redco.random_uniform([rows, 1], "caption") >= self.settings.caption_dropout
            mask = (mask.to_float() * shown).cast("int32")
        noisy = image + time.reshape([rows, 1, 1, 1]) * (noise - image)
        found = self.velocity(params, batch, mask, noisy, time, ctx.apply)
        return ((found - (noise - image)) ** 2).mean([1, 2, 3]).sum()

    def predict(self, params, examples, ctx):
        s, batch, n = self.settings, self.batch(examples), len(examples)
        x = redco.random_normal([n, *self.model.image_shape], "start")
        for k in range(s.num_inference_steps, 0, -1):
            time = redco.full([n, 1], k / s.num_inference_steps)
            v = self.velocity(params, batch, batch["mask"], x, time, ctx.apply)
            free = self.velocity(params, batch, redco.zeros_like(batch["mask"]), x, time, ctx.apply)
            x = x - (free + s.guidance_scale * (v - free)) * (1 / s.num_inference_steps)
        return [{"prediction": redco.png_data_uri(image)} for image in x.numpy()]
