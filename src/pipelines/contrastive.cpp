// Contrastive learning of images and texts (CLIP, Radford et al. 2021), with SigLIP's loss as a setting. Each
// image is compared with all texts of the global batch, and each text with all images.
//
// Two towers: the job's model embeds images, the model `text` of `models:` texts. The outputs of their
// classification heads (num_labels) are the embeddings, which are scaled to length 1. Or one model that has
// both towers (clip, siglip), with its own scale.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "metrics/retrieval.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/answer_values.h"
#include "pipelines/captioned_images.h"
#include "pipelines/pair_losses.h"
#include "pipelines/pipelines.h"
#include "pipelines/pooling.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
constexpr double kMostLogScale = 4.605170185988092;  // log 100, as in CLIP and OpenCLIP

class Contrastive : public EmbeddingPipeline {
 public:
  ModelParams extra_params() const override {
    ModelParams out;
    SpecBuilder b(out);
    const auto add = [&](const char* name, double value) {
      b.add(name, {1}, ParamKind::bias, {Init::Kind::constant, value});
    };
    // What the model lacks.
    if (!has_parameter("logit_scale"))
      add("logit_scale", -std::log(settings->contrastive.temperature.value_or(0.07)));
    if (is_sigmoid() && !has_parameter("logit_bias")) add("logit_bias", settings->contrastive.logit_bias);
    return out;
  }

  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    Batch b;
    b.shape = shape;
    b.shape.length = std::min(shape.length, text().length_limit());
    data().collate(mine, b);
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }

  Embeddings embed(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    return {{"image", images(params, b, ctx)}, {"text", texts(params, b, ctx)}};  // [B, D]
  }

  LossTerms loss(const ParamTree& params, const Batch& all, const StepContext&) const override {
    const Scope s("pairs");
    const Tensor bias = is_sigmoid() ? params["logit_bias"] : Tensor();
    const Tensor logits = pair_logits(all["image"], all["text"], params["logit_scale"], bias);
    return {{"loss", is_sigmoid() ? sigmoid_pair_loss(logits) : softmax_pair_loss(logits)}};
  }
  // The parameter is clamped, not its use: a clamp in loss() has no gradient beyond its limit, so the scale
  // could not return.
  std::map<std::string, Tensor> after_update(const ParamTree& params, const StepContext&) const override {
    // Not trained: LoRA of a model with its own scale. SigLIP has no limit, and published scales are above
    // it.
    if (!params.find_spec("logit_scale")->trained() || has_parameter("logit_bias")) return {};
    return {{"logit_scale", clamp(params["logit_scale"], -kMostLogScale, kMostLogScale)}};
  }
  std::string unit() const override { return "pairs"; }

  // {"image_embedding": [...], "text_embedding": [...]}, without what the example lacks.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<Json> out(examples.size(), Json::object());
    for (const bool image : {true, false}) {
      std::vector<size_t> places;
      const Batch b = data().batch_of(examples, image, &places);
      if (places.empty()) continue;
      const std::vector<double> all = answer_values(image ? images(params, b, ctx) : texts(params, b, ctx));
      const i64 width = model->num_labels();
      for (i64 r = 0; r < b.shape.rows; ++r)
        out[places[r]][image ? "image_embedding" : "text_embedding"] =
            std::vector<float>(all.begin() + r * width, all.begin() + (r + 1) * width);
    }
    std::vector<std::string> lines;
    for (const Json& j : out) lines.push_back(j.dump());
    return lines;
  }

  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->image_shape().channels == 0 || model->num_labels() == 0)
      throw UsageError(
          "[pipeline] pipeline: contrastive needs an image classification model, whose outputs are the "
          "embedding. This {} model is for {}",
          model->family(), name_of(model->task()));
    if (has_both_towers(*model) && models.count("text"))
      throw UsageError("[models] the {} model embeds texts itself. Remove models.text", model->family());
    if (has_parameter("logit_scale") && settings->contrastive.temperature)
      throw UsageError(
          "[contrastive] the {} model has a logit_scale, which is the logarithm of the inverse temperature. "
          "Remove contrastive.temperature",
          model->family());
    if ((text().task() != ModelTask::sequence_classification && !is_tower(text())) ||
        text().num_labels() != model->num_labels())
      throw UsageError(
          "[models] models.text is a {} model for {} with {} outputs; expected {} with num_labels {}, as the "
          "image model has",
          text().family(), name_of(text().task()), text().num_labels(),
          name_of(ModelTask::sequence_classification), model->num_labels());
    return params;
  }
  std::vector<std::string> predicts_with() const override {
    return has_both_towers(*model) ? std::vector<std::string>() : std::vector<std::string>{"text"};
  }

  std::shared_ptr<const Dataset> open(const DataRequest& r) override { return data().open(r); }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return data().request(json, where);
  }
  bool concurrent_requests() const override { return true; }
  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    EmbeddingRows images, texts;
    std::vector<std::string> captions;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Json j = Json::parse(outputs[i]);
      images.push_back(j.at("image_embedding"));
      texts.push_back(j.at("text_embedding"));
      captions.push_back(Json::parse(examples[i].text).at("caption"));
    }
    const std::vector<i64> of_text = retrieval_ranks(images, texts, captions),
                           of_image = retrieval_ranks(texts, images, captions);
    std::map<std::string, double> out;
    for (const i64 k : {1, 5}) {
      out[fmt::format("image_to_text_recall_{}", k)] = recall_at(of_text, k);
      out[fmt::format("text_to_image_recall_{}", k)] = recall_at(of_image, k);
    }
    return out;
  }

 private:
  static bool is_tower(const Model& m) { return m.task() == ModelTask::image_text_contrastive; }
  static bool has_both_towers(const Model& m) {
    return is_tower(m) && m.image_shape().channels > 0 && m.vocab_size() > 0;
  }
  const Model& text() const { return has_both_towers(*model) ? *model : *named_model("text").model; }
  const Tokenizer* text_tokenizer() const {
    return has_both_towers(*model) ? tokenizer : named_model("text").tokenizer;
  }
  bool has_parameter(const std::string& name) const {
    return model &&
           std::ranges::any_of(model->params().specs, [&](const ParamSpec& s) { return s.name == name; });
  }
  bool is_sigmoid() const {
    return settings->contrastive.loss_type.value_or(has_parameter("logit_bias") ? "sigmoid" : "softmax") ==
           "sigmoid";
  }
  // The towers have different random keys.
  Tensor images(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    const auto keys = ctx.scope("image", 0);
    return unit_rows(model->apply_encoder(params, {.pixel_values = b["pixels"]}, ctx.apply));
  }
  Tensor texts(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    const auto keys = ctx.scope("text", 0);
    const Model& m = text();
    EncoderInputs in{.input_ids = b["input_ids"]};
    if (!m.pads_texts()) in.key_mask = b["mask"];
    return unit_rows(m.apply_encoder(&m == model ? params : params.part("text"), in, ctx.apply));
  }
  const CaptionedImages& data() const {
    std::call_once(opened_, [&] {
      params();
      data_ = std::make_unique<CaptionedImages>(*model, text(), text_tokenizer(), settings);
    });
    return *data_;
  }
  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImages> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_contrastive_pipeline() { return std::make_unique<Contrastive>(); }

}  // namespace redco
