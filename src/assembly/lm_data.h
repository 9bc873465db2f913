// The data of a job of pipeline lm: from the `data:` section to Datasets.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "job/job_config.h"
#include "tokenizers/tokenizer.h"
#include "train/lm_dataset.h"

namespace redco {

// The job's chat template: data.chat_template (a file, a model's folder, or builtin:chat), else that of
// `folder`, the model's or the checkpoint's; none there: nothing. UsageError for a file that doesn't exist.
std::optional<ChatTemplate> job_chat_template(const JobConfig& job, const Tokenizer& tokenizer,
                                              const std::string& folder);

// What is to be made of data.train or data.eval.
struct LmDataRequest {
  const JobConfig* job = nullptr;
  bool evaluation = false;  // examples are one a row then, with their prompts and references
  const Tokenizer* tokenizer = nullptr;
  std::string folder;                 // see job_chat_template
  i64 max_length = 0;                 // tokens of a row
  std::optional<i64> embedding_rows;  // ids above are an error; unknown: not checked
  std::string cache;                  // folder of the indices
};
// The request of a job: max_length is data.max_length, else the model's. UsageError where neither is known,
// or data.max_length is more than the model has. `model` may be null.
LmDataRequest lm_data_request(const JobConfig& job, bool evaluation, const Tokenizer& tokenizer,
                              const Model* model, const std::string& folder, const std::string& cache);

// Tokenizes what isn't tokenized yet; on one rank only. -> what open_lm_data() needs to know.
std::string build_lm_data(const LmDataRequest& r);
std::shared_ptr<const Dataset> open_lm_data(const LmDataRequest& r, const std::string& built);

// Both: the first rank builds, all open. Says what there is. Collective.
std::shared_ptr<const Dataset> make_lm_data(const LmDataRequest& r);

// What there is, a line or a few: "training data: 800 examples of 12345 tokens, ...".
std::vector<std::string> describe_lm_data(const LmDataRequest& r, const Dataset& data);

}  // namespace redco
