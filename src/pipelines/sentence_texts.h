// Texts for pipeline embedding: records of pairs, triplets and scored pairs as examples, and their batches.
//
// An Example has ids["anchor"] and ids["positive"]; with hard negatives ids["negative.0"], ids["negative.1"],
// ...; with a score values["score"]. A request has ids["text"]. text: the texts as a JSON object. The number
// of tokens of a prompt that are not pooled is ids["NAME.skip"] (SentenceFolder::include_prompt).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline/records.h"
#include "pipelines/sentence_folder.h"

namespace redco {

// The texts in front of a text: of a query, of a document, of another one.
struct SentencePrompts {
  std::string plain, query, document;
};

class SentenceTexts {
 public:
  // max_length: tokens of a text, special tokens included. The tokenizer must outlive the object.
  SentenceTexts(const Tokenizer& tokenizer, const SentenceFolder& folder, SentencePrompts prompts,
                ExampleFields fields, i64 max_length)
      : tokenizer_(tokenizer),
        lower_case_(folder.lower_case),
        include_prompt_(folder.include_prompt),
        prompts_(std::move(prompts)),
        fields_(std::move(fields)),
        max_length_(max_length) {}

  // ContentsErrors name the place of the record.
  Example read(const Record& r) const;
  // A line of predict.input: {"text"}, {"prompt"}, {"query"} or {"document"}.
  Example request(const Record& r) const;
  // All that an example depends on besides its record.
  std::string fingerprint() const;

 private:
  void add(Example& e, const std::string& name, const std::string& prompt, const std::string& text) const;
  const Tokenizer& tokenizer_;
  bool lower_case_, include_prompt_;
  SentencePrompts prompts_;
  ExampleFields fields_;
  i64 max_length_;
};

// The examples of read_records(). target_length(): the number of texts that an anchor is compared with, the
// same for all examples: 1 + its hard negatives; 0 for scored pairs. So every rank knows the form of a batch.
std::shared_ptr<const Dataset> sentence_dataset(std::shared_ptr<const Dataset> examples);

// The names of the texts of examples with this target_length(): anchor, positive, negative.0, ...
std::vector<std::string> text_names(i64 target_length);

// Adds NAME.ids [rows, length] and NAME.mask (1: a token) for a text of each example, and the weights of its
// tokens in the pooling modes (pooling.h).
void add_texts(Batch& batch, std::span<const Example> mine, const std::string& name,
               std::span<const std::string> modes, i32 padding);

}  // namespace redco
