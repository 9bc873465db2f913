#include "pipelines/read_images.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "data/builtin/builtin.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipeline/indexed_data.h"
#include "pipeline/records.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_images.h"

namespace redco {

namespace {

// Its examples go to predict() unchanged, so outlines have pixels too.
class ImagesWithLabels : public Dataset {
 public:
  explicit ImagesWithLabels(LabelledImages images) : images_(std::move(images)) {}
  i64 size() const override { return images_.size(); }
  i64 length(i64 i) const override { return images_.length(i); }
  Example get(i64 i) const override {
    Example image = images_.get(i), e;
    e.ordinal = image.ordinal;
    e.id = std::move(image.id);
    e.text = std::move(image.text);
    if (const std::vector<float>& t = image.values.at("targets"); !t.empty())
      e.ids["label"] = {static_cast<i32>(t[0])};
    e.values["pixel_values"] = std::move(image.values.at("pixel_values"));
    return e;
  }
  std::string fingerprint() const override { return images_.fingerprint(); }
  Reading reading() const override { return images_.reading(); }
  std::string describe() const override { return images_.describe(); }

 private:
  LabelledImages images_;
};

}  // namespace

std::shared_ptr<const Dataset> read_images(const DataRequest& request, const DataSettings& settings,
                                           const ImageShape& shape, i64 n_classes) {
  LabelledTargets targets{std::nullopt, 0};
  std::vector<std::string> paths;
  return open_indexed(
      {.prepare =
           [&] {
             if (const auto n = static_cast<i64>(settings.label_names.size()); n > 0 && n != n_classes)
               throw UsageError("[data] data.label_names has {} classes, but the pipeline has {}", n,
                                n_classes);
             if (n_classes > 0)
               targets = {ClassNames(settings.label_names.empty() ? numbered_names("", n_classes)
                                                                  : settings.label_names),
                          1};
             paths = data_file_names(request.files, request.evaluation, request.cache);
           },
       .build =
           [&] {
             data_files(request.files, request.evaluation, request.cache);  // writes the built-in ones
             return std::string();
           },
       .open =
           [&](const std::string&) {
             const ImagePreprocess preprocess("", shape.channels, shape.height, shape.width,
                                              settings.resize_images);
             return std::make_shared<ImagesWithLabels>(LabelledImages(
                 paths, settings, targets, preprocess, std::make_shared<ImageSource>(settings.images), 0));
           },
       .report = {}});
}

Example image_request(const std::string& json, const std::string& where, const DataSettings& settings,
                      const ImageShape& shape) {
  // Lines are read one by one, and an archive is opened once.
  static std::mutex mutex;
  static std::pair<std::optional<std::string>, std::shared_ptr<const ImageSource>> opened;
  try {
    const LabelledRow row = unlabelled_row(json, settings.fields, LabelledInput::image);
    const auto images = [&] {
      const std::scoped_lock lock(mutex);
      if (!opened.second || opened.first != settings.images)
        opened = {settings.images, std::make_shared<ImageSource>(settings.images)};
      return opened.second;
    }();
    const ImagePreprocess preprocess("", shape.channels, shape.height, shape.width, settings.resize_images);
    Example e;
    e.text = json_object({{"image", row.image}});
    e.values["pixel_values"] = preprocess(images->read(row.image, "."), images->where(row.image, "."));
    return e;
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where, e.what());
  }
}

Tensor count_right(const Tensor& logits, const Tensor& labels) {
  const Tensor best = reshape(max_last(logits), labels.shape());
  return stop_gradient(
      sum_all(compare(Binary::eq, pick(logits, labels), best) * label_mask(labels, DType::f32)));
}

std::vector<std::string> class_answers(const Tensor& logits, std::span<const Example> examples) {
  const std::vector<double> values = answer_values(logits);
  const auto classes = static_cast<std::ptrdiff_t>(logits.size(-1));
  std::vector<std::string> out;
  for (auto row = values.begin(); row != values.end(); row += classes)
    out.push_back(fmt::format(R"({{"prediction": {}, "label": {}}})",
                              std::max_element(row, row + classes) - row,
                              examples[out.size()].ids.at("label")[0]));
  return out;
}

}  // namespace redco
