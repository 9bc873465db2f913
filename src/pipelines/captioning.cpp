// Image to text: captioning.
#include <mutex>

#include "base/error.h"
#include "ops/create.h"
#include "pipelines/captioned_images.h"
#include "pipelines/pipelines.h"
#include "pipelines/target_text.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class Captioning : public TargetTextPipeline {
 public:
  // Examples of pipeline/caption_dataset.h. pixels [B, channels, height, width]; the decoder's input,
  // positions and labels [B, T].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    const ImageShape& image = model->image_shape();
    Batch b;
    b.shape = s;
    b.fields["pixels"] = value_rows(mine, s, "pixels", {image.channels, image.height, image.width});
    collate_targets(mine, s, b);
    return b;
  }

  // Example.values["pixels"] -> {"prediction": text, "ids": [...], ...}: see predict_text().
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(*model, *tokenizer, params, examples, settings->generation, ctx,
                        [&](std::span<const i64> which) { return encode(params, examples, which); });
  }

  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::image_captioning)
      throw UsageError(
          "[pipeline] pipeline: captioning needs an image-to-text model (vision-encoder-decoder), but {} is "
          "a {} model",
          model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& r) override { return data().open(r); }

  // {"image" (renamed by data.fields) or "prompt": the image's path}
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return data().image_request(json, where);
  }
  bool concurrent_requests() const override { return true; }

  std::string output(const Example& example, const std::string& prediction) const override {
    return named_output(example, prediction, "image");
  }

 protected:
  EncoderInputs encoder_inputs(const Batch& batch) const override {
    EncoderInputs in;
    in.pixel_values = batch["pixels"];
    return in;
  }

 private:
  const CaptionedImages& data() const {
    params();
    std::call_once(opened_,
                   [&] { data_ = std::make_unique<CaptionedImages>(*model, *model, tokenizer, settings); });
    return *data_;
  }

  // The encoder's output for these images.
  Memory encode(const ParamTree& params, std::span<const Example> examples,
                std::span<const i64> which) const {
    const ImageShape& image = model->image_shape();
    EncoderInputs in;
    in.pixel_values = example_values(examples, which, "pixels", {image.channels, image.height, image.width});
    return {model->encode(params, in, {}), {}};
  }

  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImages> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_captioning_pipeline() { return std::make_unique<Captioning>(); }

}  // namespace redco
