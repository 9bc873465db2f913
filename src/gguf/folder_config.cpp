#include "gguf/folder_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "gguf/tensor_names.h"

namespace redco::gguf {

namespace {

using Json = nlohmann::ordered_json;

// fp32 numbers as a person wrote them: 1e-06 and not 9.99999997e-07.
double short_number(double x) { return std::stod(fmt::format("{}", static_cast<float>(x))); }

class Config {
 public:
  Config(const Header& h, const std::string& architecture) : h_(h), a_(architecture + ".") {}

  Json j = Json::object();

  std::optional<i64> integer(const std::string& key) const { return h_.integer(a_ + key); }
  std::optional<double> number(const std::string& key) const { return h_.number(a_ + key); }
  std::string key(const std::string& k) const { return a_ + k; }
  const Header& header() const { return h_; }

  void need(const char* name, const char* stored) { j[name] = h_.at_integer(a_ + stored); }
  void maybe(const char* name, const char* stored) {
    if (const auto v = integer(stored)) j[name] = *v;
  }
  void need_number(const char* name, const char* stored) {
    const auto v = number(stored);
    if (!v) throw ContentsError("{}: the key {}{} is missing", h_.path, a_, stored);
    j[name] = short_number(*v);
  }
  void maybe_number(const char* name, const char* stored) {
    if (const auto v = number(stored)) j[name] = short_number(*v);
  }

 private:
  const Header& h_;
  std::string a_;
};

// Llama 3's rotary scaling (transformers, modeling_rope_utils.py): a pair of wavelength w is divided by 1 if
// w < original / high, by `factor` if w > original / low, and between them by 1 / ((1 - s) / factor + s) with
// s = (original / w - low) / (high - low).
struct Llama3Rope {
  double factor, low, high, original;
  double of(double wave) const {
    if (wave > original / low) return factor;
    if (wave < original / high) return 1;
    const double s = (original / wave - low) / (high - low);
    return 1 / ((1 - s) / factor + s);
  }
};

// The file stores the divisor of each pair (rope_freqs). Meta's models have one setting; another one follows
// from two pairs between the limits, where s is linear in 1 / w. Its `low` is free, because only the
// quotients original / low and original / high count.
void llama3_rope(const Config& c, const std::vector<float>& divisors, Json& j, i64 head_dim, double theta) {
  const double factor = *std::ranges::max_element(divisors);
  std::vector<double> waves;
  for (std::size_t i = 0; i < divisors.size(); ++i)
    waves.push_back(2 * 3.14159265358979323846 *
                    std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
  std::vector<Llama3Rope> candidates = {{factor, 1, 4, 8192}};
  std::vector<std::size_t> between;
  for (std::size_t i = 0; i < divisors.size(); ++i)
    if (divisors[i] > 1.0001F && divisors[i] < 0.9999 * factor) between.push_back(i);
  const auto share = [&](std::size_t i) {
    return (1 / static_cast<double>(divisors[i]) - 1 / factor) / (1 - 1 / factor);
  };
  if (!between.empty()) {
    const std::size_t p = between.front(), q = between.back();
    candidates.push_back({factor, 1, 4, std::round(waves[p] * (1 + 3 * share(p)))});
    if (p != q) {
      const double slope = (share(p) - share(q)) / (1 / waves[p] - 1 / waves[q]);  // original / (high - low)
      const double shift = slope / waves[p] - share(p);                            // low / (high - low)
      candidates.push_back({factor, 1, 1 + 1 / shift, std::round(slope / shift)});
    }
  }
  for (const Llama3Rope& r : candidates) {
    bool same = r.high > r.low && r.original >= 1;
    for (std::size_t i = 0; i < waves.size() && same; ++i)
      same = std::abs(r.of(waves[i]) - divisors[i]) <= 1e-4 * divisors[i];
    if (!same) continue;
    j["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", short_number(r.factor)},
                         {"low_freq_factor", r.low},
                         {"high_freq_factor", short_number(r.high)},
                         {"original_max_position_embeddings", static_cast<i64>(r.original)}};
    return;
  }
  throw ContentsError("{}: the factors of rope_freqs are not those of Llama 3's rotary scaling",
                      c.header().path);
}

std::vector<float> floats_of(const Model& m, const Tensor& t) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes));
  m.parts[static_cast<std::size_t>(t.part)].pread_exact(t.offset, bytes.data(), t.bytes);
  const BlockSize size = size_of(t.type);
  std::vector<float> out(static_cast<std::size_t>(t.bytes / size.bytes * size.elements));
  dequantize(t.type, bytes.data(), t.bytes / size.bytes, out.data());
  return out;
}

