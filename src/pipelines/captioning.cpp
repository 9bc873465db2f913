// Image to text: captioning.
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipelines/captioned_images.h"
#include "pipelines/generation_metrics.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class Captioning : public Pipeline {
 public:
  // Examples of pipeline/caption_dataset.h. pixels [B, channels, height, width]; the decoder's input,
  // positions and labels [B, T].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    const std::vector<i32> ones(static_cast<size_t>(s.length), 1);
    double targets = 0;
    for (size_t r = 0; r < mine.size(); ++r) {
      const std::vector<i32>& labels = mine[r].ids.at("labels");
      targets += static_cast<double>(labels.size());
      rows[r].ids["decoder_input"] = model->decoder_input_ids(labels);
      rows[r].ids["positions"] = model->positions(ones, false);
    }
    const ImageShape& image = model->image_shape();
    Batch b;
    b.shape = s;
    b.fields["pixels"] = value_rows(mine, s, "pixels", {image.channels, image.height, image.width});
    b.fields["decoder_input"] = id_rows(rows, s, "decoder_input", 0);  // only padding attends to padding
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    b.fields["labels"] = id_rows(mine, s, "labels", kIgnored);
    b.weights["loss"] = targets;
    return b;
  }

  // Teacher forcing: the decoder's input is the target, shifted by one.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    EncoderInputs images;
    images.pixel_values = batch["pixels"];
    DecoderInputs target{batch["decoder_input"], batch["positions"], {}};
    target.memory = model->encode(params, images, ctx.apply);
    const Tensor logits = model->apply(params, target, ctx.apply);
    Scope s("cross-entropy");
    const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
    return {{"loss", sum_all(cross_entropy(logits, batch["labels"], smoothing))}};
  }
  std::string unit() const override { return "tokens"; }

  // Example.values["pixels"] -> {"prediction": text, "ids": [...], ...}: see predict_text().
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(*model, *tokenizer, params, examples, settings->generation, ctx,
                        [&](std::span<const i64> which) { return encode(params, examples, which); });
  }
  bool predicts_any_number() const override { return true; }

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

  // {"id", "image": its name, "prediction", ..., "reference": the caption}
  std::string output(const Example& example, const std::string& prediction) const override {
    using Json = nlohmann::ordered_json;
    const Json answer = Json::parse(Pipeline::output(example, prediction)), said = Json::parse(example.text);
    Json j = {{"id", answer.at("id")}, {"image", said.at("image")}};
    j.update(answer);
    if (const auto caption = said.find("caption"); caption != said.end()) j["reference"] = *caption;
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  bool measures_outputs() const override {
    return settings->eval.n_outputs.value_or(0) > 0 && asks_generation_metrics(settings->eval.metrics);
  }
  std::map<std::string, double> output_metrics(std::span<const Example>,
                                               const std::vector<std::string>& outputs) const override {
    return generation_metrics(settings->eval.metrics, outputs);
  }

 private:
  static constexpr i32 kIgnored = -100;

  const CaptionedImages& data() const {
    params();
    std::call_once(opened_,
                   [&] { data_ = std::make_unique<CaptionedImages>(*model, *model, tokenizer, settings); });
    return *data_;
  }

  // The encoder's output for these images.
  Memory encode(const ParamTree& params, std::span<const Example> examples,
                std::span<const i64> which) const {
    std::vector<float> pixels;
    for (const i64 i : which) {
      const std::vector<float>& one = examples[static_cast<size_t>(i)].values.at("pixels");
      pixels.insert(pixels.end(), one.begin(), one.end());
    }
    const ImageShape& image = model->image_shape();
    EncoderInputs in;
    in.pixel_values = from_values({static_cast<i64>(which.size()), image.channels, image.height, image.width},
                                  std::span<const float>(pixels));
    return {model->encode(params, in, {}), {}};
  }

  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImages> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_captioning_pipeline() { return std::make_unique<Captioning>(); }

}  // namespace redco
