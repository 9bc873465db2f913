// Contrastive learning of images and texts (CLIP, Radford et al. 2021), with SigLIP's loss as a setting. Each
// image is compared with all texts of the global batch, and each text with all images.
//
// Two towers: those of one model (CLIP, SigLIP), or the job's model embeds images and the model `text` of
// `models:` texts. Then the outputs of their classification heads (num_labels) are the embeddings. All are
// scaled to length 1.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "metrics/retrieval.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/answer_values.h"
#include "pipelines/captioned_images.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
constexpr double kMostLogScale = 4.605170185988092;  // log 100, as in CLIP and OpenCLIP

class Contrastive : public EmbeddingPipeline {
 public:
  ModelParams extra_params() const override {
    ModelParams out;
    if (one_model()) return out;  // it has its own scale
    SpecBuilder b(out);
    const auto add = [&](const char* name, double value) {
      b.add(name, {1}, ParamKind::bias, {Init::Kind::constant, value});
    };
    add("logit_scale", -std::log(settings->contrastive.temperature));
    if (is_sigmoid()) add("logit_bias", settings->contrastive.logit_bias);
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
    const Tensor factor = exp(params["logit_scale"]);
    const Tensor pairs = matmul(all["image"], all["text"], false, true) * factor;  // [N images, N texts]
    if (is_sigmoid()) {  // -log sigmoid(z) = softplus(z) - z of a pair, softplus(z) of all others
      const Tensor own = sum(all["image"] * all["text"], {-1}) * factor + params["logit_bias"];
      return {{"loss", sum_all(softplus(pairs + params["logit_bias"])) - sum_all(own)}};
    }
    std::vector<i32> numbers(static_cast<size_t>(all.shape.rows));
    std::iota(numbers.begin(), numbers.end(), 0);
    const Tensor own = from_ids({all.shape.rows}, numbers, batch_layout());
    const Tensor to_text = cross_entropy(pairs, own), to_image = cross_entropy(transpose(pairs, 0, 1), own);
    return {{"loss", 0.5 * (sum_all(to_text) + sum_all(to_image))}};
  }
  // The parameter is clamped, not its use: a clamp in loss() has no gradient beyond its limit, so the scale
  // could not return. SigLIP has no limit, and published weights are beyond this one.
  std::map<std::string, Tensor> after_update(const ParamTree& params, const StepContext&) const override {
    const ParamSpec* const spec = params.find_spec("logit_scale");
    if (is_sigmoid() || !spec || !spec->trained()) return {};  // LoRA trains no parameter of the model
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
    if (one_model()) {
      const std::string& loss = settings->contrastive.loss_type;
      if (loss != "auto" && (loss == "sigmoid") != is_sigmoid())
        throw UsageError("[pipeline] contrastive.loss_type={}: the {} model was made for {}. Omit the key",
                         loss, model->family(), is_sigmoid() ? "sigmoid" : "softmax");
      return params;
    }
    if (model->image_shape().channels == 0 || model->num_labels() == 0)
      throw UsageError(
          "[pipeline] pipeline: contrastive needs a model with two towers (clip, siglip), or an image "
          "classification model, whose outputs are the embedding, and models.text. This {} model is for {}",
          model->family(), name_of(model->task()));
    if (text().task() != ModelTask::sequence_classification || text().num_labels() != model->num_labels())
      throw UsageError(
          "[models] models.text is a {} model for {} with {} outputs; expected {} with num_labels {}, as the "
          "image model has",
          text().family(), name_of(text().task()), text().num_labels(),
          name_of(ModelTask::sequence_classification), model->num_labels());
    return params;
  }
  std::vector<std::string> predicts_with() const override {
    return one_model() ? std::vector<std::string>() : std::vector<std::string>{"text"};
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
  bool one_model() const { return model && model->task() == ModelTask::image_text_contrastive; }
  const Model& text() const { return one_model() ? *model : *named_model("text").model; }
  bool is_sigmoid() const {
    if (!one_model()) return settings->contrastive.loss_type == "sigmoid";
    return std::ranges::any_of(model->params().specs,
                               [](const ParamSpec& s) { return s.name == "logit_bias"; });
  }
  // The towers have different random keys.
  Tensor images(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    const auto keys = ctx.scope("image", 0);
    return of_length_1(model->apply_encoder(params, {.pixel_values = b["pixels"]}, ctx.apply));
  }
  Tensor texts(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    const auto keys = ctx.scope("text", 0);
    const EncoderInputs in{.input_ids = b["input_ids"], .key_mask = b["mask"]};
    return of_length_1(text().apply_encoder(one_model() ? params : params.part("text"), in, ctx.apply));
  }
  static Tensor of_length_1(const Tensor& x) {
    return x * rsqrt(add_scalar(sum(square(x), {-1}, true), 1e-12));
  }
  const CaptionedImages& data() const {
    std::call_once(opened_, [&] {
      params();
      const Tokenizer* const words = one_model() ? tokenizer : named_model("text").tokenizer;
      data_ = std::make_unique<CaptionedImages>(*model, text(), words, settings);
    });
    return *data_;
  }
  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImages> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_contrastive_pipeline() { return std::make_unique<Contrastive>(); }

}  // namespace redco
