// Text to image: a diffusion transformer learns the velocity from images to noise (rectified flow, Liu et al.
// 2022), and samples images for captions with classifier-free guidance (Ho & Salimans 2022).
//
//   x_t = (1 - t) image + t noise, with t uniform in [0, 1)
//   loss = mean over pixels of (model(x_t, t, caption) - (noise - image))^2
#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/captioned_images.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"

namespace redco {

namespace {

class TextToImage : public Pipeline {
 public:
  // Examples of pipeline/caption_dataset.h. pixels [B, channels, height, width]; caption and mask [B, S].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b = captions(mine, s);
    b.fields["pixels"] = value_rows(mine, s, "pixels", image_dims());
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    Context& c = Context::current();
    const Tensor& image = batch["pixels"];
    const i64 B = image.size(0);
    const Tensor time = random_uniform({B, 1}, c.key("time"));
    const Tensor noise = random_normal(image.shape(), c.key("noise"));
    Tensor mask = batch["mask"];
    if (const double rate = settings->diffusion.caption_dropout; ctx.apply.train && rate > 0) {
      const Tensor shown = compare(Binary::le, full({}, rate), random_uniform({B, 1}, c.key("caption")));
      mask = cast(to_float(mask) * shown, DType::i32);
    }
    const Tensor velocity = noise - image;
    const Tensor memory = model->encode(params, {.input_ids = batch["caption"], .key_mask = mask}, ctx.apply);
    const Tensor found = model->apply_encoder(params,
                                              {.key_mask = mask,
                                               .pixel_values = image + reshape(time, {B, 1, 1, 1}) * velocity,
                                               .features = time,
                                               .memory = memory},
                                              ctx.apply);
    return {{"loss", scale(sum_all(square(to_sum_type(found) - velocity)),
                           static_cast<double>(B) / static_cast<double>(image.numel()))}};
  }
  std::string unit() const override { return "images"; }

  // {"prediction": the image as a PNG data URI}: Euler steps from noise at time 1 to an image at time 0.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    Context& c = Context::current();
    const i64 n = static_cast<i64>(examples.size()), steps = settings->diffusion.num_inference_steps;
    const double guidance = settings->diffusion.guidance_scale;
    const bool guided = guidance != 1;
    // Guided, every example has a second row, without a caption.
    std::vector<Example> rows(examples.begin(), examples.end());
    if (guided) rows.insert(rows.end(), examples.begin(), examples.end());
    BatchShape s{.rows = static_cast<i64>(rows.size()), .mine = {0, static_cast<i64>(rows.size())}};
    for (const Example& e : examples)
      s.length = std::max(s.length, static_cast<i64>(e.ids.at("labels").size()));
    const Batch text = captions(rows, s, n);
    const Tensor memory =
        model->encode(params, {.input_ids = text["caption"], .key_mask = text["mask"]}, ctx.apply);
    Shape shape = image_dims();
    shape.insert(shape.begin(), n);
    Tensor x = random_normal(shape, c.key("start"));
    for (i64 k = steps; k > 0; --k) {
      const double t = static_cast<double>(k) / static_cast<double>(steps);
      Tensor v = model->apply_encoder(params,
                                      {.key_mask = text["mask"],
                                       .pixel_values = guided ? concat({x, x}, 0) : x,
                                       .features = full({s.rows, 1}, t),
                                       .memory = memory},
                                      ctx.apply);
      if (guided) {
        const Tensor without = narrow(v, 0, n, n);
        v = without + guidance * (narrow(v, 0, 0, n) - without);
      }
      x = x - scale(to_sum_type(v), 1 / static_cast<double>(steps));
    }
    const std::vector<double> values = to_values(x);
    const ImagePreprocess pixels = data().preprocess();
    std::vector<std::string> out;
    const size_t size = values.size() / examples.size();
    for (size_t i = 0; i < examples.size(); ++i) {
      const std::span<const double> image(values.data() + i * size, size);
      out.push_back(nlohmann::json({{"prediction", png_data_uri(pixels.to_image(image))}}).dump());
    }
    return out;
  }

  std::string prediction_settings() const override {
    const DiffusionSettings& d = settings->diffusion;
    return nlohmann::ordered_json({{"diffusion",
                                    {{"guidance_scale", d.guidance_scale},
                                     {"num_inference_steps", d.num_inference_steps},
                                     {"seed", settings->train.seed}}}})
        .dump();
  }

  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::text_to_image)
      throw UsageError(
          "[pipeline] pipeline: text_to_image needs a text-to-image model (model.arch: dit), but {} is a {} model",
          model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& r) override { return data().open(r); }

  // {"caption" (renamed by data.fields) or "prompt": text}
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return data().caption_request(json, where);
  }

  // {"id", "caption", "prediction"}
  std::string output(const Example& example, const std::string& prediction) const override {
    using Json = nlohmann::ordered_json;
    const Json answer = Json::parse(Pipeline::output(example, prediction));
    Json j = {{"id", answer.at("id")}, {"caption", Json::parse(example.text).at("caption")}};
    j.update(answer);
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  const CaptionedImages& data() const {
    params();
    std::call_once(opened_,
                   [&] { data_ = std::make_unique<CaptionedImages>(*model, *model, tokenizer, settings); });
    return *data_;
  }

  Shape image_dims() const {
    const ImageShape& image = model->image_shape();
    return {image.channels, image.height, image.width};
  }
  // The captions of rows, padded; those from row `first_hidden` on are masked.
  Batch captions(std::span<const Example> rows, const BatchShape& s, i64 first_hidden = -1) const {
    std::vector<Example> masks(rows.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      const bool hidden = first_hidden >= 0 && static_cast<i64>(r) >= first_hidden;
      masks[r].ids["mask"].assign(rows[r].ids.at("labels").size(), hidden ? 0 : 1);
    }
    Batch b;
    b.shape = s;
    b.fields["caption"] = id_rows(rows, s, "labels", 0);
    b.fields["mask"] = id_rows(masks, s, "mask", 0);
    return b;
  }

  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImages> data_;
};

}  // namespace

std::unique_ptr<Pipeline> make_text_to_image_pipeline() { return std::make_unique<TextToImage>(); }

}  // namespace redco
