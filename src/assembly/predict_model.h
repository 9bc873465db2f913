// The objects of predict, evaluate and chat: model source, tokenizer, chat template, pipeline, ids of special
// tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "assembly/job_model.h"
#include "assembly/named_parts.h"
#include "chat/chat_template.h"
#include "comm/group.h"
#include "generate/generation_settings.h"

namespace redco {

struct PredictModel {
  ModelSource source;
  std::unique_ptr<Tokenizer> tokenizer;       // null if there is none
  std::unique_ptr<Model> model;               // null if the pipeline owns its parameters
  std::vector<NamedParts> named;              // the models of `models:` that are used
  std::unique_ptr<Pipeline> pipeline;         // model, tokenizer, models and settings are set
  std::optional<ChatTemplate> chat_template;  // data.chat_template, else the adapter's, model's, tokenizer's
  GenerationTokens tokens;
  std::vector<std::shared_ptr<Lease>> leases;  // on the checkpoints that are read; first rank
};

// Which models of `models:` are loaded.
enum class NamedUse : std::uint8_t {
  predict,  // the models that predict() uses (Pipeline::predicts_with)
  loss      // all
};

// Of model.path and model.adapter, or, without them, with random weights. REQUIRES: the job is one of
// trained_job() (assembly/trained_job.h).
PredictModel load_predict_model(const JobConfig& job, NamedUse use = NamedUse::predict);
// The same for ranks: the bytes of checkpoints are checked first (ckpt/verify_checkpoint.h). Collective; an
// error is thrown on all ranks.
PredictModel open_predict_model(const JobConfig& job, Group& world, NamedUse use = NamedUse::predict);
// All parameters of the pipeline, without training. Collective.
ParamTree make_predict_params(const JobConfig& job, const PredictModel& m);

// The ids that begin, end and pad answers: the model's (generation_tokens), and the token that ends a turn of
// the chat template (null if there is none).
GenerationTokens answer_tokens(const ModelSource& source, const Model& model, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template);

// generation_config.json of a saved model: that of source.folder. If answers to the model's chat template end
// with tokens that it does not list (answer_tokens), eos_token_id lists them too, so that other programs end
// answers there; without a file the ids of special tokens come from the config. "": no file is needed.
std::string saved_generation_config(const JobConfig& job, const ModelSource& source, const Model& model,
                                    const Tokenizer* tokenizer);

// Settings of answers during training: eval.generation and the ids above.
TextGeneration eval_generation(const JobConfig& job, const ModelSource& source, const Model& model,
                               const Tokenizer& tokenizer, i64 batch_size);

// Everything but the prompt that an answer depends on, as a JSON object of texts: generation settings, the
// model's config, weights and tokenizer. The fingerprint of weights covers the name, size, first and last 64
// KiB of each file.
std::string prediction_settings(const JobConfig& job, const PredictModel& m);

// The tokenizer of a model that reads text. UsageError if there is none.
const Tokenizer& tokenizer_of(const PredictModel& m);

// A line for people if `max_new_tokens`, the value of `key`, is more than the model's positions; else "".
std::string long_answer_warning(const Model& model, const std::string& key, i64 max_new_tokens);

// Largest number of tokens of a prompt. A decoder-only model keeps one position for the answer.
i64 longest_prompt(const Model& model);

// The prompt's ids, with the special tokens that the tokenizer adds. A decoder-only model gets no end token.
// An empty prompt becomes the token that begins a text. ContentsError, beginning with `where`: an id outside
// the vocabulary, a prompt that is too long (unless predict.truncate_prompt is left), an empty prompt if the
// tokenizer has no token to begin with.
std::vector<i32> prompt_ids(const PredictModel& m, const PredictSettings& p, const std::string& text,
                            const std::string& where);
// The same for messages, rendered by the chat template with the generation prompt.
std::vector<i32> message_ids(const PredictModel& m, const PredictSettings& p,
                             const std::vector<ChatMessage>& messages, const std::string& where,
                             ChatVariables variables = {});

// The chat template's variables that predict.tools and predict.chat_template_kwargs give. ContentsError for a
// file that has no list of tools.
ChatVariables chat_variables_of(const PredictSettings& p);

}  // namespace redco
