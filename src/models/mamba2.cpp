// Mamba-2 (Dao & Gu 2024): a mixer (mamba_mixer.h) in place of attention and MLP.
#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/mamba_mixer.h"
#include "nn/cache_forms.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

class Mamba2 : public Model {
 public:
  explicit Mamba2(ModelConfig& c) {
    family_ = "mamba2";
    attends_ = false;
    vocab_size_ = c.integer("vocab_size");
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    MambaSettings& m = mixer_;
    m.heads = c.integer("num_heads");
    m.head_dim = c.integer("head_dim");
    m.groups = c.integer("n_groups");
    m.state = c.integer("state_size");
    m.taps = c.integer_or("conv_kernel", 4);
    m.eps = eps_ = c.positive_or("layer_norm_epsilon", 1e-5);
    m.activation = c.activation_or("hidden_act", "silu");
    m.bias = c.boolean_or("use_bias", false);
    m.conv_bias = c.boolean_or("use_conv_bias", true);
    const bool tied = c.boolean_or("tie_word_embeddings", false);
    const bool rescaled = c.boolean_or("rescale_prenorm_residual", false);
    const double std = c.number_or("initializer_range", 0.1), expand = c.positive_or("expand", 2);
    const double low = c.positive_or("time_step_min", 0.001), high = c.positive_or("time_step_max", 0.1),
                 floor = c.positive_or("time_step_floor", 1e-4);
    read_step_limit(c, m);
    if (std::llround(expand * static_cast<double>(width_)) != m.heads * m.head_dim)
      c.fail("num_heads", fmt::format("{} heads of head_dim={} are not expand={} times hidden_size={}",
                                      m.heads, m.head_dim, expand, width_));
    if (m.heads % m.groups != 0)
      c.fail("n_groups", fmt::format("expected a divisor of num_heads={}", m.heads));
    if (high < low) c.fail("time_step_max", fmt::format("expected at least time_step_min={}", low));
    // How transformers' kernels divide the work and round sums, and values from which it does not compute.
    c.inert({"chunk_size", "residual_in_fp32", "time_step_rank", "norm_before_gate"});
    c.expect("rms_norm", {"true"});
    c.finish();
    m.steps = {.kind = Init::Kind::time_step, .low = std::max(low, floor), .high = std::max(high, floor)};
    if (rescaled) m.out_scale = 1 / std::sqrt(static_cast<double>(n_layers_));
    relative_positions_ = true;
    max_length_ = 2048;

    SpecBuilder b(params_);
    b.embedding("backbone.embeddings.weight", vocab_size_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      b.norm(layer(i) + ".norm", width_, false);
      declare_mamba(b, layer(i) + ".mixer", width_, m);
    }
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
        return h +
               residual(o, activation(o, i, ".attention",
                                      mamba_mixer(own, layer(i) + ".mixer", mixer_, o, i, a, in.key_mask)));
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

  i64 width_;
  double eps_;
  MambaSettings mixer_;
};

}  // namespace

std::unique_ptr<Model> make_mamba2(ModelConfig& c) { return std::make_unique<Mamba2>(c); }

}  // namespace redco
