// What predict and chat work with: which weights, the tokenizer and template beside them, ids of special
// tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "assembly/job_model.h"
#include "comm/group.h"
#include "generate/generation_settings.h"
#include "text/chat_template.h"

namespace redco {

struct PredictModel {
  ModelSource source;
  std::unique_ptr<Tokenizer> tokenizer;       // null: none
  std::unique_ptr<Model> model;               // null: the pipeline has parameters of its own
  std::unique_ptr<Pipeline> pipeline;         // with model, tokenizer and settings set
  std::optional<ChatTemplate> chat_template;  // data.chat_template, else the adapter's, model's, tokenizer's
  GenerationTokens tokens;
  std::vector<std::shared_ptr<Lease>> leases;  // on the checkpoints that it reads; on the first rank
};

// Of model.path and model.adapter, or, without them, with random weights. REQUIRES: the job is one of
// trained_job() (assembly/trained_job.h).
PredictModel load_predict_model(const JobConfig& job);
// The same for ranks: the bytes of checkpoints are checked first (ckpt/verify_checkpoint.h). Collective; an
// error is thrown on all ranks.
PredictModel open_predict_model(const JobConfig& job, Group& world);

// The ids that begin, end and pad answers: those of the model (generation_tokens), and the token that ends a
// turn of the chat template, where there is one (null: none).
GenerationTokens answer_tokens(const ModelSource& source, const Model& model, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template);

// What decides an answer beside its prompt: settings of generation, the model's config, weights and
// tokenizer, as a JSON object of texts. Weights are told apart by the names, sizes, heads and tails of their
// files.
std::string prediction_settings(const JobConfig& job, const PredictModel& m);

// The tokenizer of a model that reads text. UsageError: there is none.
const Tokenizer& tokenizer_of(const PredictModel& m);

// Most tokens of a prompt. Decoder-only: one position is left for an answer.
i64 longest_prompt(const Model& model);

// The prompt's ids as the model is to go on from them: special tokens that the tokenizer puts around a text,
// but no end token behind it (an encoder gets that too); the token that begins a text where that is all.
// ContentsError, beginning with `where`, for ids outside the vocabulary, a prompt that is too long (unless
// predict.truncate_prompt is left) or an empty one where the tokenizer has no token to begin with.
std::vector<i32> prompt_ids(const PredictModel& m, const PredictSettings& p, const std::string& text,
                            const std::string& where);
// The same for messages, with the template.
std::vector<i32> message_ids(const PredictModel& m, const PredictSettings& p,
                             const std::vector<ChatMessage>& messages, const std::string& where);

}  // namespace redco
