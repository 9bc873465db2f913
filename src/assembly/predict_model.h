// What predict and chat work with: which weights, the tokenizer and template beside them, ids of special
// tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "assembly/job_model.h"
#include "chat/chat_template.h"
#include "comm/group.h"
#include "generate/generation_settings.h"

namespace redco {

struct PredictModel {
  ModelSource source;
  std::unique_ptr<Tokenizer> tokenizer;       // null: none
  std::unique_ptr<Model> model;               // null: the pipeline has parameters of its own
  std::unique_ptr<Pipeline> pipeline;         // with model, tokenizer and settings set
  std::optional<ChatTemplate> chat_template;  // of the checkpoint, else of model.path or model.tokenizer
  GenerationTokens tokens;
  std::vector<std::shared_ptr<Lease>> leases;  // on the checkpoints that it reads; on the first rank
};

// The checkpoint that predict.checkpoint names, else the one that the workdir's pointer `last` names; ""
// where there is none. Warns where `last` is not the newest whole one, and where what it names is incomplete
// and an older one takes its place. IoError or ContentsError where it is bad in another way.
std::string predict_folder(const JobConfig& job);
// Of that folder, else of model.path, else with random weights (with a warning where `warns`).
PredictModel load_predict_model(const JobConfig& job, const std::string& folder, bool warns);
// Both, for ranks: all take the folder that the first one finds, and the bytes of checkpoints are checked
// (ckpt/verify_checkpoint.h). Collective; an error is thrown on all.
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
