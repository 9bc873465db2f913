// A diffusion transformer (Peebles & Xie 2023) conditioned on text like PixArt-alpha (Chen et al. 2024):
// patches of a noisy image attend to each other and to the caption, and the time modulates every block
// through one shared projection (adaLN-single). Other than PixArt-alpha it has its own small text encoder,
// whose first token represents the whole caption and is added to the time.
//
// B batch, N patches, S caption tokens, C channels of the model.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/attention_block.h"
#include "models/families.h"
#include "models/patches.h"
#include "models/positions.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/redistribute.h"
#include "ops/shape.h"

namespace redco {

namespace {

// Numbers of the modulation, each [B, 1, C]: of the attention, then of the MLP.
enum Modulation { kShift, kScale, kGate, kMlpShift, kMlpScale, kMlpGate, kModulations };

class DiT : public Model {
 public:
  explicit DiT(ModelConfig& c) {
    family_ = "dit";
    task_ = ModelTask::text_to_image;
    vocab_size_ = c.integer("vocab_size");
    max_length_ = c.integer_or("max_position_embeddings", 128);
    patches_ = read_patch_grid(c);
    image_shape_ = patches_.image;
    if (image_shape_.channels != 1 && image_shape_.channels != 3)
      c.fail("num_channels", "expected 1 (grey) or 3 (colour)");
    width_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    text_layers_ = c.integer_or("num_text_layers", 2, 0);
    inner_ = c.integer_or("intermediate_size", 4 * width_);
    frequencies_ = c.integer_or("num_frequencies", 128);
    const i64 H = c.integer("num_attention_heads");
    if (width_ % 4 != 0) c.fail("hidden_size", "expected a multiple of 4, for sines and cosines of two axes");
    if (width_ % H != 0)
      c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
    heads_ = {H, H, width_ / H};
    activation_ = c.activation_or("hidden_act", "gelu_pytorch_tanh");
    dropout_ = c.rate_or("hidden_dropout_prob", 0);
    eps_ = c.positive_or("layer_norm_eps", 1e-6);
    std_ = c.number_or("initializer_range", 0.02);
    c.expect("architectures", {"[\"DiTForTextToImage\"]", "[]"});
    c.finish();
    declare();
    config_json_ = c.dump();
  }

