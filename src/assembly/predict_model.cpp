#include "assembly/predict_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/lm_data.h"
#include "assembly/trained_job.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/words.h"
#include "ckpt/peft.h"
#include "ckpt/weights_hash.h"
#include "data/text/example_lines.h"
#include "models/config_tree.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"
#include "train/checkpoint.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

void check_ids(const PredictModel& m, const std::vector<i32>& ids, const std::string& where) {
  for (const i32 id : ids)
    if (id >= m.model->vocab_size())
      throw ContentsError(
          "{}: token id {} is outside the model's vocabulary of {}: the tokenizer belongs to another model",
          where, id, m.model->vocab_size());
}

std::vector<i32> fitting(const PredictModel& m, const PredictSettings& p, std::vector<i32> ids,
                         const std::string& where) {
  check_ids(m, ids, where);
  const i64 most = longest_prompt(*m.model), have = static_cast<i64>(ids.size());
  if (p.truncate_prompt == "left") {
    // The prompt keeps at least half of the positions.
    const i64 answer = m.model->is_encoder_decoder() ? 0 : p.max_new_tokens;
    const i64 room = std::clamp<i64>(most + 1 - answer, (most + 1) / 2, most);
    if (have > room) {
      const auto bos = m.tokenizer->special().bos;
      const bool begins = bos && ids[0] == *bos && room > 1;  // keep it in front
      ids.erase(ids.begin() + begins, ids.end() - (room - begins));
    }
  } else if (have > most) {
    throw ContentsError(
        "{}: the prompt has {} tokens, the model has {} positions. predict.truncate_prompt=left drops its "
        "beginning",
        where, have, m.model->length_limit());
  }
  return ids;
}

// The token that ends an assistant's turn in the template, if it is a special token. Chat models are trained
// to end with it, even if their config doesn't list it as an end token.
std::optional<i32> end_of_turn(const ChatTemplate& t, const Tokenizer& tokenizer) {
  try {
    const std::vector<ChatMessage> sample = {{"user", "a", "", true}, {"assistant", "b", "", true}};
    const ChatTokens tokens = tokenize_chat(tokenizer, t.render_training(sample));
    for (std::size_t i = tokens.ids.size(); i-- > 0;)
      if (tokens.in_loss[i])
        return tokenizer.is_special(tokens.ids[i]) ? std::optional<i32>(tokens.ids[i]) : std::nullopt;
  } catch (const ContentsError&) {  // the template refuses this conversation
  }
  return std::nullopt;
}

}  // namespace

std::string long_answer_warning(const Model& model, const std::string& key, i64 max_new_tokens) {
  if (max_new_tokens <= model.length_limit()) return "";
  return fmt::format("{}={} is more than the model's {} positions: an answer ends when they are full", key,
                     max_new_tokens, model.length_limit());
}

i64 longest_prompt(const Model& model) {
  return model.is_encoder_decoder() ? model.length_limit() : model.length_limit() - 1;
}

GenerationTokens answer_tokens(const ModelSource& source, const Model& model, const Tokenizer& tokenizer,
                               const ChatTemplate* chat_template) {
  GenerationTokens tokens = generation_tokens(source.folder, source.config, &tokenizer);
  if (!tokens.decoder_start && model.decoder_start_token_id() >= 0)
    tokens.decoder_start = model.decoder_start_token_id();
  // Padding is an input of the model, though nothing attends to it.
  if (tokens.pad >= model.vocab_size()) tokens.pad = 0;
  if (chat_template)
    if (const auto id = end_of_turn(*chat_template, tokenizer);
        id && *id < model.vocab_size() &&
        std::find(tokens.eos.begin(), tokens.eos.end(), *id) == tokens.eos.end())
      tokens.eos.push_back(*id);
  return tokens;
}

std::string saved_generation_config(const JobConfig& job, const ModelSource& source, const Model& model,
                                    const Tokenizer* tokenizer) {
  const std::string path = join_path(source.folder, "generation_config.json");
  const std::string stored = !source.folder.empty() && exists(path) ? read_file(path, 1 << 24) : "";
  if (!tokenizer || model.task() != ModelTask::causal_lm) return stored;
  const auto chat = job_chat_template(job, *tokenizer, source.folder);
  if (!chat) return stored;
  const std::vector<i32> ends = answer_tokens(source, model, *tokenizer, &*chat).eos;
  const Json& config = source.config.tree().json;
  Json j = stored.empty() ? Json::object() : Json::parse(stored, nullptr, false);
  const Json& listing = stored.empty() ? config : j;
  const Json listed =
      listing.is_object() && listing.contains("eos_token_id") ? listing["eos_token_id"] : Json();
  const Json wanted = ends.size() == 1 ? Json(ends[0]) : Json(ends);
  if (ends.empty() || listed == wanted || listed == Json(ends)) return stored;
  if (stored.empty())
    for (const char* key : {"bos_token_id", "pad_token_id"})
      if (config.contains(key) && !config[key].is_null()) j[key] = config[key];
  j["eos_token_id"] = wanted;
  return j.dump(2) + "\n";
}

