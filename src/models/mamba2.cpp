// Mamba-2 (Dao & Gu 2024): a linear recurrence per head in place of attention and MLP, after a short
// convolution; a gate and a norm over all heads before the output. No positions: the order of tokens is in
// the recurrence.
//
// Legend: B batch, T tokens, C model width, H heads of width P, I = H P inner width, G groups of heads that
// share B and C (here: keys and queries) of N numbers, K taps of the convolution.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/families.h"
#include "models/spec_builder.h"
#include "nn/cache_forms.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/recurrence.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Mamba2 : public Model {
 public:
  explicit Mamba2(ModelConfig& c) {
    family_ = "mamba2";
    attends_ = false;
    vocab_size_ = c.integer("vocab_size");
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    heads_ = c.integer("num_heads");
    P_ = c.integer("head_dim");
    groups_ = c.integer("n_groups");
    N_ = c.integer("state_size");
    taps_ = c.integer_or("conv_kernel", 4);
    eps_ = c.positive_or("layer_norm_epsilon", 1e-5);
    activation_ = c.activation_or("hidden_act", "silu");
    const bool bias = c.boolean_or("use_bias", false), conv_bias = c.boolean_or("use_conv_bias", true);
    const bool tied = c.boolean_or("tie_word_embeddings", false);
    const bool rescaled = c.boolean_or("rescale_prenorm_residual", false);
    const double std = c.number_or("initializer_range", 0.1), expand = c.positive_or("expand", 2);
    const double low = c.positive_or("time_step_min", 0.001), high = c.positive_or("time_step_max", 0.1),
                 floor = c.positive_or("time_step_floor", 1e-4);
    read_time_step_limit(c);
    if (std::llround(expand * static_cast<double>(width_)) != heads_ * P_)
      c.fail("num_heads", fmt::format("{} heads of head_dim={} are not expand={} times hidden_size={}",
                                      heads_, P_, expand, width_));
    if (heads_ % groups_ != 0) c.fail("n_groups", fmt::format("expected a divisor of num_heads={}", heads_));
    if (high < low) c.fail("time_step_max", fmt::format("expected at least time_step_min={}", low));
    // How transformers' kernels divide the work and round sums, and values from which it does not compute.
    c.inert({"chunk_size", "residual_in_fp32", "time_step_rank", "norm_before_gate"});
    c.expect("rms_norm", {"true"});
    c.finish();
    relative_positions_ = true;
    max_length_ = 2048;

    SpecBuilder b(params_);
    b.embedding("backbone.embeddings.weight", vocab_size_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) declare_layer(b, i, bias, conv_bias, rescaled, {low, high, floor});
    b.norm("backbone.norm_f", width_, false);
    if (tied) {
      b.tie("lm_head.weight", "backbone.embeddings.weight");
    } else {
      b.linear("lm_head", vocab_size_, width_, false, std).role = Role::head;
    }
    config_json_ = c.dump();
  }

  ModelCache make_cache(const CacheOptions& o) const override {
    ModelCache::Layers layers;
    for (i64 i = 0; i < n_layers_; ++i) layers.push_back(std::make_unique<StateCache>());
    return {std::move(layers), {}, o.capacity};
  }

  // The model without head is saved without the prefix; early versions named the table `embedding`.
  std::string canonical_name(const std::string& stored) const override {
    if (stored.starts_with("lm_head.")) return stored;
    const std::string name = stored.starts_with("backbone.") ? stored : "backbone." + stored;
    return name == "backbone.embedding.weight" ? "backbone.embeddings.weight" : name;
  }

 protected:
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = residual(o, embedding(p["backbone.embeddings.weight"], in.input_ids));
      x = activation(o, "embedding", x);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
        const Tensor a = gather_tokens(o, rms_norm(own, layer(i) + ".norm", h, eps_));
        Scope s("mixer");
        return h + residual(o, activation(o, i, ".attention", mixer(own, in, o, i, a)));
      });
      x = activation(o, i, "", x);
      if (o.hidden_states) o.hidden_states->push_back(x);
    }
    Scope s("lm_head");
    x = activation(o, "final_norm", gather_tokens(o, rms_norm(p, "backbone.norm_f", x, eps_)));
    if (o.hidden_states) o.hidden_states->push_back(x);
    return lm_head(p, "lm_head", x, o);
  }

 private:
  static std::string layer(i64 i) { return fmt::format("backbone.layers.{}", i); }

  // [low, high], where infinity is Python's or {"__float__": "Infinity"}.
  void read_time_step_limit(ModelConfig& c) {
    const auto limit = nlohmann::json::parse(c.json("time_step_limit"));
    if (limit.is_null()) return;
    const auto number = [&](const nlohmann::json& v) {
      if (v.is_number()) return v.get<double>();
      if (v.is_object() && v.value("__float__", "") == "Infinity") return kInfinity;
      c.fail("time_step_limit", "expected [low, high]");
    };
    if (!limit.is_array() || limit.size() != 2) c.fail("time_step_limit", "expected [low, high]");
    least_step_ = number(limit[0]);
    most_step_ = number(limit[1]);
    if (least_step_ > most_step_) c.fail("time_step_limit", "expected low <= high");
  }

  struct TimeSteps {
    double low, high, floor;
  };
  // Heads are cut over mp, with the groups if there are enough of them. Files store z, x, B, C and dt in one
  // projection, and x, B and C in one convolution.
  void declare_layer(SpecBuilder& b, i64 i, bool bias, bool conv_bias, bool rescaled, const TimeSteps& t) {
    const std::string h = layer(i), m = h + ".mixer.";
    const i64 I = heads_ * P_, S = groups_ * N_;
    const HeadsOf of_head{0, heads_, groups_, P_, false}, of_group{0, heads_, groups_, N_, true},
        one_each{0, heads_, groups_, 1, false};
    const auto uniform = [](i64 inputs, double factor = 1) {
      return Init{Init::Kind::uniform, factor / std::sqrt(static_cast<double>(inputs))};
    };
    const auto per_head = [&](const std::string& name, const Init& init) {
      ParamSpec& s = b.add(m + name, {heads_}, ParamKind::other, init);
      s.heads = one_each;
      s.cut = 0;
      s.precise = true;
    };
    b.norm(h + ".norm", width_, false);
    per_head(
        "dt_bias",
        {.kind = Init::Kind::time_step, .low = std::max(t.low, t.floor), .high = std::max(t.high, t.floor)});
    per_head("A_log", {Init::Kind::log_count});
    per_head("D", {Init::Kind::ones});
    const std::vector<SpecBuilder::Part> convolved = {
        {"x", I, of_head, 0}, {"B", S, of_group, 0}, {"C", S, of_group, 0}};
    std::vector<SpecBuilder::Part> projected = convolved;
    projected.insert(projected.begin(), SpecBuilder::Part{"z", I, of_head, 0});
    projected.push_back({"dt", heads_, one_each, 0, true});
    b.parts(m + "conv1d.weight", convolved, {1, taps_}, ParamKind::conv, uniform(taps_));
    if (conv_bias) b.parts(m + "conv1d.bias", convolved, {}, ParamKind::bias, {Init::Kind::zeros});
    b.parts(m + "in_proj.weight", projected, {width_}, ParamKind::linear, uniform(width_));
    if (bias) b.parts(m + "in_proj.bias", projected, {}, ParamKind::bias, {Init::Kind::zeros});
    b.norm(m + "norm", I, false);
    params_.specs.back().heads = of_head;
    params_.specs.back().cut = 0;
    ParamSpec& out = b.linear(m + "out_proj", width_, I, bias, 0, false, {1, heads_, groups_, P_, false});
    out.cut = 1;
    out.init = uniform(I, rescaled ? 1 / std::sqrt(static_cast<double>(n_layers_)) : 1);
  }

  // out(norm(scan(conv(x), dt) * silu(z))), [B, T, C] -> [B, T, C].
  Tensor mixer(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& a) const {
    const std::string m = layer(i) + ".mixer.", proj = m + "in_proj";
    const i64 B = a.size(0), T = a.size(1);
    const Tensors of =
        dense_layers(p, {{proj, "z"}, {proj, "x"}, {proj, "B"}, {proj, "C"}, {proj, "dt"}}, a, o);
    Tensor dt = softplus(of[4] + p[m + "dt_bias"]);  // [B, T, H]
    if (least_step_ > 0 || most_step_ < kInfinity) dt = clamp(dt, least_step_, most_step_);

    // Padding adds nothing to the state and lets nothing decay: a step of 0. Its tokens are zeros for the
    // convolution.
    LayerCache* const cache = o.cache ? &o.cache->layer(static_cast<size_t>(i)) : nullptr;
    Tensor mask, segments;
    if (in.key_mask.defined() && o.segmented) {
      segments = in.key_mask;
    } else if (in.key_mask.defined()) {
      const Tensor tokens = narrow(in.key_mask, 1, cache ? cache->length() : 0, T);
      mask = reshape(to_float(tokens, dt.dtype()), {B, T, 1});
      dt = dt * mask;
    }

    // Entries of the cache: the recurrence's state, and the last K - 1 inputs of each convolution.
    const Tensors held = cache ? cache->read().entries : Tensors();
    Tensors kept = {Tensor()};
    const auto convolved = [&](const std::string& part, const Tensor& projected) {
      const Tensor x = mask.defined() ? projected * mask : projected;
      const Tensor w = p[m + "conv1d.weight[" + part + "]"];
      const Tensor before = held.empty() ? Tensor() : held[kept.size()];
      if (cache) kept.push_back(last_tokens(before, x));
      const Tensor y = causal_conv1d(x, reshape(w, {x.size(2), taps_}),
                                     p.find(m + "conv1d.bias[" + part + "]"), before, segments);
      return activate(activation_, y);
    };
    const Tensor x = reshape(convolved("x", of[1]), {B, T, heads_, P_});
    const Tensor keys = reshape(convolved("B", of[2]), {B, T, groups_, N_});
    const Tensor queries = reshape(convolved("C", of[3]), {B, T, groups_, N_});

    RecurrenceInputs scan{.log_decay = dt * -exp(p[m + "A_log"]),
                          .k = keys,
                          .q = queries,
                          .v = x * reshape(dt, {B, T, heads_, 1}),
                          .segments = segments};
    if (!held.empty()) scan.initial = held[0];
    const Recurrence r = linear_recurrence(scan);
    if (cache) {
      kept[0] = r.state;
      cache->append(kept, T);
    }
    const Tensor y = reshape(r.y + x * reshape(p[m + "D"], {heads_, 1}), {B, T, heads_ * P_});
    return dense(p, m + "out_proj", rms_norm(p, m + "norm", y * silu(of[0]), eps_), o);
  }

  // The last K - 1 of the tokens held and those of x, with zeros before the first.
  Tensor last_tokens(const Tensor& before, const Tensor& x) const {
    const i64 T = x.size(1), n = taps_ - 1;
    if (T >= n) return narrow(x, 1, T - n, n);
    return before.defined() ? concat({narrow(before, 1, T, n - T), x}, 1) : pad_to(x, 1, n - T, n);
  }

  i64 width_, heads_, P_, groups_, N_, taps_;
  double eps_, least_step_ = 0, most_step_ = kInfinity;
  std::string activation_;
};

}  // namespace

std::unique_ptr<Model> make_mamba2(ModelConfig& c) { return std::make_unique<Mamba2>(c); }

}  // namespace redco
