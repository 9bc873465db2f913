#include "gguf/file_metadata.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace redco::gguf {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, const char*> kModelTypes[] = {
    {"llama", "llama"},   {"mistral", "llama"},      {"mixtral", "llama"},      {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},   {"qwen2_moe", "qwen2moe"}, {"qwen3_moe", "qwen3moe"}, {"gemma", "gemma"},
    {"gemma2", "gemma2"}, {"gemma3_text", "gemma3"}, {"phi3", "phi3"},          {"gpt2", "gpt2"},
    {"bert", "bert"},     {"gpt_oss", "gpt-oss"}};

class Keys {
 public:
  Keys(const Json& config, std::string architecture, std::string where)
      : j_(config), a_(std::move(architecture)), where_(std::move(where)) {}

  MetadataList out;

  const Json* find(const char* name) const {
    const auto it = j_.find(name);
    return it == j_.end() || it->is_null() ? nullptr : &*it;
  }
  i64 integer(const char* name) const {
    const Json* v = find(name);
    if (!v || !v->is_number_integer() || v->get<i64>() < 0 || v->get<i64>() > 0xFFFFFFFF)
      throw ContentsError("{}: {}: expected an integer >= 0", where_, name);
    return v->get<i64>();
  }
  std::optional<double> number(const char* name) const {
    const Json* v = find(name);
    if (v && !v->is_number()) throw ContentsError("{}: {}: expected a number", where_, name);
    return v ? std::optional(v->get<double>()) : std::nullopt;
  }
  void put(const std::string& key, Metadata value) { out.emplace_back(a_ + "." + key, std::move(value)); }
  void count(const char* key, i64 n) { put(key, static_cast<std::uint32_t>(n)); }
  void need(const char* key, const char* name) { count(key, integer(name)); }
  void maybe(const char* key, const char* name) {
    if (find(name)) need(key, name);
  }
  void real(const char* key, const char* name) {
    if (const auto v = number(name)) put(key, static_cast<float>(*v));
  }
  const std::string& where() const { return where_; }

 private:
  const Json& j_;
  std::string a_, where_;
};

double at(const Json& rope, const char* name, const std::string& where) {
  const auto it = rope.find(name);
  if (it == rope.end() || !it->is_number())
    throw ContentsError("{}: rope_scaling.{}: expected a number", where, name);
  return it->get<double>();
}

void rope(Keys& k, i64 head_dim, ModelMetadata& m) {
  k.real("rope.freq_base", "rope_theta");
  const double share = k.number("partial_rotary_factor").value_or(1);
  k.count("rope.dimension_count", std::lround(static_cast<double>(head_dim) * share));
  const Json* r = k.find("rope_scaling");
  if (!r || !r->is_object()) return;
  const std::string type = r->value("rope_type", r->value("type", "default"));
  if (type == "default") return;
  if (type == "llama3") {
    const double factor = at(*r, "factor", k.where()), low = at(*r, "low_freq_factor", k.where()),
                 high = at(*r, "high_freq_factor", k.where()),
                 original = at(*r, "original_max_position_embeddings", k.where()),
                 theta = k.number("rope_theta").value_or(10000);
    std::vector<float> divisors;
    for (i64 i = 0; i < head_dim / 2; ++i) {
      const double wave = 2 * 3.14159265358979323846 *
                          std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      const double s = (original / wave - low) / (high - low);
      divisors.push_back(static_cast<float>(wave > original / low    ? factor
                                            : wave < original / high ? 1
                                                                     : 1 / ((1 - s) / factor + s)));
    }
    m.tensors.emplace_back("rope_freqs.weight", std::move(divisors));
  } else if (type == "longrope" || type == "su") {
    for (const auto& [name, key] : {std::pair("rope_factors_long.weight", "long_factor"),
                                    std::pair("rope_factors_short.weight", "short_factor")})
      m.tensors.emplace_back(name, r->at(key).get<std::vector<float>>());
    k.need("rope.scaling.original_context_length", "original_max_position_embeddings");
  } else if (type == "linear" || type == "yarn") {
    k.put("rope.scaling.type", type);
    k.put("rope.scaling.factor", static_cast<float>(at(*r, "factor", k.where())));
    if (r->contains("original_max_position_embeddings"))
      k.count("rope.scaling.original_context_length", (*r)["original_max_position_embeddings"].get<i64>());
  } else {
    throw ContentsError("{}: rope_scaling of type {} has no key in a GGUF file", k.where(), type);
  }
}