TextGeneration eval_generation(const JobConfig& job, const ModelSource& source, const Model& model,
                               const Tokenizer& tokenizer, i64 batch_size) {
  const auto chat = job_chat_template(job, tokenizer, source.folder);
  return {job.eval.generation, answer_tokens(source, model, tokenizer, chat ? &*chat : nullptr), batch_size};
}

const Tokenizer& tokenizer_of(const PredictModel& m) {
  if (!m.tokenizer)
    throw UsageError(
        "[model] {} has no tokenizer (tokenizer.json, tokenizer.model, vocab.json, ...). Give model.tokenizer, a "
        "folder or `bytes`. Your own pipeline that reads no text needs a function request()",
        m.source.folder.empty() ? "the model" : m.source.folder);
  if (!m.model)
    throw UsageError("[model] the pipeline has no model. Give model.path, model.preset or model.arch");
  return *m.tokenizer;
}

namespace {

// The ids of another tokenizer mean other texts to the model.
void warn_of_other_tokenizer(const JobConfig& job, const Tokenizer& given) {
  if (!job.model.tokenizer || !job.origins.given("model.tokenizer") || !job.model.path) return;
  JobConfig own = job;
  own.model.tokenizer.reset();
  const auto of_folder = job_tokenizer(own);
  if (!of_folder || of_folder->fingerprint() == given.fingerprint()) return;
  warn(
      "[model] model.tokenizer={} ({}) is not the tokenizer of {}: it has {} tokens, the model's has {}. The "
      "model reads its ids as other texts. Remove model.tokenizer",
      *job.model.tokenizer, job.origins.where("model.tokenizer"), *job.model.path, given.vocab_size(),
      of_folder->vocab_size());
}

}  // namespace

PredictModel open_predict_model(const JobConfig& job, Group& world, NamedUse use) {
  auto leases = verify_source(job, world);
  PredictModel m;
  world.together([&] { m = load_predict_model(job, use); });
  if (world.rank() == 0 && m.tokenizer) warn_of_other_tokenizer(job, *m.tokenizer);
  for (auto& lease : verify_named(m.named, world)) leases.push_back(std::move(lease));
  m.leases = std::move(leases);
  return m;
}

ParamTree make_predict_params(const JobConfig& job, const PredictModel& m) {
  return make_job_params(job, m.source, m.model.get(), m.pipeline->all_params(), inference_storage(job),
                         &m.named);
}

PredictModel load_predict_model(const JobConfig& job, NamedUse use) {
  PredictModel m;
  m.tokenizer = job_tokenizer(job);
  const PipelineInfo* info = pipeline_info(job.pipeline);
  const auto& path = job.model.path;
  // The folder of a pipeline without a model: its parameters belong to the pipeline.
  const bool own = path && is_folder(*path) &&
                   (!exists(join_path(*path, "config.json")) || trained_without_model(job)) &&
                   !ckpt::is_adapter(*path) && !(info && info->needs_model);
  if (!own &&
      (path || job.model.preset || job.model.arch || job.model.adapter || (info && info->needs_model))) {
    m.source = model_source(job, m.tokenizer.get());
    if (m.source.new_head && m.source.adapter.empty() && !(info && info->headless))
      throw UsageError("[model] {} has no head for pipeline {}. Train it first", m.source.folder,
                       job.pipeline);
    m.model = make_job_model(job, m.source);
  } else {
    m.source = {.folder = path.value_or(""),
                .config = ConfigJson(ConfigTree{Json::object()}, "pipeline " + job.pipeline),
                .adapter = "",
                .lora = {}};
  }
  if (m.tokenizer && m.model) {
    if (job.data.chat_template) m.chat_template = job_chat_template(job, *m.tokenizer, m.source.folder);
    for (const std::string& from : {m.source.adapter, m.source.folder, job.model.tokenizer.value_or("")})
      if (!m.chat_template && !from.empty() && is_folder(from))
        m.chat_template = folder_chat_template(from, *m.tokenizer);
    m.tokens = answer_tokens(m.source, *m.model, *m.tokenizer, m.chat_template ? &*m.chat_template : nullptr);
  }
  m.pipeline = make_job_pipeline(job, m.model.get(), m.tokenizer.get(),
                                 {job.predict, m.tokens, job.predict.batch_size}, m.source.folder);
  const auto used = in_pipeline(*m.pipeline, "predicts_with()", [&] { return m.pipeline->predicts_with(); });
  m.named = make_named_parts(job, use == NamedUse::loss ? nullptr : &used);
  give_models(*m.pipeline, m.named);
  return m;
}