void rope(const Model& m, Config& c, i64 head_dim) {
  c.maybe_number("rope_theta", "rope.freq_base");
  const double theta = c.j.value("rope_theta", 10000.0);
  if (const auto n = c.integer("rope.dimension_count"); n && *n != head_dim) {
    if (*n < 1 || *n > head_dim)
      throw ContentsError("{}: {} is {}, but a head has {} dims", m.header.path,
                          c.key("rope.dimension_count"), *n, head_dim);
    c.j["partial_rotary_factor"] = static_cast<double>(*n) / static_cast<double>(head_dim);
  }
  const auto pairs = [&](const char* name) {
    const Tensor* t = m.header.find(name);
    const std::vector<float> out = t ? floats_of(m, *t) : std::vector<float>();
    if (t && static_cast<i64>(out.size()) != head_dim / 2)
      throw ContentsError("{}: {} has {} factors, but a head has {} pairs", m.header.path, name, out.size(),
                          head_dim / 2);
    return out;
  };
  if (const auto f = pairs("rope_freqs.weight"); !f.empty()) llama3_rope(c, f, c.j, head_dim, theta);
  const auto longer = pairs("rope_factors_long.weight"), shorter = pairs("rope_factors_short.weight");
  const auto original = c.integer("rope.scaling.original_context_length");
  if (!longer.empty() && !shorter.empty()) {
    if (original) c.j["original_max_position_embeddings"] = *original;
    c.j["rope_scaling"] = {{"type", "longrope"}, {"long_factor", longer}, {"short_factor", shorter}};
  }
  const std::string type = m.header.text(c.key("rope.scaling.type")).value_or("none");
  if (type == "none" || c.j.contains("rope_scaling")) return;
  const auto factor = c.number("rope.scaling.factor");
  if ((type != "linear" && type != "yarn") || !factor)
    throw ContentsError("{}: {} is {}; redco reads none, linear and yarn, with a factor", m.header.path,
                        c.key("rope.scaling.type"), excerpt(type));
  c.j["rope_scaling"] = {{"rope_type", type}, {"factor", short_number(*factor)}};
  if (original) c.j["rope_scaling"]["original_max_position_embeddings"] = *original;
}

// The keys that LLaMA, Mistral, Qwen, Gemma and Phi-3 have in common.
void decoder(const Model& m, Config& c) {
  c.need("max_position_embeddings", "context_length");
  c.need("hidden_size", "embedding_length");
  c.need("num_hidden_layers", "block_count");
  c.need("num_attention_heads", "attention.head_count");
  c.maybe("num_key_value_heads", "attention.head_count_kv");
  c.maybe("intermediate_size", "feed_forward_length");
  c.need_number("rms_norm_eps", "attention.layer_norm_rms_epsilon");
  const i64 hidden = c.j["hidden_size"], heads = c.j["num_attention_heads"];
  if (heads < 1) throw ContentsError("{}: the model has {} heads", m.header.path, heads);
  const i64 head_dim = c.integer("attention.key_length").value_or(hidden / heads);
  const i64 value_dim = c.integer("attention.value_length").value_or(head_dim);
  if (head_dim != value_dim)
    throw ContentsError("{}: keys have {} dims and values {}, expected the same", m.header.path, head_dim,
                        value_dim);
  c.j["head_dim"] = head_dim;
  rope(m, c, head_dim);
}

