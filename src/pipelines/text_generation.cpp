#include "pipelines/text_generation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/words.h"
#include "models/config_tree.h"
#include "models/hf_keys.h"
#include "ops/create.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// A declared scalar or list as JSON.
Json value_of(const Setting& s) {
  const auto one = [](const SettingValue& v) {
    return std::visit(
        [](const auto& x) -> Json {
          if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>)
            return nullptr;
          else
            return x;
        },
        v);
  };
  if (!s.list) return one(s.get().at(0));
  Json list = Json::array();
  for (const SettingValue& v : s.get()) list.push_back(one(v));
  return list;
}

Json id_or_null(const std::optional<i32>& id) { return id ? Json(*id) : Json(); }

}  // namespace

std::string to_json(const TextGeneration& g) {
  TextGeneration copy = g;  // visit() hands out mutable members
  Json j;
  for (const Setting& s : settings_of(copy.settings)) j[s.name] = value_of(s);
  j["batch_size"] = g.batch_size;
  j["eos_ids"] = g.tokens.eos;
  j["pad_id"] = g.tokens.pad;
  j["decoder_start_id"] = id_or_null(g.tokens.decoder_start);
  j["forced_bos_id"] = id_or_null(g.tokens.forced_bos);
  j["forced_eos_id"] = id_or_null(g.tokens.forced_eos);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

GenerationTokens generation_tokens(const std::string& folder, const ConfigJson& config,
                                   const Tokenizer* tokenizer) {
  std::string from = config.source();
  Json j = config.tree().json;
  if (const std::string path = join_path(folder, "generation_config.json"); !folder.empty() && exists(path)) {
    j = Json::parse(without_python_floats(read_file(path, 1 << 24)), nullptr, false);
    from = path;
  }
  if (!j.is_object()) throw ContentsError("[model] {}: expected an object of settings", from);
  const auto ids = [&](const Json& where, const std::string& name, const char* key) {
    std::vector<i32> out;
    if (!where.contains(key) || where.at(key).is_null()) return out;
    const Json& v = where.at(key);
    for (const Json& id : v.is_array() ? v : Json::array({v})) {
      if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() > 0x7fffffff)
        throw ContentsError("[model] {}: {}={}: expected a token id", name, key, excerpt(v.dump()));
      out.push_back(id.get<i32>());
    }
    return out;
  };
  const auto first = [](const std::vector<i32>& v) {
    return v.empty() ? std::optional<i32>() : std::optional<i32>(v[0]);
  };
  GenerationTokens t;
  t.eos = ids(j, from, "eos_token_id");
  if (t.eos.empty() && tokenizer && tokenizer->special().eos) t.eos = {*tokenizer->special().eos};
  // transformers writes -1 for "none" in some configs.
  if (j.contains("pad_token_id") && j.at("pad_token_id").is_number_integer() && j.at("pad_token_id") >= 0)
    t.pad = ids(j, from, "pad_token_id")[0];
  else if (!t.eos.empty())
    t.pad = t.eos[0];
  t.decoder_start = first(ids(j, from, "decoder_start_token_id"));
  if (!t.decoder_start)
    t.decoder_start = first(ids(config.tree().json, config.source(), "decoder_start_token_id"));
  if (!t.decoder_start) t.decoder_start = first(ids(j, from, "bos_token_id"));
  t.forced_bos = first(ids(j, from, "forced_bos_token_id"));
  t.forced_eos = first(ids(j, from, "forced_eos_token_id"));
  t.suppress = ids(j, from, "suppress_tokens");
  t.begin_suppress = ids(j, from, "begin_suppress_tokens");
  return t;
}

void require_causal_lm(const Model& model, const char* pipeline) {
  if (model.task() != ModelTask::causal_lm)
    throw UsageError(
        "[pipeline] pipeline: {} needs a causal language model such as gpt2, llama or qwen3, but {} is a {} model. {}",
        pipeline, model.family(), name_of(model.task()),
        model.task() == ModelTask::seq2seq_lm ? "Train it with pipeline: seq2seq"
                                              : "Encoders are trained with pipeline: classification");
}

