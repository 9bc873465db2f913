// The data of a job of pipeline lm: from the `data:` section to Datasets.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "job/job_config.h"
#include "pipeline/lm_dataset.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// The template of a folder. Special tokens that its files don't name (they may have them from the tokenizer's
// class) are the tokenizer's.
std::optional<ChatTemplate> folder_chat_template(const std::string& folder, const Tokenizer& tokenizer);

// The job's chat template: data.chat_template (a file, a model's folder, or builtin:chat), else the template
// of model.tokenizer or of `folder`, the model's; nullopt if there is none. UsageError if the file doesn't
// exist.
std::optional<ChatTemplate> job_chat_template(const JobConfig& job, const Tokenizer& tokenizer,
                                              const std::string& folder);

// "training data", "evaluation data wiki"
std::string source_name(const DataSource& source, bool evaluation);

// The dataset to make from one source of the training or evaluation data.
struct LmDataRequest {
  const JobConfig* job = nullptr;
  DataSource source;
  bool evaluation = false;  // one example per row, with its prompt and references
  const Tokenizer* tokenizer = nullptr;
  std::string folder;                 // of the model, see job_chat_template
  i64 max_length = 0;                 // tokens per row
  std::optional<i64> embedding_rows;  // larger ids are an error; nullopt: not checked
  std::string cache;                  // folder of token indices
};
// The request of a job: max_length is data.max_length, else the model's. UsageError if neither is known, or
// if data.max_length is larger than the model's. `model` may be null.
LmDataRequest lm_data_request(const JobConfig& job, const DataSource& source, bool evaluation,
                              const Tokenizer& tokenizer, const Model* model, const std::string& folder,
                              const std::string& cache);

// Tokenizes files that have no index yet. Returns the argument for open_lm_data(). One rank only.
std::string build_lm_data(const LmDataRequest& r);
std::shared_ptr<const Dataset> open_lm_data(const LmDataRequest& r, const std::string& built);

// Both: the first rank builds, all ranks open. Logs a description. Collective.
std::shared_ptr<const Dataset> make_lm_data(const LmDataRequest& r);

// A description in one or more lines: "training data: 800 examples of 12345 tokens, ...".
std::vector<std::string> describe_lm_data(const LmDataRequest& r, const Dataset& data);

}  // namespace redco
