#include "pipelines/read_images.h"

#include <algorithm>

#include "base/error.h"
#include "data/builtin.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/labelled_images.h"
#include "train/indexed_data.h"

namespace redco {

namespace {

// Its examples go to predict() as they are, so outlines have pixels too.
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
    e.ids["label"] = {static_cast<i32>(image.values.at("targets")[0])};
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
  ClassNames classes;
  std::vector<std::string> paths;
  return open_indexed(
      {.prepare =
           [&] {
             classes = ClassNames(settings.label_names.empty() ? numbered_names("", n_classes)
                                                               : settings.label_names);
             if (classes.size() != n_classes)
               throw UsageError("[data] data.label_names has {} classes, but the pipeline has {}",
                                classes.size(), n_classes);
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
             return std::make_shared<ImagesWithLabels>(
                 LabelledImages(paths, settings, {classes, 1}, preprocess,
                                std::make_shared<ImageSource>(settings.images), 0));
           },
       .report = {}});
}

Tensor count_right(const Tensor& logits, const Tensor& labels) {
  const Tensor best = reshape(max_last(logits), labels.shape());
  return stop_gradient(
      sum_all(compare(Binary::eq, pick(logits, labels), best) * label_mask(labels, DType::f32)));
}

std::vector<std::string> class_answers(const Tensor& logits, std::span<const Example> examples) {
  const std::vector<double> values = to_values(logits);
  const auto classes = static_cast<std::ptrdiff_t>(logits.size(-1));
  std::vector<std::string> out;
  for (auto row = values.begin(); row != values.end(); row += classes)
    out.push_back(fmt::format(R"({{"prediction": {}, "label": {}}})",
                              std::max_element(row, row + classes) - row,
                              examples[out.size()].ids.at("label")[0]));
  return out;
}

}  // namespace redco
