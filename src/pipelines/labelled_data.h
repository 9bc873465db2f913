// What classification and regression share: examples of labelled texts, vectors and images, and how they
// become a batch. A model reads one of the three: see labelled_input_of().
//
// An Example has ids["input_ids"], ids["token_type_ids"] (texts), values["features"] (vectors),
// values["pixel_values"] (images that are read ahead; others are read when a batch is made of them),
// values["targets"] (the class's number, or the values to be told), and text: a JSON object of what is asked
// about, {"text", "text_pair"}, {"features"} or {"image"}.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/image_preprocess.h"
#include "data/image_source.h"
#include "data/labelled_index.h"
#include "train/pipeline.h"

namespace redco {

// What a model reads: numbers where it has n_features, images where it has an image_shape, else texts.
LabelledInput labelled_input_of(const Model& model);

// What labels mean: names of classes, or (none) numbers, so many of each example.
struct LabelledTargets {
  std::optional<ClassNames> classes;
  i64 n = 1;
};

class LabelledImages;

// The examples of one pipeline, opened and collated.
class LabelledData {
 public:
  LabelledData(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings,
               LabelledTargets targets);

  // Collective. Texts and vectors: TSV, CSV and JSONL; images: IDX files (images, then their labels), folders
  // and .zip archives of a folder a class, or lines that name images. UsageError, ContentsError: see
  // data/labelled_index.h, data/image_folder.h, data/idx.h.
  std::shared_ptr<const Dataset> open(const DataRequest& request);
  // An example without targets; see Pipeline::request().
  Example request(const std::string& json, const std::string& where) const;

  // The inputs' fields into `batch`, and its weight under "loss": an example's is 1.
  void collate(std::span<const Example> mine, Batch& batch) const;
  EncoderInputs inputs(const Batch& batch) const;
  // A batch of examples on one replica, for predict().
  Batch batch_of(std::span<const Example> examples) const;

  // {"id", what was asked about, the members of `prediction`, "label": of the data}
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
  std::string model_folder_;
  mutable std::shared_ptr<const ImageSource> images_;
  mutable std::optional<ImagePreprocess> preprocess_;
  std::shared_ptr<const LabelledImages> evaluation_;
};

// The names of a config's id2label in the order of their numbers; {} where it has none, or transformers'
// placeholders, LABEL_0 and so on.
std::vector<std::string> config_classes(const Model& model);
// PREFIX0, PREFIX1, ...
std::vector<std::string> numbered_names(const char* prefix, i64 n);

// A JSON number that reads as the float does.
std::string json_number(float x);

}  // namespace redco
