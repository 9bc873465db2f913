// Images with captions as a Dataset. Each Example has
//   values["pixels"]  the model's input, [channels, height, width]
//   ids["labels"]     the caption's tokens, the end token last
//   text              {"image": name, "caption": text}, JSON
// Captions are tokenized once. An image is read each time its example is requested.
//
// Files: JSONL {"image": "a.png", "caption": "..."}, or TSV and CSV with these columns. data.fields renames
// the columns, data.images is the folder of the images.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/images/image_preprocess.h"
#include "data/images/image_source.h"
#include "data/text/example_index.h"
#include "data/text/pair_lines.h"
#include "pipeline/pair_dataset.h"
#include "pipeline/pipeline.h"

namespace redco {

// The key of a record's caption: data.fields.caption; "text" if neither the job nor the record names one.
std::string caption_key(const nlohmann::ordered_json& record, const std::string& named);

// Converts a record to the caption's ids. TokenizedExample::id keeps the image's name.
class CaptionLines {
 public:
  // In settings, source is the image and target the caption. The tokenizer must outlive the object.
  CaptionLines(const Tokenizer& tokenizer, PairSettings settings)
      : tokenizer_(tokenizer), pairs_(tokenizer, std::move(settings)) {}
  // ContentsError with the reason, without the place.
  TokenizedExample read(const ExampleRecord& r) const;
  // A caption's ids, the end token last. ContentsError if there are none.
  std::vector<i32> caption_ids(const std::string& caption, bool* cut = nullptr) const;
  // The image's name in a line of predict.input: under fields.image or "prompt".
  std::string image_of(const std::string& json) const;
  // The caption in a line of predict.input, under fields.caption or "prompt": ids["labels"] and text as in
  // CaptionDataset.
  Example caption_of(const std::string& json) const;

  std::string fingerprint() const { return "captions " + pairs_.fingerprint(); }
  const PairSettings& settings() const { return pairs_.settings(); }
  i64 vocab_size() const { return tokenizer_.vocab_size(); }

 private:
  const Tokenizer& tokenizer_;
  PairLines pairs_;
};

class CaptionDataset : public Dataset {
 public:
  CaptionDataset(ExampleIndex index, ImageSource images, ImagePreprocess preprocess)
      : index_(std::move(index)), images_(std::move(images)), preprocess_(std::move(preprocess)) {}
  i64 size() const override { return index_.size(); }
  i64 length(i64 i) const override { return index_.entry(i).tokens; }  // of the caption
  // ContentsError names the image and its line.
  Example get(i64 i) const override;
  std::string fingerprint() const override { return index_.data_hash() + preprocess_.fingerprint(); }
  Reading reading() const override { return Reading::costly; }
  std::string describe() const override;
  const ExampleIndex& index() const { return index_; }

 private:
  ExampleIndex index_;
  ImageSource images_;
  ImagePreprocess preprocess_;
};

struct CaptionReader {
  CaptionLines lines;
  ImagePreprocess preprocess;
};
// Tokenizes the captions once, as make_pair_dataset(); reader() is called first, on every rank. images: see
// ImageSource. Collective.
std::shared_ptr<const Dataset> make_caption_dataset(const PairSource& source,
                                                    const std::function<CaptionReader()>& reader,
                                                    const std::optional<std::string>& images);

}  // namespace redco