Decode decoder_of(const Tokenizer& tokenizer) {
  return [&tokenizer](std::span<const i32> ids) { return tokenizer.decode(ids, true); };
}

std::vector<std::string> predict_text(const Model& model, const Tokenizer& tokenizer, const ParamTree& params,
                                      std::span<const Example> examples, const TextGeneration& g,
                                      const StepContext& ctx,
                                      const std::function<Memory(std::span<const i64>)>& encode,
                                      Decode decode) {
  std::vector<GenerationPrompt> prompts;
  for (const Example& e : examples) {
    GenerationPrompt p{{}, e.ordinal};
    if (!model.is_encoder_decoder() || e.ids.count("prompt") > 0) {
      p.ids = e.ids.at("prompt");
    } else if (g.tokens.decoder_start) {
      p.ids = {*g.tokens.decoder_start};
    } else {
      throw UsageError(
          "[model] decoder_start_token_id is missing in generation_config.json and config.json; every output "
          "begins with it. Set model.decoder_start_token_id");
    }
    prompts.push_back(std::move(p));
  }
  if (!decode) decode = decoder_of(tokenizer);
  const StopTexts stop(g.settings.stop, decode);
  TextStream stream(decode, stop);
  GenerateOptions o{.batch_size = g.batch_size, .encode = encode};
  o.interrupted = [] { return end_requested() != 0; };
  if (!stop.empty()) o.stops = [&](std::span<const i32> ids) { return stop.ends(ids); };
  const bool streams = ctx.on_text && examples.size() == 1 && g.settings.num_return_sequences == 1;
  if (streams && g.settings.num_beams == 1)
    o.on_token = [&](i64, i64, std::span<const i32> ids, bool last) {
      if (const std::string piece = stream.push(ids, last); !piece.empty()) ctx.on_text(piece);
    };

  std::vector<std::string> out;
  for (const auto& answers : generate(model, params, prompts, g.settings, g.tokens, o)) {
    Json texts = Json::array(), ids = Json::array(), reasons = Json::array(), scores = Json::array();
    for (const Answer& a : answers) {
      texts.push_back(stop.cut(decode(a.ids)));
      ids.push_back(a.ids);
      reasons.push_back(name_of(a.finish));
      scores.push_back(a.score);
    }
    const bool one = answers.size() == 1;
    const auto put = [&](const Json& list) { return one ? list.at(0) : list; };
    Json j = {{"prediction", put(texts)}, {"ids", put(ids)}, {"finish_reason", put(reasons)}};
    if (g.settings.num_beams > 1) {
      j["score"] = put(scores);
      if (streams) ctx.on_text(texts.at(0).get<std::string>());
    }
    out.push_back(j.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return out;
}

Tensor example_values(std::span<const Example> examples, std::span<const i64> which, const std::string& field,
                      const Shape& shape) {
  std::vector<float> values;
  for (const i64 i : which) {
    const std::vector<float>& one = examples[static_cast<size_t>(i)].values.at(field);
    values.insert(values.end(), one.begin(), one.end());
  }
  Shape all = shape;
  all.insert(all.begin(), static_cast<i64>(which.size()));
  return from_values(all, std::span<const float>(values));
}

Memory encode_text(const Model& model, const ParamTree& params, std::span<const Example> examples,
                   std::span<const i64> which, const std::string& field) {
  const i64 n = static_cast<i64>(which.size());
  i64 length = 0;
  for (const i64 i : which) length = std::max(length, static_cast<i64>(examples[i].ids.at(field).size()));
  std::vector<i32> ids(n * length, 0), mask(n * length, 0);
  bool padded = false;
  for (i64 r = 0; r < n; ++r) {
    const auto& row = examples[which[r]].ids.at(field);
    std::copy(row.begin(), row.end(), ids.begin() + r * length);
    std::fill_n(mask.begin() + r * length, row.size(), 1);
    padded |= static_cast<i64>(row.size()) < length;
  }
  EncoderInputs in;
  in.input_ids = from_ids({n, length}, ids);
  if (padded) in.key_mask = from_ids({n, length}, mask);
  Memory m;
  m.states = model.encode(params, in, {});
  if (padded) m.mask = std::move(mask);
  return m;
}

}  // namespace redco
