#include "models/rope_config.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "base/log_once.h"

namespace redco {

using Json = nlohmann::ordered_json;

std::vector<float> rope_frequencies(double theta, i64 rotary) {
  std::vector<float> f(rotary / 2);
  for (size_t i = 0; i < f.size(); ++i) {
    // transformers has exponent and power in fp32. The power is computed exactly here, then rounded.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary);
    f[i] = 1.f / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  return f;
}

namespace {

// The config's rope object under its key, and the keys outside of the object.
struct RopeJson {
  std::string key;
  Json json;
  RopeFamily family;
};

RopeJson find_rope(ModelConfig& c, const RopeFamily& family) {
  const Json v4 = Json::parse(c.json("rope_scaling")), v5 = Json::parse(c.json("rope_parameters"));
  const bool scaling = !v4.is_null() && !v4.empty(), parameters = !v5.is_null() && !v5.empty();
  if (scaling && parameters && v4 != v5)
    c.fail("rope_scaling", "rope_parameters contradicts it; keep one of them");
  return {scaling ? "rope_scaling" : "rope_parameters",
          scaling      ? v4
          : parameters ? v5
                       : Json::parse(family.absent),
          family};
}

// The rope settings of one config, or of one kind of its layers.
class RopeSettings {
 public:
  RopeSettings(ModelConfig& c, RopeJson found)
      : c_(c), key_(std::move(found.key)), json_(std::move(found.json)) {
    if (!json_.is_object()) c.fail(key_, "expected an object such as {\"rope_type\": \"default\"}");
    for (const char* key : {"rope_type", "type"}) {
      if (json_.contains(key) && json_[key].is_null()) json_.erase(key);
      if (json_.contains(key) && !json_[key].is_string()) fail(key, "expected a string");
    }
    const auto type_of = [&](const char* key, const std::string& fallback) {
      const std::string t = json_.value(key, fallback);
      return t == "mrope" ? "default" : t == "su" ? "longrope" : t;  // older names; mrope equals it for text
    };
    type = type_of("rope_type", type_of("type", "default"));
    if (type_of("type", type) != type) fail("type", fmt::format("rope_type is '{}'", type));
    used_ = {"rope_type", "type"};

    const RopeFamily& f = found.family;
    theta = once("rope_theta", f.theta_key, f.theta);
    if (f.share_key) {
      share = once("partial_rotary_factor", f.share_key, f.share);
      if (share > 1) c.fail(f.share_key, "expected a share of a head, at most 1");
    } else {
      // No model of these families rotates only a part of a head; transformers ignores the key or fails.
      for (const double factor :
           {c.number_or("partial_rotary_factor", 1), number("partial_rotary_factor", 1)})
        if (factor != 1) c.fail(key_, "partial_rotary_factor: not supported; supported: 1");
    }
    if (f.renamed_longrope && (type == "su" || type == "yarn")) type = "longrope";
  }

  std::string type;
  double theta, share = 1;

  // A value of the object, or of a key outside of it.
  double once(const std::string& key, const char* outer_key, double fallback) {
    const double outside = outer_key ? c_.positive_or(outer_key, fallback) : fallback;
    const double value = positive(key, outside);
    if (outer_key && c_.has(outer_key) && value != outside)
      c_.fail(outer_key, fmt::format("{}.{}={} contradicts it; keep one of them", key_, key, value));
    return value;
  }

  double number(const std::string& key, std::optional<double> fallback = {}) {
    used_.insert(key);
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) {
      if (!fallback) fail(key, fmt::format("missing; rope type '{}' needs it", type));
      return *fallback;
    }
    if (!it->is_number() || !std::isfinite(it->get<double>())) fail(key, "expected a finite number");
    return it->get<double>();
  }
  double positive(const std::string& key, std::optional<double> fallback = {}) {
    const double x = number(key, fallback);
    if (x <= 0) fail(key, "expected a number above 0");
    return x;
  }
  bool has(const std::string& key) const { return json_.contains(key) && !json_[key].is_null(); }
  bool boolean(const std::string& key, bool fallback) {
    used_.insert(key);
    if (!has(key)) return fallback;
    if (!json_[key].is_boolean()) fail(key, "expected true or false");
    return json_[key].get<bool>();
  }
  std::vector<double> numbers(const std::string& key, size_t count) {
    used_.insert(key);
    const auto fits = [](const Json& x) { return x.is_number() && x.get<double>() > 0; };
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_array() || it->size() != count || !std::ranges::all_of(*it, fits))
      fail(key, fmt::format("expected {} numbers above 0, one per pair of rotated dims", count));
    return it->get<std::vector<double>>();
  }
  [[noreturn]] void fail(const std::string& key, const std::string& why) const {
    c_.fail(key_, fmt::format("{}: {}", key, why));
  }
  // transformers ignores keys that the type doesn't have.
  void finish() const {
    std::vector<std::string> ignored;
    for (const auto& [key, value] : json_.items())
      if (!value.is_null() && !used_.count(key)) ignored.push_back(key);
    if (!ignored.empty())
      log_once(LogLevel::info,
               fmt::format("[model] {}: {}: ignored, because rope type '{}' has no such keys: {}",
                           c_.source(), key_, type, fmt::join(ignored, ", ")));
  }

 private:
  ModelConfig& c_;
  std::string key_;
  Json json_;
  std::set<std::string> used_;
};

// Llama 3.1: low frequencies are divided by `factor`, high ones are kept, those between are interpolated.
void scale_llama3(RopeSettings& s, i64 max_positions, std::vector<float>& freq) {
  const double factor = s.positive("factor"), low = s.positive("low_freq_factor"),
               high = s.positive("high_freq_factor");
  const double length = s.positive("original_max_position_embeddings", static_cast<double>(max_positions));
  if (high < low) s.fail("high_freq_factor", "expected at least low_freq_factor");
  for (float& f : freq) {
    const double wavelength = 2 * std::numbers::pi / f;
    if (wavelength < length / high) continue;
    if (wavelength > length / low) {
      f = static_cast<float>(f / factor);
      continue;
    }
    const double smooth = high > low ? (length / wavelength - low) / (high - low) : 1;
    f = static_cast<float>((1 - smooth) * f / factor + smooth * f);
  }
}

// YaRN (Peng et al. 2023): high frequencies are kept, low ones are divided by `factor`, with a linear ramp
// between. Returns the factor of cos and sin.
double scale_yarn(RopeSettings& s, i64 max_positions, i64 dim, std::vector<float>& freq,
                  double* score_magnitude) {
  const double length = s.positive("original_max_position_embeddings", static_cast<double>(max_positions));
  const double factor = s.positive("factor", static_cast<double>(max_positions) / length);
  const auto or_default = [](double x, double fallback) { return x == 0 ? fallback : x; };
  const double fast = or_default(s.number("beta_fast", 0), 32),
               slow = or_default(s.number("beta_slow", 0), 1);
  const bool truncate = s.boolean("truncate", true);
  if (s.theta == 1) s.fail("rope_theta", "yarn needs another base than 1");
  if (fast <= 0 || slow <= 0) s.fail("beta_fast", "expected beta_fast and beta_slow above 0");
  // The dim whose frequency makes this many turns over the length of training.
  const auto dim_of = [&](double turns) {
    return dim * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(s.theta));
  };
  double low = dim_of(fast), high = dim_of(slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < freq.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    freq[i] = static_cast<float>(freq[i] / factor * slowed + freq[i] * (1 - slowed));
  }
  const auto magnitude = [](double by, double m) { return by <= 1 ? 1 : 0.1 * m * std::log(by) + 1; };
  const double m = s.number("mscale", 0), m_all = s.number("mscale_all_dim", 0);
  if (m_all != 0) *score_magnitude = magnitude(factor, m_all);
  const double usual =
      m != 0 && m_all != 0 ? magnitude(factor, m) / magnitude(factor, m_all) : magnitude(factor, 1);
  return s.positive("attention_factor", usual);
}

