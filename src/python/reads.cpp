#include "python/reads.h"

#include <fmt/ranges.h>

#include "base/words.h"
#include "pipelines/pipelines.h"
#include "pipelines/read_images.h"

namespace redco::python {

namespace {

// Its outlines are whole, because predict() in Python gets them.
class WholeExamples : public Dataset {
 public:
  explicit WholeExamples(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {}
  i64 size() const override { return data_->size(); }
  i64 length(i64 i) const override { return data_->length(i); }
  i64 target_length(i64 i) const override { return data_->target_length(i); }
  Example get(i64 i) const override { return data_->get(i); }
  std::string fingerprint() const override { return data_->fingerprint(); }
  Reading reading() const override { return data_->reading(); }
  bool ordered() const override { return data_->ordered(); }
  std::shared_ptr<const Dataset> of_epoch(std::shared_ptr<const Dataset>, u64 seed,
                                          i64 epoch) const override {
    return std::make_shared<WholeExamples>(data_->of_epoch(data_, seed, epoch));
  }
  std::string describe() const override { return data_->describe(); }

 private:
  std::shared_ptr<const Dataset> data_;
};

}  // namespace

Reads::Reads(const py::object& given) {
  if (given.is_none()) return;
  if (py::hasattr(given, "shape")) {
    const auto s = py::cast<std::array<i64, 3>>(given.attr("shape"));
    shape_ = ImageShape{s[0], s[1], s[2]};
    n_classes_ = py::cast<i64>(given.attr("n_classes"));
    return;
  }
  const std::string name = py::isinstance<py::str>(given) ? py::cast<std::string>(given) : "";
  const PipelineInfo* info = pipeline_info(name);
  if (!info || !info->needs_data)
    throw UsageError(
        "reads = {}: expected redco.Images(shape) or the name of a built-in pipeline that reads data: {}",
        excerpt(py::cast<std::string>(py::repr(given))), fmt::join(pipeline_names(), ", "));
  name_ = name;
  pipeline_ = info->make();
}

Pipeline& Reads::like(const Pipeline& user) const {
  pipeline_->model = user.model;
  pipeline_->tokenizer = user.tokenizer;
  pipeline_->models = user.models;
  pipeline_->settings = user.settings;
  return *pipeline_;
}

std::shared_ptr<const Dataset> Reads::open(const Pipeline& user, const DataRequest& request) const {
  auto data =
      shape_ ? read_images(request, user.settings->data, *shape_, n_classes_) : like(user).open(request);
  return data ? std::make_shared<WholeExamples>(std::move(data)) : nullptr;
}

std::optional<Example> Reads::request(const Pipeline& user, const std::string& json,
                                      const std::string& where) const {
  if (shape_) return image_request(json, where, user.settings->data, *shape_);
  return like(user).request(json, where);
}

std::optional<Example> Reads::sample(const Pipeline& user, i64 length) const {
  Example e;
  const auto ids = [&](const char* name, i64 n) { e.ids[name].assign(static_cast<std::size_t>(n), 0); };
  const auto values = [&](const char* name, i64 n) { e.values[name].assign(static_cast<std::size_t>(n), 0); };
  const auto size = [](const ImageShape& s) { return s.channels * s.height * s.width; };
  if (shape_) {
    values("pixel_values", size(*shape_));
    if (n_classes_ > 0) ids("label", 1);
    return e;
  }
  if (!user.model) return std::nullopt;
  const Model& model = *user.model;
  const i64 pixels = size(model.image_shape());
  if (name_ == "classification" || name_ == "regression") {
    values("targets", name_ == "regression" ? std::max<i64>(model.num_labels(), 1) : 1);
    if (model.n_features() > 0) {
      values("features", model.n_features());
    } else if (pixels > 0) {
      values("pixel_values", pixels);
    } else {
      ids("input_ids", length);
      ids("token_type_ids", length);
    }
  } else if (name_ == "seq2seq") {
    ids("source", length);
    ids("labels", length);
  } else if (name_ == "captioning" || name_ == "text_to_image" || name_ == "contrastive") {
    values("pixels", pixels);
    ids("labels", length);
  } else if (name_ == "maml") {
    const MamlSettings& s = user.settings->maml;
    const i64 classes = pixels > 0 ? s.n_ways : 1;
    for (const std::string set : {"support", "query"}) {
      const i64 n = classes * (set == "support" ? s.n_shots : s.n_query);
      values((set + "_x").c_str(), n * std::max<i64>(pixels, 1));
      if (pixels > 0)
        ids((set + "_y").c_str(), n);
      else
        values((set + "_y").c_str(), n);
    }
  } else {
    return std::nullopt;
  }
  return e;
}

}  // namespace redco::python