void decoder(Keys& k, const std::string& type, ModelMetadata& m) {
  k.need("context_length", "max_position_embeddings");
  k.need("embedding_length", "hidden_size");
  k.need("block_count", "num_hidden_layers");
  k.need("feed_forward_length", "intermediate_size");
  k.need("attention.head_count", "num_attention_heads");
  k.count("attention.head_count_kv",
          k.integer(k.find("num_key_value_heads") ? "num_key_value_heads" : "num_attention_heads"));
  k.put("attention.layer_norm_rms_epsilon", static_cast<float>(k.number("rms_norm_eps").value_or(1e-6)));
  const i64 heads = std::max<i64>(1, k.integer("num_attention_heads"));
  const i64 head_dim = k.find("head_dim") ? k.integer("head_dim") : k.integer("hidden_size") / heads;
  k.count("attention.key_length", head_dim);
  k.count("attention.value_length", head_dim);
  rope(k, head_dim, m);
  if (type != "llama" && !type.starts_with("qwen")) k.maybe("attention.sliding_window", "sliding_window");
  k.real("attn_logit_softcapping", "attn_logit_softcapping");
  k.real("final_logit_softcapping", "final_logit_softcapping");
  k.maybe("expert_count", type == "mixtral" || type == "gpt_oss" ? "num_local_experts" : "num_experts");
  if (type == "gpt_oss") k.need("expert_feed_forward_length", "intermediate_size");
  if (type == "mixtral" || type == "gpt_oss" || type.ends_with("_moe"))
    k.need("expert_used_count", "num_experts_per_tok");
  k.maybe("expert_feed_forward_length", "moe_intermediate_size");
  k.maybe("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
}

}  // namespace

std::string architecture_of(const Json& config) {
  const std::string type = config.value("model_type", "");
  for (const auto& [own, architecture] : kModelTypes)
    if (type == own) return architecture;
  return "";
}

FileShape file_shape(const Json& config) {
  const auto number = [&](const char* name, i64 otherwise) {
    const auto it = config.find(name);
    return it != config.end() && it->is_number_integer() ? it->get<i64>() : otherwise;
  };
  FileShape s;
  s.heads = number("num_attention_heads", number("n_head", 0));
  s.kv_heads = number("num_key_value_heads", s.heads);
  s.experts = number("num_local_experts", number("num_experts", 0));
  return s;
}

ModelMetadata file_metadata(const Json& config, const std::string& where) {
  const std::string architecture = architecture_of(config), type = config.value("model_type", "");
  ModelMetadata m;
  Keys k(config, architecture, where);
  k.out.emplace_back("general.architecture", architecture);
  k.out.emplace_back("general.quantization_version", std::uint32_t{2});
  if (architecture == "gpt2") {
    k.need("context_length", "n_positions");
    k.need("embedding_length", "n_embd");
    k.need("block_count", "n_layer");
    k.count("feed_forward_length", k.find("n_inner") ? k.integer("n_inner") : 4 * k.integer("n_embd"));
    k.need("attention.head_count", "n_head");
    k.put("attention.layer_norm_epsilon", static_cast<float>(k.number("layer_norm_epsilon").value_or(1e-5)));
  } else if (architecture == "bert") {
    k.need("context_length", "max_position_embeddings");
    k.need("embedding_length", "hidden_size");
    k.need("block_count", "num_hidden_layers");
    k.need("feed_forward_length", "intermediate_size");
    k.need("attention.head_count", "num_attention_heads");
    k.put("attention.layer_norm_epsilon", static_cast<float>(k.number("layer_norm_eps").value_or(1e-12)));
    k.put("attention.causal", false);
    k.out.emplace_back(
        "tokenizer.ggml.token_type_count",
        static_cast<std::uint32_t>(k.find("type_vocab_size") ? k.integer("type_vocab_size") : 2));
  } else {
    decoder(k, type, m);
  }
  m.values = std::move(k.out);
  return m;
}

}  // namespace redco::gguf