using Frequencies = std::vector<float>;

std::shared_ptr<const Frequencies> shared(Frequencies f) {
  return std::make_shared<const Frequencies>(std::move(f));
}

// LongRoPE (Ding et al. 2024): a factor per frequency, in two lists: for sequences that fit into the original
// length, and for longer ones.
void scale_longrope(ModelConfig& c, RopeSettings& s, const RopeFamily& family, i64 max_positions, i64 dim,
                    Rope& rope) {
  const auto most = static_cast<double>(max_positions);
  // Phi-3 has the key outside of the object, and that one takes precedence.
  const double inside = s.positive("original_max_position_embeddings", most);
  const double original = c.positive_or("original_max_position_embeddings", inside);
  const double factor = s.positive("factor", most / original);
  const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  rope.usual.attention_factor =
      family.magnitudes ? s.positive("short_mscale") : s.positive("attention_factor", usual);
  rope.usual_length = static_cast<i64>(original);
  const auto divided = [&](const char* key) {
    const std::vector<double> by = s.numbers(key, dim / 2);
    Frequencies f(dim / 2);
    for (size_t i = 0; i < f.size(); ++i) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
      const float power = static_cast<float>(std::pow(s.theta, static_cast<double>(exponent)));
      f[i] = 1.f / (static_cast<float>(by[i]) * power);
    }
    return shared(std::move(f));
  };
  rope.usual.inv_freq = divided("short_factor");
  RopeOptions longer = rope.usual;
  longer.inv_freq = divided("long_factor");
  if (family.magnitudes) {
    longer.inv_freq = rope.usual.inv_freq;
    longer.attention_factor = s.positive("long_mscale");
  }
  rope.beyond = [longer](i64) { return longer; };
}