  // The caption's memory [B, 1 + S, C]. Its first token attends to all others. If the mask hides the whole
  // caption, only this token is visible; it then means "no caption".
  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    Scope s("text_encoder");
    Tensor x = embedding(p["text.embed.weight"], in.input_ids) +
               embedding(p["text.positions.weight"],
                         in.positions.defined() ? in.positions : row_positions(in.input_ids, 0));
    x = residual(o, concat({broadcast_to(p["text.start"], {x.size(0), 1, width_}), x}, 1));
    const Tensor mask = with_start(in.key_mask);
    for (i64 i = 0; i < text_layers_; ++i) {
      const std::string h = fmt::format("text.blocks.{}", i);
      x = run_block(p, o, h, x, [this, o, h, mask](const ParamTree& own, const Tensor& y) {
        const Tensor z =
            y + dropout(o, "attention_out", dropout_,
                        attend_to_itself(own, o, h, layer_norm(own, h + ".norm1", y, eps_), mask));
        return z + dropout(o, "mlp_out", dropout_, mlp(own, o, h, layer_norm(own, h + ".norm2", z, eps_)));
      });
    }
    return gather_tokens(o, layer_norm(p, "text.norm", x, eps_));
  }

  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    REDCO_CHECK(
        in.memory.defined() && in.features.defined(),
        "a text-to-image model needs features, the time of each image [B, 1], and memory, the output of "
        "encode()");
    const i64 B = in.pixel_values.size(0);
    Tensor x, time, modulation;  // [B, N, C], [B, C], [B, 6, C]
    {
      Scope s("embedding");
      const Tensor patches = embed_patches(p, "x_embedder.proj", patches_, in.pixel_values);
      x = residual(o, patches + cast(grid_positions(), patches.dtype()));
      time =
          without_partials(embed_time(p, in.features, o)) + reshape(narrow(in.memory, 1, 0, 1), {B, width_});
      modulation = reshape(without_partials(dense(p, "t_block.1", silu(time), o)), {B, kModulations, width_});
    }
    const Tensor mask = with_start(in.key_mask), memory = in.memory;
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, block_name(i), x,
                    [this, o, i, modulation, memory, mask](const ParamTree& own, const Tensor& y) {
                      return block(own, o, i, y, modulation, memory, mask);
                    });
    }
    if (o.hidden_states) o.hidden_states->push_back(x);
    Scope s("output");
    const Tensor last = reshape(time, {B, 1, width_}) + p["final_layer.scale_shift_table"];  // [B, 2, C]
    const Tensor y = gather_tokens(o, modulate(x, part(last, 0), part(last, 1)));
    return image_of(dense(p, "final_layer.linear", y, o));
  }

 private:
  static std::string block_name(i64 i) { return fmt::format("blocks.{}", i); }

  void declare() {
    const auto [H, K, D] = heads_;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, out{1, H, K, D, false};
    SpecBuilder b(params_);
    const Init normal{Init::Kind::normal, std_}, zeros{Init::Kind::zeros};
    const auto attention = [&](const std::string& a) {
      b.fused(a + ".qkv", {{"q", width_, q}, {"k", width_, kv}, {"v", width_, kv}}, width_, true, std_,
              false);
      b.linear(a + ".proj", width_, width_, true, std_, false, out);
    };
    const auto feed_forward = [&](const std::string& h) {
      b.linear(h + ".mlp.fc1", inner_, width_, true, std_).role = Role::first;
      b.linear(h + ".mlp.fc2", width_, inner_, true, std_).role = Role::second;
    };
    b.embedding("text.embed.weight", vocab_size_, width_, std_);
    b.positions("text.positions.weight", max_length_, width_, std_);
    // Small tensors that begin the stream or modulate it. If they were sharded, the stream would be sharded
    // along its channels, and every norm would gather it.
    const auto small = [&](const std::string& name, const Shape& shape, const Init& init) {
      b.add(name, shape, ParamKind::other, init).cut = -1;
    };
    small("text.start", {1, 1, width_}, normal);
    for (i64 i = 0; i < text_layers_; ++i) {
      const std::string h = fmt::format("text.blocks.{}", i);
      b.norm(h + ".norm1", width_, true);
      attention(h + ".attn");
      b.norm(h + ".norm2", width_, true);
      feed_forward(h);
    }
    b.norm("text.norm", width_, true);

    declare_patches(b, "x_embedder.proj", patches_, width_, std_);
    params_.specs[params_.specs.size() - 2].cut = -1;  // its weight
    b.linear("t_embedder.mlp.0", width_, 2 * frequencies_, true, std_).role = Role::first;
    b.linear("t_embedder.mlp.2", width_, width_, true, std_).role = Role::second;
    b.linear("t_block.1", kModulations * width_, width_, true, std_).role = Role::second;
    const Init table{Init::Kind::normal, 1 / std::sqrt(static_cast<double>(width_))};
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = block_name(i);
      small(h + ".scale_shift_table", {kModulations, width_}, table);
      attention(h + ".attn");
      b.linear(h + ".cross_attn.q_linear", width_, width_, true, std_, false, q);
      b.fused(h + ".cross_attn.kv_linear", {{"k", width_, kv}, {"v", width_, kv}}, width_, true, std_, false);
      b.linear(h + ".cross_attn.proj", width_, width_, true, std_, false, out).init = zeros;
      feed_forward(h);
    }
    small("final_layer.scale_shift_table", {2, width_}, table);
    ParamSpec& last = b.linear("final_layer.linear", patch_numbers(), width_, true, std_);
    last.init = zeros;
    last.cut = -1;
  }

  i64 patch_numbers() const { return patches_.image.channels * patches_.patch_height * patches_.patch_width; }

  // The mask of a memory, [B, 1 + S]: its first token is always visible.
  static Tensor with_start(const Tensor& mask) {
    if (!mask.defined()) return mask;
    return concat({full_ids_like(narrow(mask, 1, 0, 1), 1), mask}, 1);
  }

  // Row k of [B, rows, C], as [B, 1, C].
  static Tensor part(const Tensor& rows, i64 k) { return narrow(rows, 1, k, 1); }

  Tensor modulate(const Tensor& x, const Tensor& shift, const Tensor& factor) const {
    const Tensor y = layer_norm(x, {}, {}, eps_, NormResult::stream);
    return y * add_scalar(factor, 1) + shift;
  }

  // A product with a Partial could leave the stream sharded along its channels, which the next norm would
  // have to gather. So the output of a row-parallel layer is reduced first: one all-reduce, as without a
  // gate.
  static Tensor gated(const Tensor& gate, const Tensor& y) { return gate * without_partials(y); }

  // The places of the patches, as DiT has them, which are not trained: sines and cosines of the row, then of
  // the column, with geometric frequencies. [1, N, C]
  Tensor grid_positions() const {
    const i64 quarter = width_ / 4;
    std::vector<double> values;
    for (i64 n = 0; n < patches_.count(); ++n)
      for (const i64 place : {n / patches_.columns(), n % patches_.columns()})
        for (const bool sine : {true, false})
          for (i64 i = 0; i < quarter; ++i) {
            const double angle = static_cast<double>(place) *
                                 std::pow(10'000.0, -static_cast<double>(i) / static_cast<double>(quarter));
            values.push_back(sine ? std::sin(angle) : std::cos(angle));
          }
    return from_values({1, patches_.count(), width_}, std::span<const double>(values));
  }

  // Times [B, 1] of 0 to 1, as DiT embeds 0 to 1000: cosines and sines of geometric frequencies, then an MLP.
  // [B, C]
  Tensor embed_time(const ParamTree& p, const Tensor& time, const ApplyOptions& o) const {
    std::vector<double> f;
    for (i64 i = 0; i < frequencies_; ++i)
      f.push_back(1000 *
                  std::exp(-std::log(10'000.0) * static_cast<double>(i) / static_cast<double>(frequencies_)));
    const Tensor frequencies = cast(from_values({1, frequencies_}, std::span<const double>(f)), time.dtype());
    const Tensor angles = time * frequencies;
    return dense(p, "t_embedder.mlp.2",
                 silu(dense(p, "t_embedder.mlp.0", concat({cos(angles), sin(angles)}, 1), o)), o);
  }

  AttentionBlock attention(const LayerName& q, const std::string& kv, const std::string& out) const {
    return {q,   {kv, "k"}, {kv, "v"},
            out, heads_,    {.scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim)), .causal = false}};
  }
  Tensor attend_to_itself(const ParamTree& p, const ApplyOptions& o, const std::string& h, const Tensor& x,
                          const Tensor& mask) const {
    Scope s("attention");
    const std::string a = h + ".attn";
    return residual(o,
                    self_attention(p, attention({a + ".qkv", "q"}, a + ".qkv", a + ".proj"), o, 0, x, mask));
  }
  Tensor mlp(const ParamTree& p, const ApplyOptions& o, const std::string& h, const Tensor& x) const {
    Scope s("mlp");
    const Tensor f = activate(activation_, dense(p, h + ".mlp.fc1", gather_tokens(o, x), o));
    return residual(o, dense(p, h + ".mlp.fc2", f, o));
  }

  Tensor block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x0, const Tensor& time,
               const Tensor& memory, const Tensor& mask) const {
    const std::string h = block_name(i), a = h + ".cross_attn";
    const Tensor m = time + p[h + ".scale_shift_table"];
    Tensor x = x0;
    const Tensor y = attend_to_itself(p, o, h, modulate(x, part(m, kShift), part(m, kScale)), {});
    x = x + dropout(o, "attention_out", dropout_, gated(part(m, kGate), y));
    {
      Scope s("cross_attention");
      const Tensor z = cross_attention(p, attention(a + ".q_linear", a + ".kv_linear", a + ".proj"), o, 0, x,
                                       memory, mask);
      x = x + dropout(o, "cross_attention_out", dropout_, residual(o, z));
    }
    const Tensor z = mlp(p, o, h, modulate(x, part(m, kMlpShift), part(m, kMlpScale)));
    return x + dropout(o, "mlp_out", dropout_, gated(part(m, kMlpGate), z));
  }

  // [B, N, numbers of a patch] -> [B, channels, height, width]. A patch's numbers are ordered as the ones
  // that the model reads: channel, row, column.
  Tensor image_of(const Tensor& y) const {
    const auto& [channels, height, width] = patches_.image;
    const Tensor cut = reshape(y, {y.size(0), patches_.rows(), patches_.columns(), channels,
                                   patches_.patch_height, patches_.patch_width});
    return reshape(permute(cut, {0, 3, 1, 4, 2, 5}), {y.size(0), channels, height, width});
  }

  PatchGrid patches_;
  HeadGeometry heads_;
  i64 width_, inner_, text_layers_, frequencies_;
  std::string activation_;
  double dropout_, eps_, std_;
};

}  // namespace

std::unique_ptr<Model> make_dit(ModelConfig& c) { return std::make_unique<DiT>(c); }

}  // namespace redco
