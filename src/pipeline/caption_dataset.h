// Images with captions, or recordings with their texts, as a Dataset. Each Example has
//   values[FIELD]  the model's input: "pixels" [channels, height, width], "features" [bands, frames]
//   ids["labels"]  the caption's tokens, the end token last
//   text           {KEY: name, "caption": text}, JSON; KEY is "image" or "audio"
// Captions are tokenized once. An image is read each time its example is requested.
//
// Files: JSONL {"image": "a.png", "caption": "..."}, or TSV and CSV with these columns. data.fields renames
// the columns, data.images is the folder of the images.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/images/image_preprocess.h"
#include "data/images/image_source.h"
#include "data/text/example_index.h"
#include "data/text/pair_lines.h"
#include "pipeline/pair_dataset.h"
#include "pipeline/pipeline.h"

namespace redco {

// The language that a record names under "language" or "locale" (Common Voice); "": none.
std::string language_of(const nlohmann::ordered_json& record);

// The key of a record's caption: data.fields.caption; "text" if neither the job nor the record names one.
std::string caption_key(const nlohmann::ordered_json& record, const std::string& named);

// The ids before a caption's, which then has none of the tokenizer's special tokens but the end token.
struct CaptionPrefix {
  // language: of the caption's record, under "language" or "locale"; "": it names none. ContentsError with
  // the reason.
  std::function<std::vector<i32>(const std::string& language)> ids;
  std::string fingerprint;  // differs if the ids may differ
};

// Converts a record to the caption's ids. TokenizedExample::id keeps the image's name.
class CaptionLines {
 public:
  // In settings, source is the image and target the caption. The tokenizer must outlive the object.
  CaptionLines(const Tokenizer& tokenizer, PairSettings settings, std::optional<CaptionPrefix> prefix = {})
      : tokenizer_(tokenizer), pairs_(tokenizer, std::move(settings)), prefix_(std::move(prefix)) {}
  // ContentsError with the reason, without the place.
  TokenizedExample read(const ExampleRecord& r) const;
  // A caption's ids, the end token last. ContentsError if there are none.
  std::vector<i32> caption_ids(const std::string& caption, bool* cut = nullptr,
                               const std::string& language = "") const;
  // The image's name in a line of predict.input: under fields.image or "prompt".
  std::string image_of(const std::string& json) const;
  // The caption in a line of predict.input, under fields.caption or "prompt": ids["labels"] and text as in
  // CaptionDataset.
  Example caption_of(const std::string& json) const;

  std::string fingerprint() const;
  const PairSettings& settings() const { return pairs_.settings(); }
  i64 vocab_size() const { return tokenizer_.vocab_size(); }

 private:
  std::vector<i32> target_ids(const std::string& text, bool* cut, const std::string& language = "") const;

  const Tokenizer& tokenizer_;
  PairLines pairs_;
  std::optional<CaptionPrefix> prefix_;
};

// What the captions belong to, by the names in the lines of data files.
class CaptionedInputs {
 public:
  struct Words {
    const char *key, *field;  // see above
    const char* description;  // of one, in the log
    const char* captions;     // in the log
  };
  virtual ~CaptionedInputs() = default;
  virtual Words words() const = 0;
  // The model's input of `name` in a line of a file in `folder`. ContentsErrors have the input's path.
  // Thread-safe.
  virtual std::vector<float> read(const std::string& name, const std::string& folder) const = 0;
  // Differs if the inputs may differ.
  virtual std::string fingerprint() const = 0;
};

class CaptionedImageFiles : public CaptionedInputs {
 public:
  // images: see ImageSource.
  CaptionedImageFiles(const std::optional<std::string>& images, ImagePreprocess preprocess)
      : images_(images), preprocess_(std::move(preprocess)) {}
  Words words() const override { return {"image", "pixels", "image", "captions"}; }
  std::vector<float> read(const std::string& name, const std::string& folder) const override {
    return preprocess_(images_.read(name, folder), "[data] " + images_.where(name, folder));
  }
  std::string fingerprint() const override { return preprocess_.fingerprint(); }

 private:
  ImageSource images_;
  ImagePreprocess preprocess_;
};

class CaptionDataset : public Dataset {
 public:
  CaptionDataset(ExampleIndex index, std::shared_ptr<const CaptionedInputs> inputs)
      : index_(std::move(index)), inputs_(std::move(inputs)) {}
  i64 size() const override { return index_.size(); }
  i64 length(i64 i) const override { return index_.entry(i).tokens; }  // of the caption
  // ContentsError names the input and its line.
  Example get(i64 i) const override;
  std::string fingerprint() const override { return index_.data_hash() + inputs_->fingerprint(); }
  Reading reading() const override { return Reading::costly; }
  std::string describe() const override;
  const ExampleIndex& index() const { return index_; }

 private:
  ExampleIndex index_;
  std::shared_ptr<const CaptionedInputs> inputs_;
};

struct CaptionReader {
  CaptionLines lines;
  std::shared_ptr<const CaptionedInputs> inputs;
};
// Tokenizes the captions once, as make_pair_dataset(); reader() is called first, on every rank. Collective.
std::shared_ptr<const Dataset> make_caption_dataset(const PairSource& source,
                                                    const std::function<CaptionReader()>& reader);

}  // namespace redco
