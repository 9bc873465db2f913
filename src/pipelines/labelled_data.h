// Code shared by classification and regression: examples of labelled texts, vectors and images, and their
// batches. A model reads one of the three: see labelled_input_of().
//
// An Example has ids["input_ids"], ids["token_type_ids"] (texts), values["features"] (vectors),
// values["pixel_values"] (images; those of outlines and requests are read when their batch is made),
// values["targets"] (the class index, or the target values), and text: the input as a JSON object, {"text",
// "text_pair"},
// {"features"} or {"image"}.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_preprocess.h"
#include "data/images/image_source.h"
#include "data/labelled/labelled_index.h"
#include "pipeline/pipeline.h"

namespace redco {

// The kind of a model's input: vectors if it has n_features, images if it has an image_shape, else texts.
LabelledInput labelled_input_of(const Model& model);

// The kind of labels: class names, or (nullopt) this many numbers per example; 0: examples have no labels.
struct LabelledTargets {
  std::optional<ClassNames> classes;
  i64 n = 1;
  bool several =
      false;  // an example may have any number of the classes: values["targets"] is 0 or 1 for each
  bool none() const { return !classes && n == 0; }
};

class LabelledImages;

// Opens and collates the examples of one pipeline.
class LabelledData {
 public:
  LabelledData(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings,
               LabelledTargets targets);

  // Collective. Texts and vectors: TSV, CSV and JSONL. Images: IDX files (images, then their labels), folders
  // and .zip archives with one folder per class, or lines with image names. UsageError, ContentsError: see
  // data/labelled/labelled_index.h, data/images/image_folder.h, data/images/idx.h.
  std::shared_ptr<const Dataset> open(const DataRequest& request);
  // An example without targets; see Pipeline::request(). Thread-safe.
  Example request(const std::string& json, const std::string& where) const;
  bool requests_images() const { return labelled_input_of(model_) == LabelledInput::image; }

  // Adds the input fields to `batch`, and its weight under "loss": 1 per example.
  void collate(std::span<const Example> mine, Batch& batch) const;
  EncoderInputs inputs(const Batch& batch) const;
  // A batch of examples on one replica, for predict().
  Batch batch_of(std::span<const Example> examples) const;

  // {"id", the input, the members of `prediction`, "label": from the data}
  std::string output(const Example& example, const std::string& prediction, const std::string& label) const;

 private:
  LabelledSource source(const DataRequest& request) const;
  i64 max_length(i64 wanted) const;
  const ImagePreprocess& preprocess(const std::string& folder) const;
  std::shared_ptr<const ImageSource> images() const;
  std::vector<float> pixels_of(const Example& e) const;

  const Model& model_;
  const Tokenizer* tokenizer_;
  DataSettings settings_;
  LabelledTargets targets_;
  std::string weights_folder_;
  mutable std::once_flag opened_images_, made_preprocess_;
  mutable std::shared_ptr<const ImageSource> images_;
  mutable std::optional<ImagePreprocess> preprocess_;
  std::vector<std::shared_ptr<const LabelledImages>> opened_;
};

// A config's problem_type for examples with any number of classes.
inline constexpr const char* kSeveralClasses = "multi_label_classification";

// The names in a config's id2label in the order of their ids; {} if it has none, or only transformers'
// placeholders LABEL_0, LABEL_1, ...
std::vector<std::string> config_classes(const Model& model);
// PREFIX0, PREFIX1, ...
std::vector<std::string> numbered_names(const char* prefix, i64 n);

// A JSON number that parses to the same float.
std::string json_number(float x);

}  // namespace redco