const Tensor& embedding_of(const Header& h) {
  const Tensor* t = h.find("token_embd.weight");
  if (!t || t->shape.size() != 2) throw ContentsError("{}: the matrix token_embd.weight is missing", h.path);
  return *t;
}

void gemma(const Model& m, Config& c, const std::string& architecture) {
  c.j["model_type"] = architecture == "gemma3" ? "gemma3_text" : architecture;
  c.j["architectures"] = {architecture == "gemma"    ? "GemmaForCausalLM"
                          : architecture == "gemma2" ? "Gemma2ForCausalLM"
                                                     : "Gemma3ForCausalLM"};
  decoder(m, c);
  c.j["hidden_activation"] = "gelu_pytorch_tanh";
  c.j["tie_word_embeddings"] = true;
  if (architecture == "gemma") return;
  c.j["attention_bias"] = false;
  c.maybe("sliding_window", "attention.sliding_window");
  c.maybe_number("attn_logit_softcapping", "attn_logit_softcapping");
  c.maybe_number("final_logit_softcapping", "final_logit_softcapping");
  // The published 27B models divide by the square root of hidden_size / heads, the others of head_dim.
  const i64 layers = c.j["num_hidden_layers"], hidden = c.j["hidden_size"],
            heads = c.j["num_attention_heads"];
  const bool largest = layers == (architecture == "gemma2" ? 46 : 62);
  c.j["query_pre_attn_scalar"] = largest ? hidden / heads : c.j["head_dim"].get<i64>();
  const i64 period = architecture == "gemma2" ? 2 : 6;
  Json types = Json::array();
  for (i64 i = 0; i < layers; ++i)
    types.push_back((i + 1) % period == 0 ? "full_attention" : "sliding_attention");
  c.j["layer_types"] = types;
  if (architecture == "gemma3") c.j["rope_local_base_freq"] = 10000.0;
}

void llama_like(const Model& m, Config& c, const std::string& architecture) {
  const bool experts = c.integer("expert_count").value_or(0) > 0;
  std::string type = architecture;
  if (architecture == "llama") type = experts ? "mixtral" : "llama";
  if (architecture == "qwen2moe") type = "qwen2_moe";
  if (architecture == "qwen3moe") type = "qwen3_moe";
  const std::map<std::string, std::string> classes = {
      {"llama", "Llama"},        {"mixtral", "Mixtral"},    {"qwen2", "Qwen2"}, {"qwen3", "Qwen3"},
      {"qwen2_moe", "Qwen2Moe"}, {"qwen3_moe", "Qwen3Moe"}, {"phi3", "Phi3"}};
  c.j["model_type"] = type;
  c.j["architectures"] = {classes.at(type) + "ForCausalLM"};
  decoder(m, c);
  c.j["hidden_act"] = "silu";
  c.j["tie_word_embeddings"] = m.header.find("output.weight") == nullptr;
  if (type == "llama") c.j["attention_bias"] = m.header.find("blk.0.attn_q.bias") != nullptr;
  if (type == "phi3" || type == "mixtral") c.maybe("sliding_window", "attention.sliding_window");
  if (!experts) return;
  c.need(type == "mixtral" ? "num_local_experts" : "num_experts", "expert_count");
  c.need("num_experts_per_tok", "expert_used_count");
  c.maybe("moe_intermediate_size", "expert_feed_forward_length");
  c.maybe("shared_expert_intermediate_size", "expert_shared_feed_forward_length");
  if (type == "qwen3_moe") c.j["norm_topk_prob"] = true;  // of the published models; the file doesn't say
}

