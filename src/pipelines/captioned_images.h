// Images with captions, as pipelines read them: from data files (pipeline/caption_dataset.h), and one by one.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "pipeline/caption_dataset.h"

namespace redco {

class CaptionedImages {
 public:
  // `images` is the model that reads images, `text` the one that reads or writes captions, with its
  // tokenizer. The models and the tokenizer outlive the object. A plan needs no tokenizer.
  CaptionedImages(const Model& images, const Model& text, const Tokenizer* tokenizer,
                  std::shared_ptr<const PipelineSettings> settings);

  // Examples of CaptionDataset. Collective. UsageError: `text` has no tokenizer, or fewer tokens than it.
  std::shared_ptr<const Dataset> open(const DataRequest& r) const;

  // From a line of predict.input: an image's path, a caption, or both, under the names of data.fields. The
  // caption may also be named "prompt". On any thread. ContentsErrors begin with `where`.
  Example request(const std::string& json, const std::string& where) const;
  // The same for the image alone, which may also be named "prompt".
  Example image_request(const std::string& json, const std::string& where) const;
  // For the caption alone, which may also be named "prompt". text: {"caption"} as JSON.
  Example caption_request(const std::string& json, const std::string& where) const;

  // From images to the pixels of the model, and back.
  ImagePreprocess preprocess() const;

  // Adds values["pixels"] as pixels [B, channels, height, width], and ids["labels"] as input_ids [B, T] and
  // mask [B, T] (1: a token). If the model pads texts (Model::pads_texts), T is its largest length, and there
  // is no mask. A field that no row of `rows` has is absent.
  void collate(std::span<const Example> rows, Batch& b) const;
  // A batch for predict(): the images, or the captions, of the examples that have one. `places`: their
  // numbers in `examples`.
  Batch batch_of(std::span<const Example> examples, bool image, std::vector<size_t>* places) const;

 private:
  CaptionLines lines(const std::string& format) const;
  std::vector<float> pixels(const std::string& name) const;
  const Model& images_;
  const Model& text_;
  const Tokenizer* tokenizer_;
  std::shared_ptr<const PipelineSettings> settings_;
  mutable std::once_flag opened_;
  mutable std::unique_ptr<const CaptionedImageFiles> files_;  // opened by the first request
};

}  // namespace redco
