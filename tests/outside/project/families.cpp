// Model families of a plugin: a language model with a recurrent state per layer, and a network on feature
// vectors.
//
// Legend: B batch, T tokens, C width, H heads of width P, N state size.
#include <cmath>

#include "redco.h"

using namespace redco;

namespace decays {

// Each layer is x + out(scan(norm(x))), with a decay that depends on the token.
class DecaysForCausalLM : public Model {
 public:
  explicit DecaysForCausalLM(ModelConfig& c) {
    vocab_size_ = c.integer("vocab_size");
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    heads_ = c.integer("num_heads");
    N_ = c.integer_or("state_size", 4);
    dropout_ = c.rate_or("hidden_dropout", 0);
    if (width_ % heads_ != 0)
      c.fail("num_heads", fmt::format("expected a divisor of hidden_size={}", width_));
    P_ = width_ / heads_;
    c.finish();
    relative_positions_ = true;
    max_length_ = 32;

    SpecBuilder b(params_);
    const double std = 1 / std::sqrt(static_cast<double>(width_));
    const HeadsOf wide{0, heads_, heads_, P_, false}, state{0, heads_, heads_, N_, false},
        one{0, heads_, heads_, 1, false};
    b.embedding("embed.weight", vocab_size_, width_, 0.1);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + "norm", width_, false);
      b.linear(h + "keys", heads_ * N_, width_, false, std, false, state).cut = 0;
      b.linear(h + "queries", heads_ * N_, width_, false, std, false, state).cut = 0;
      b.linear(h + "values", width_, width_, false, std, false, wide).cut = 0;
      b.linear(h + "decay", heads_, width_, false, std, false, one).cut = 0;
      b.linear(h + "out", width_, width_, false, std, false, {1, heads_, heads_, P_, false}).cut = 1;
    }
    b.norm("norm", width_, false);
    b.linear("lm_head", vocab_size_, width_, false, std).role = Role::head;
    config_json_ = c.dump();
  }

  ModelCache make_cache(const CacheOptions& o) const override {
    ModelCache::Layers layers;
    for (i64 i = 0; i < n_layers_; ++i) layers.push_back(std::make_unique<StateCache>());
    return {std::move(layers), {}, o.capacity};
  }

 protected:
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x = residual(o, embedding(p["embed.weight"], in.input_ids));
    for (i64 i = 0; i < n_layers_; ++i)
      x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
        const Tensor a = gather_tokens(o, rms_norm(own, layer(i) + "norm", h, 1e-5));
        return h + dropout(o, "out", dropout_, residual(o, scan(own, in, o, i, a)));
      });
    return lm_head(p, "lm_head", gather_tokens(o, rms_norm(p, "norm", x, 1e-5)), o);
  }

 private:
  static std::string layer(i64 i) { return fmt::format("layers.{}.", i); }

  // [B, T, C] -> [B, T, C]. Padding has no decay and adds nothing to the state.
  Tensor scan(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
              const Tensor& a) const {
    const std::string h = layer(i);
    const i64 B = a.size(0), T = a.size(1);
    LayerCache* const cache = o.cache ? &o.cache->layer(static_cast<std::size_t>(i)) : nullptr;
    RecurrenceInputs r{.log_decay = -softplus(dense(p, h + "decay", a, o)),
                       .k = reshape(dense(p, h + "keys", a, o), {B, T, heads_, N_}),
                       .q = reshape(dense(p, h + "queries", a, o), {B, T, heads_, N_}),
                       .v = reshape(dense(p, h + "values", a, o), {B, T, heads_, P_})};
    if (in.key_mask.defined() && o.segmented) {
      r.segments = in.key_mask;
    } else if (in.key_mask.defined()) {
      const Tensor tokens = narrow(in.key_mask, 1, cache ? cache->length() : 0, T);
      const Tensor mask = reshape(to_float(tokens, a.dtype()), {B, T, 1});
      r.log_decay = r.log_decay * mask;
      r.v = r.v * reshape(mask, {B, T, 1, 1});
    }
    if (cache)
      if (const Tensors held = cache->read().entries; !held.empty()) r.initial = held[0];
    const Recurrence y = linear_recurrence(r);
    if (cache) cache->append({y.state}, T);
    return dense(p, h + "out", reshape(y.y, {B, T, heads_ * P_}), o);
  }

  i64 width_, heads_, P_, N_;
  double dropout_;
};

// A bump for each hidden unit.
class BumpsModel : public Model {
 public:
  static constexpr bool kVocabulary = false;
  explicit BumpsModel(ModelConfig& c) {
    task_ = ModelTask::vector_regression;
    n_features_ = c.integer("input_size");
    const i64 width = c.integer("hidden_size");
    problem_type_ = c.text_or("problem_type", "regression");
    num_labels_ = 1;
    c.finish();
    n_layers_ = 1;
    SpecBuilder b(params_);
    b.linear("in", width, n_features_, true, 1).role = Role::first;
    b.linear("out", 1, width, true, 0.3).role = Role::second;
    config_json_ = c.dump();
  }
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    return dense(p, "out", exp(-square(dense(p, "in", in.features, o))), o);
  }
};

}  // namespace decays

REDCO_MODEL("decays", decays::DecaysForCausalLM)
REDCO_MODEL("bumps", decays::BumpsModel)