// NTK-aware scaling: sequences longer than the model's positions increase the base; with `alpha`, all do.
void scale_dynamic(RopeSettings& s, const RopeFamily& family, i64 max_positions, i64 dim, Rope& rope) {
  if (dim <= 2) s.fail("rope_type", "dynamic needs more than 2 rotated dims");
  if (const double alpha = family.alpha ? s.number("alpha", 0) : 0; alpha != 0) {
    if (alpha < 0) s.fail("alpha", "expected a number above 0");
    rope.usual.inv_freq =
        shared(rope_frequencies(s.theta * std::pow(alpha, static_cast<double>(dim) / (dim - 2)), dim));
    return;
  }
  const double factor = s.positive("factor");
  rope.usual_length = max_positions;
  rope.unlimited = true;
  rope.beyond = [=, theta = s.theta, o = rope.usual](i64 tokens) {
    const double stretch =
        factor * static_cast<double>(tokens) / static_cast<double>(max_positions) - (factor - 1);
    RopeOptions longer = o;
    longer.inv_freq =
        shared(rope_frequencies(theta * std::pow(stretch, static_cast<double>(dim) / (dim - 2)), dim));
    return longer;
  };
}

Rope reversed(Rope rope) {
  const auto negated = [](RopeOptions o) {
    Frequencies f = *o.inv_freq;
    for (float& x : f) x = -x;
    o.inv_freq = shared(std::move(f));
    return o;
  };
  rope.usual = negated(rope.usual);
  if (rope.beyond)
    rope.beyond = [negated, forward = rope.beyond](i64 tokens) { return negated(forward(tokens)); };
  return rope;
}

Rope read_settings(ModelConfig& c, RopeSettings s, const RopeFamily& family, i64 head_dim,
                   i64 max_positions) {
  const i64 dim = static_cast<i64>(static_cast<double>(head_dim) * s.share);
  if (dim % 2 != 0 || dim < 2)
    c.fail("head_dim",
           s.share == 1
               ? fmt::format("rotary positions need an even head width, this is {}", head_dim)
               : fmt::format("{} of {} dims of a head are rotated; expected an even number", dim, head_dim));
  Frequencies freq = rope_frequencies(s.theta, dim);
  Rope rope;
  rope.usual.interleaved = family.interleaved;
  if (s.type == "linear") {
    const auto factor = static_cast<float>(s.positive("factor"));
    for (float& f : freq) f /= factor;
  } else if (s.type == "llama3") {
    scale_llama3(s, max_positions, freq);
  } else if (s.type == "yarn") {
    rope.usual.attention_factor = scale_yarn(s, max_positions, dim, freq, &rope.score_magnitude);
  } else if (s.type != "default" && s.type != "longrope" && s.type != "dynamic") {
    s.fail("rope_type", "not supported; supported: default, linear, dynamic, llama3, yarn, longrope");
  }
  rope.usual.inv_freq = shared(std::move(freq));
  if (s.type == "longrope") scale_longrope(c, s, family, max_positions, dim, rope);
  if (s.type == "dynamic") scale_dynamic(s, family, max_positions, dim, rope);
  if (family.growth) {
    rope.query_growth = s.number("llama_4_scaling_beta");
    rope.query_growth_length = static_cast<i64>(s.positive("original_max_position_embeddings"));
  }
  s.finish();
  return family.reversed ? reversed(std::move(rope)) : rope;
}

}  // namespace

Rope read_rope(ModelConfig& c, i64 head_dim, i64 max_positions, const RopeFamily& family) {
  return read_settings(c, RopeSettings(c, find_rope(c, family)), family, head_dim, max_positions);
}

LayerRopes read_layer_ropes(ModelConfig& c, i64 head_dim, i64 max_positions, const RopeFamily& of_full,
                            const RopeFamily& of_sliding) {
  const Json v4 = Json::parse(c.json("rope_scaling")), v5 = Json::parse(c.json("rope_parameters"));
  RopeJson full{"rope_scaling", v4, of_full};
  RopeJson sliding{"rope_parameters", Json::object(), of_sliding};
  if (!v5.is_null() && !v5.empty()) {
    if (!v5.is_object()) c.fail("rope_parameters", "expected an object");
    for (const auto& [key, value] : v5.items())
      if (key != "full_attention" && key != "sliding_attention")
        c.fail("rope_parameters",
               fmt::format("{}: expected full_attention and sliding_attention, an object for each", key));
    const Json own = v5.value("full_attention", Json());
    if (!v4.is_null() && !v4.empty() && !own.is_null() && own != v4)
      c.fail("rope_scaling", "rope_parameters.full_attention contradicts it; keep one of them");
    if (!own.is_null()) full = {"rope_parameters", own, of_full};
    sliding.json = v5.value("sliding_attention", Json());
  }
  for (RopeJson* r : {&full, &sliding})
    if (r->json.is_null()) r->json = Json::object();
  return {read_settings(c, RopeSettings(c, full), of_full, head_dim, max_positions),
          read_settings(c, RopeSettings(c, sliding), of_sliding, head_dim, max_positions)};
}

}  // namespace redco