std::string prediction_settings(const JobConfig& job, const PredictModel& m) {
  Json j;
  Json predict = Json::parse(to_json(m.pipeline->settings->generation));
  predict.erase("batch_size");  // changes no answer
  j["pipeline"] = job.pipeline;
  j["predict"] = predict;
  j["predict"]["truncate_prompt"] = job.predict.truncate_prompt;
  if (job.predict.images) j["predict"]["images"] = *job.predict.images;
  if (job.predict.system) j["predict"]["system"] = *job.predict.system;
  const ChatVariables chat = chat_variables_of(job.predict);
  if (!chat.tools.empty()) j["predict"]["tools"] = hash128(chat.tools).hex();
  if (!chat.more.empty()) j["predict"]["chat_template_kwargs"] = Json::parse(chat.more);
  const std::string own =
      in_pipeline(*m.pipeline, "prediction_settings()", [&] { return m.pipeline->prediction_settings(); });
  if (!is_json(own)) throw UsageError("[pipeline] prediction_settings() returned no JSON: {}", excerpt(own));
  j.update(Json::parse(own));
  j["model"] = {{"config", m.model ? hash128(m.model->config_json()).hex() : ""},
                {"weights", m.source.folder.empty() ? fmt::format("random, train.seed={}", job.train.seed)
                                                    : ckpt::weights_hash(m.source.folder)},
                {"adapter", m.source.adapter.empty() ? "" : ckpt::weights_hash(m.source.adapter)},
                {"tokenizer", m.tokenizer ? m.tokenizer->fingerprint() : ""},
                {"chat_template", m.chat_template ? hash128(m.chat_template->source()).hex() : ""},
                {"compute_dtype", name_of(job.train.compute_dtype)}};
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<i32> prompt_ids(const PredictModel& m, const PredictSettings& p, const std::string& text,
                            const std::string& where) {
  const Tokenizer& t = tokenizer_of(m);
  std::vector<i32> ids;
  try {
    ids = m.model->is_encoder_decoder() ? t.encode(text) : ExampleLines::prompt_ids(t, text);
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where, e.what());
  }
  if (ids.empty()) {
    const auto start = t.special().bos ? t.special().bos : t.special().eos;
    if (!start)
      throw ContentsError("{}: the prompt is empty, and the tokenizer has no token that begins a text",
                          where);
    ids = {*start};
  }
  return fitting(m, p, std::move(ids), where);
}

std::vector<i32> message_ids(const PredictModel& m, const PredictSettings& p,
                             const std::vector<ChatMessage>& messages, const std::string& where,
                             ChatVariables variables) {
  const Tokenizer& tokenizer = tokenizer_of(m);
  if (!m.chat_template)
    throw UsageError(
        "{}: messages need a chat template, and {} has none (chat_template.jinja, or chat_template in "
        "tokenizer_config.json)",
        where, m.source.folder.empty() ? "the tokenizer's folder" : m.source.folder);
  std::vector<i32> ids;
  try {
    // The template writes the special tokens.
    variables.add_generation_prompt = true;
    ids = tokenizer.encode(m.chat_template->render(messages, variables), false);
  } catch (const ContentsError& e) {
    throw ContentsError("{}: {}", where, e.what());
  }
  if (ids.empty()) throw ContentsError("{}: the chat template renders an empty prompt", where);
  return fitting(m, p, std::move(ids), where);
}

ChatVariables chat_variables_of(const PredictSettings& p) {
  ChatVariables v;
  if (p.tools) {
    const Json tools = Json::parse(read_file(*p.tools, i64{16} << 20), nullptr, false);
    const auto is_tool = [](const Json& t) { return t.is_object(); };
    if (!tools.is_array() || tools.empty() || !std::ranges::all_of(tools, is_tool))
      throw ContentsError(
          "[predict] predict.tools={}: expected a JSON file with a list of tools: [{{\"type\": \"function\", "
          "\"function\": {{\"name\": \"...\", \"parameters\": {{...}}}}}}]; got {}",
          *p.tools,
          tools.is_discarded() ? "no JSON"
          : tools.empty()      ? "an empty list"
                               : tools.type_name());
    v.tools = tools.dump();
  }
  Json more = Json::object();
  for (const auto& [name, text] : p.chat_template_kwargs.values) more[name] = Json::parse(text);
  if (!more.empty()) v.more = more.dump();
  return v;
}

}  // namespace redco
