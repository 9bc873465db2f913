// A text with several other texts, each pair with a score: documents of a query (reranking), choices of a
// question (multiple choice). A model with one output reads each pair.
//
// An Example has ids["0"], ids["1"], ... and their token types ids["0.types"], ...; values["labels"], one for
// each text; text: the record as a JSON object.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline/records.h"

namespace redco {

struct TextGroup {
  std::string first;               // the query or the question
  std::vector<std::string> texts;  // the documents or the choices
  std::vector<float> labels;       // of the texts; {}: none
};

class TextGroups {
 public:
  TextGroups(const Model& model, const Tokenizer* tokenizer, const PipelineSettings& settings);

  // ContentsError with the reason: a text without tokens.
  Example example(const TextGroup& g) const;
  // Fields K.ids, K.mask, K.types, K.there (1: the example has a text K) and K.label (labels of text K) for
  // each K below shape.target_length, and the number of texts as weight "texts".
  void collate(std::span<const Example> mine, Batch& batch) const;
  // [B, K]: the outputs of the model; and of text K whether an example has it (i32), and its label.
  Tensor logits(const ParamTree& params, const Batch& batch, const StepContext& ctx) const;
  Tensor there(const Batch& batch) const;
  Tensor labels(const Batch& batch) const;
  // The outputs for each text of each example, in rows of similar lengths.
  std::vector<std::vector<double>> scores(const ParamTree& params, std::span<const Example> examples,
                                          const StepContext& ctx) const;
  std::string fingerprint() const { return fmt::format("groups 1 {}", max_length_); }

 private:
  Tensor outputs(const ParamTree& params, const Batch& batch, const std::string& prefix,
                 const StepContext& ctx) const;
  void add(Batch& batch, std::span<const Example> rows, const std::string& name,
           const std::string& prefix) const;
  const Model& model_;
  const Tokenizer& tokenizer_;
  i64 max_length_;
  bool types_ = false;  // the model tells the tokens of the two texts apart
};

// The number of texts of an example.
i64 group_size(const Example& e);
// The examples of read_records(). target_length(): the largest number of texts.
std::shared_ptr<const Dataset> group_dataset(std::shared_ptr<const Dataset> examples);

}  // namespace redco