// The published models; the file has no keys for the experts' function, and none for the bounds of yarn.
void gpt_oss(const Model& m, Config& c) {
  c.j["model_type"] = "gpt_oss";
  c.j["architectures"] = {"GptOssForCausalLM"};
  decoder(m, c);
  c.need("intermediate_size", "expert_feed_forward_length");
  c.need("num_local_experts", "expert_count");
  c.need("num_experts_per_tok", "expert_used_count");
  c.need("sliding_window", "attention.sliding_window");
  c.j["attention_bias"] = m.header.find("blk.0.attn_q.bias") != nullptr;
  c.j["tie_word_embeddings"] = m.header.find("output.weight") == nullptr;
  c.j["swiglu_limit"] = 7.0;
  Json types = Json::array();
  for (i64 i = 0; i < c.j["num_hidden_layers"].get<i64>(); ++i)
    types.push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  c.j["layer_types"] = types;
  Json& rope = c.j["rope_scaling"];
  if (rope.is_object() && rope["rope_type"] == "yarn") {
    rope["beta_fast"] = 32.0;
    rope["beta_slow"] = 1.0;
    rope["truncate"] = false;
  } else {
    rope = {{"rope_type", "default"}};
  }
}

void gpt2(Config& c) {
  c.j["model_type"] = "gpt2";
  c.j["architectures"] = {"GPT2LMHeadModel"};
  c.need("n_positions", "context_length");
  c.need("n_embd", "embedding_length");
  c.need("n_layer", "block_count");
  c.need("n_head", "attention.head_count");
  c.maybe("n_inner", "feed_forward_length");
  c.need_number("layer_norm_epsilon", "attention.layer_norm_epsilon");
  c.j["activation_function"] = "gelu_new";
  // Converters store the tied head as output.weight too.
  c.j["tie_word_embeddings"] = true;
}

void bert(const Model& m, Config& c) {
  c.j["model_type"] = "bert";
  c.j["architectures"] = {"BertModel"};
  c.need("max_position_embeddings", "context_length");
  c.need("hidden_size", "embedding_length");
  c.need("num_hidden_layers", "block_count");
  c.need("num_attention_heads", "attention.head_count");
  c.need("intermediate_size", "feed_forward_length");
  c.need_number("layer_norm_eps", "attention.layer_norm_epsilon");
  const Tensor* types = m.header.find("token_types.weight");
  c.j["type_vocab_size"] = types && types->shape.size() == 2 ? types->shape[0] : 1;
  c.j["hidden_act"] = "gelu";
}

std::optional<i64> token_id(const Header& h, const std::string& role) {
  return h.integer("tokenizer.ggml." + role + "_token_id");
}

}  // namespace

std::string folder_config(const Model& m) {
  const std::string architecture = m.header.at_text("general.architecture");
  Config c(m.header, architecture);
  const auto known = known_architectures();
  if (std::ranges::find(known, architecture) == known.end())
    throw ContentsError("{}: the architecture is {}; redco reads GGUF files of {}", m.header.path,
                        excerpt(architecture), fmt::join(known, ", "));
  if (architecture.starts_with("gemma"))
    gemma(m, c, architecture);
  else if (architecture == "gpt-oss")
    gpt_oss(m, c);
  else if (architecture == "gpt2")
    gpt2(c);
  else if (architecture == "bert")
    bert(m, c);
  else
    llama_like(m, c, architecture);
  c.j["vocab_size"] = embedding_of(m.header).shape[0];
  for (const char* role : {"bos", "eos"})
    if (const auto id = token_id(m.header, role)) c.j[std::string(role) + "_token_id"] = *id;
  if (const auto id = token_id(m.header, "padding")) c.j["pad_token_id"] = *id;
  return c.j.dump(2) + "\n";
}

std::string folder_generation_config(const Header& h) {
  Json j = Json::object();
  if (const auto id = token_id(h, "bos")) j["bos_token_id"] = *id;
  if (const auto id = token_id(h, "padding")) j["pad_token_id"] = *id;
  Json ends = Json::array();
  for (const char* role : {"eos", "eot", "eom"})
    if (const auto id = token_id(h, role); id && std::ranges::find(ends, Json(*id)) == ends.end())
      ends.push_back(*id);
  if (ends.size() == 1) j["eos_token_id"] = ends[0];
  if (ends.size() > 1) j["eos_token_id"] = ends;
  return j.dump(2) + "\n";
}

}  // namespace redco::gguf
