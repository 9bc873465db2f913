// new model: a decoder with attention.
#include "skeleton.h"

namespace redco::cli {
namespace {

constexpr const char* kModelSource =
    R"text(// @NAME@: a decoder with attention. Replace its layers by your own.
//
// This code does not depend on ranks: redco finds which dim of which parameter it distributes over model shards from
// the declarations below. Legend: B batch, T tokens, C width, H heads, D head width.
#include <cmath>

#include "redco.h"

using namespace redco;

class @CLASS@ForCausalLM : public Model {
 public:
  // 1. Reads config.json, or the keys of `model:` in the job. Every other key is an error.
  explicit @CLASS@ForCausalLM(ModelConfig& c) {
    vocab_size_ = c.integer("vocab_size");
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers");
    heads_ = c.integer("num_attention_heads");
    max_length_ = c.integer_or("max_position_embeddings", 128);
    dropout_ = c.rate_or("hidden_dropout", 0);
    const double std = c.positive_or("initializer_range", 0.02);
    if (width_ % (2 * heads_) != 0)
      c.fail("num_attention_heads", fmt::format("expected hidden_size={} to be heads of an even width", width_));
    c.finish();
    config_json_ = c.dump();

    // 2. Declares the parameters, in order. HeadsOf: the dim that consists of heads, which are never split.
    const i64 D = width_ / heads_;
    rope_.inv_freq = std::make_shared<const std::vector<float>>(rope_frequencies(10000, D));
    const HeadsOf q{0, heads_, heads_, D, false}, kv{0, heads_, heads_, D, true}, out{1, heads_, heads_, D, false};
    SpecBuilder b(params_);
    b.embedding("embed.weight", vocab_size_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + ".norm_1", width_, false);
      b.linear(h + ".attention.q", width_, width_, false, std, false, q);
      b.linear(h + ".attention.k", width_, width_, false, std, false, kv);
      b.linear(h + ".attention.v", width_, width_, false, std, false, kv);
      b.linear(h + ".attention.out", width_, width_, false, std, false, out);
      b.norm(h + ".norm_2", width_, false);
      b.linear(h + ".mlp.in", 4 * width_, width_, false, std).role = Role::first;
      b.linear(h + ".mlp.out", width_, 4 * width_, false, std).role = Role::second;
    }
    b.norm("norm", width_, false);
    b.tie("lm_head.weight", "embed.weight");
  }

 protected:
  // 3. [B, T] ids -> [B, T, V] logits. A layer that has a state overrides make_cache() too: nn/cache_forms.h.
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x = residual(o, embedding(p["embed.weight"], in.input_ids));
    for (i64 i = 0; i < n_layers_; ++i)
      x = run_block(p, o, layer(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
        return block(own, in, o, i, h);
      });
    return lm_head(p, "lm_head", gather_tokens(o, rms_norm(p, "norm", x, kEps)), o);
  }

 private:
  static constexpr double kEps = 1e-6;
  static std::string layer(i64 i) { return fmt::format("layers.{}", i); }

  // x + attention(norm(x)), then x + mlp(norm(x)).
  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i, Tensor x) const {
    const std::string h = layer(i), a = h + ".attention.";
    const i64 D = width_ / heads_;
    const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(D))};
    const AttentionBlock attention = {a + "q", a + "k", a + "v", a + "out", {heads_, heads_, D}, settings, &rope_};
    const Tensor attended = self_attention(p, attention, o, static_cast<size_t>(i), rms_norm(p, h + ".norm_1", x, kEps),
                                           in.key_mask, in.positions);
    x = x + dropout(o, "attention", dropout_, residual(o, attended));
    const Tensor inner = gelu(dense(p, h + ".mlp.in", gather_tokens(o, rms_norm(p, h + ".norm_2", x, kEps)), o));
    return x + dropout(o, "mlp", dropout_, residual(o, dense(p, h + ".mlp.out", inner, o)));
  }

  i64 width_, heads_;
  double dropout_;
  RopeOptions rope_;
};

// The family's name: model.arch of a job, model_type in config.json.
REDCO_MODEL("@NAME@", @CLASS@ForCausalLM)
)text";

constexpr const char* kModelJob =
    R"text(# redco train job.yaml
plugins: ./build/@NAME@.so
workdir: runs/@NAME@
model:
  arch: @NAME@
  tokenizer: bytes
  num_hidden_layers: 2
  hidden_size: 64
  num_attention_heads: 4
data: {train: builtin:markov, eval: builtin:markov, packing: false}
train: {global_batch_size: 32, n_epochs: 4, learning_rate: 3.0e-3, weight_decay: 0}
eval: {every_n_epochs: 1}
predict: {max_new_tokens: 20}
)text";

constexpr const char* kModelReadme =
    R"text(# @NAME@
A model family for redco in [`@NAME@.cpp`](@NAME@.cpp), written for one device.

    cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=PREFIX     # PREFIX: where redco is installed
    cmake --build build
    redco plan job.yaml parallel.n_model_shards=2      # what is distributed, memory, time
    redco train job.yaml
    redco train job.yaml parallel.n_ranks=2 workdir=runs/two                              # two replicas
    redco train job.yaml parallel.n_ranks=2 parallel.n_model_shards=2 workdir=runs/cut    # two model shards
    redco predict job.yaml predict.prompt=a

The job names the shared object in `plugins`. A checkpoint never loads it, so commands on a checkpoint need it too:
`redco predict workdir=runs/@NAME@ plugins=./build/@NAME@.so --prompt a`. The header `models/model.h` of redco
documents all functions of a model. Build again after an upgrade of redco.
)text";

}  // namespace

Skeleton model_skeleton() {
  return {.kind = "model",
          .example = "my_decoder",
          .files = {{"@NAME@.cpp", kModelSource},
                    {"CMakeLists.txt", skeleton_cmake("model")},
                    {"job.yaml", kModelJob},
                    {"README.md", kModelReadme}}};
}

}  // namespace redco::cli
