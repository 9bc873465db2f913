// Generation of models whose cache is a state per row without columns: a recurrent network, and Mamba-2.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "generate/generate.h"
#include "models/spec_builder.h"
#include "nn/cache_forms.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "shard/rules.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using redco::testing::Random;

constexpr i64 kVocabulary = 29, kWidth = 6;

// h = tanh(U h + E[token]), logits = W h; padding leaves h unchanged.
class Recurrent : public Model {
 public:
  Recurrent() {
    family_ = "recurrent";
    vocab_size_ = kVocabulary;
    max_length_ = 64;
    n_layers_ = 1;
    SpecBuilder b(params_);
    b.embedding("embed.weight", kVocabulary, kWidth, 1);
    b.linear("state", kWidth, kWidth, false, 1);
    b.linear("head", kVocabulary, kWidth, false, 1);
  }
  ModelCache make_cache(const CacheOptions& o) const override {
    ModelCache::Layers layers;
    layers.push_back(std::make_unique<StateCache>());
    return {std::move(layers), {}, o.capacity};
  }

 protected:
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    const i64 B = in.input_ids.size(0), T = in.input_ids.size(1), held = o.cache ? o.cache->length() : 0;
    const Tensor x = embedding(p["embed.weight"], in.input_ids);
    Tensor h = zeros({B, kWidth}, DType::f64);
    if (o.cache)
      if (const Tensors kept = o.cache->layer(0).read().entries; !kept.empty()) h = kept[0];
    for (i64 t = 0; t < T; ++t) {
      const Tensor next = tanh(reshape(narrow(x, 1, t, 1), {B, kWidth}) + dense(p, "state", h));
      if (!in.key_mask.defined()) {
        h = next;
        continue;
      }
      const Tensor seen = cast(narrow(in.key_mask, 1, held + t, 1), DType::f64);
      h = seen * next + add_scalar(scale(seen, -1), 1) * h;
    }
    if (o.cache) o.cache->layer(0).append({h}, T);
    return dense(p, "head", reshape(h, {B, 1, kWidth}));
  }
};

// Five heads in one group, so that shards are uneven; two heads in each of two groups, with other options.
constexpr const char* kMamba2 =
    R"({"model_type": "mamba2", "vocab_size": 29, "hidden_size": 10, "num_heads": 5,
    "head_dim": 4, "state_size": 3, "n_groups": 1, "conv_kernel": 4, "num_hidden_layers": 2})";
constexpr const char* kGroups =
    R"({"model_type": "mamba2", "vocab_size": 29, "hidden_size": 6, "num_heads": 4,
    "head_dim": 3, "state_size": 2, "n_groups": 2, "conv_kernel": 2, "num_hidden_layers": 1, "use_bias": true,
    "use_conv_bias": false, "tie_word_embeddings": true, "time_step_limit": [0.01, 0.7]})";

// Both forms of a cache, and a layer without one.
constexpr const char* kHybrid =
    R"({"model_type": "nemotron_h", "vocab_size": 29, "hidden_size": 6, "mamba_num_heads": 4,
    "mamba_head_dim": 3, "ssm_state_size": 2, "n_groups": 2, "hybrid_override_pattern": "M-*",
    "intermediate_size": 7, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 4})";
// The gated delta rule, and gated attention.
constexpr const char* kDelta =
    R"({"model_type": "qwen3_5_text", "vocab_size": 29, "hidden_size": 6, "linear_num_value_heads": 4,
    "linear_num_key_heads": 2, "linear_value_head_dim": 3, "linear_key_head_dim": 2, "num_hidden_layers": 2,
    "layer_types": ["linear_attention", "full_attention"], "intermediate_size": 7, "num_attention_heads": 3,
    "num_key_value_heads": 1, "head_dim": 8})";

// Short convolutions, Mamba's recurrence, and two mixers in one layer.
constexpr const char* kConv =
    R"({"model_type": "lfm2", "vocab_size": 29, "hidden_size": 8, "num_hidden_layers": 2,
    "layer_types": ["conv", "full_attention"], "intermediate_size": 7, "block_auto_adjust_ff_dim": false,
    "num_attention_heads": 2, "num_key_value_heads": 1})";
constexpr const char* kSelective =
    R"({"model_type": "mamba", "vocab_size": 29, "hidden_size": 5, "num_hidden_layers": 2, "state_size": 3,
    "time_step_rank": 2})";
constexpr const char* kBoth =
    R"({"model_type": "falcon_h1", "vocab_size": 29, "hidden_size": 8, "num_hidden_layers": 2,
    "mamba_d_ssm": 12, "mamba_n_heads": 4, "mamba_d_state": 3, "intermediate_size": 7,
    "num_attention_heads": 2, "num_key_value_heads": 1})";

std::unique_ptr<Model> model_of(const std::string& name) {
  if (name == "recurrent") return std::make_unique<Recurrent>();
  const char* config = name == "mamba2"      ? kMamba2
                       : name == "groups"    ? kGroups
                       : name == "hybrid"    ? kHybrid
                       : name == "conv"      ? kConv
                       : name == "selective" ? kSelective
                       : name == "both"      ? kBoth
                                             : kDelta;
  return make_model(ModelConfig(config, name));
}

struct RandomRecurrent {
  std::unique_ptr<Model> owned;
  Model& model;
  ParamTree params;
  explicit RandomRecurrent(const std::string& name) : owned(model_of(name)), model(*owned) {
    const auto& specs = model.params().specs;
    const ShardedSpecs sharded = name == "recurrent" ? ShardedSpecs{std::vector<Layout>(specs.size()), {}}
                                                     : shard_specs(specs, Context::current().mesh().mp());
    params = make_params(model.params(), sharded.layouts);
    for (std::size_t i = 0; i < params.size(); ++i) {
      const Shape& s = params.specs()[i].shape;
      params.values()[i] = from_values(s, std::span<const double>(Random(i + 3).values(numel(s), -1.5, 1.5)),
                                       sharded.layouts[i]);
    }
  }
  // log-probabilities of the token after these, without a cache.
  std::vector<double> next(const std::vector<i32>& ids) const {
    NoGrad off;
    const i64 n = static_cast<i64>(ids.size());
    std::vector<double> v =
        to_values(model.apply(params,
                              {.input_ids = from_ids({1, n}, ids),
                               .positions = from_ids({1, n}, model.positions(std::vector<i32>(n, 1), false)),
                               .key_mask = {}},
                              {.last_position_only = true}));
    double sum = 0;
    for (const double x : v) sum += std::exp(x);
    for (double& x : v) x -= std::log(sum);
    return v;
  }
};

std::vector<GenerationPrompt> prompts_of_many_lengths() {
  Random random(6);
  std::vector<GenerationPrompt> out(9);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].ordinal = static_cast<i64>(i);
    for (i64 k = 1 + random.below(9); k > 0; --k)
      out[i].ids.push_back(static_cast<i32>(random.below(kVocabulary)));
  }
  return out;
}

// Rows are replaced, forked and dropped: the batch is smaller than the number of prompts, and answers end at
// different times.
class RecurrentCache : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, RecurrentCache,
                         ::testing::Values("recurrent", "mamba2", "groups", "hybrid", "delta", "conv",
                                           "selective", "both"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RecurrentCache, AnswersAreThoseWithoutACache) {
  for (const int mp : {1, 2})
    for (const i64 batch : {1, 3, 9})
      on_mesh({1, mp}, [&](Context&) {
        const RandomRecurrent m(GetParam());
        const auto prompts = prompts_of_many_lengths();
        GenerationSettings greedy;
        greedy.max_new_tokens = 12;
        GenerationTokens tokens{.pad = 0, .decoder_start = {}, .forced_bos = {}, .forced_eos = {}};
        // The third token of the first answer ends answers, so that some end early.
        tokens.eos = {generate(m.model, m.params, {prompts.data(), 1}, greedy, tokens)[0][0].ids[2], 9};
        const auto answers = generate(m.model, m.params, prompts, greedy, tokens, {.batch_size = batch});
        bool eos = false;
        for (std::size_t i = 0; i < prompts.size(); ++i) {
          std::vector<i32> ids = prompts[i].ids;
          for (const i32 id : answers[i][0].ids) {
            const auto scores = m.next(ids);
            EXPECT_EQ(id, std::max_element(scores.begin(), scores.end()) - scores.begin()) << "prompt " << i;
            ids.push_back(id);
          }
          eos |= answers[i][0].finish == FinishReason::eos;
        }
        EXPECT_TRUE(eos);

        GenerationSettings beams = greedy;
        beams.num_beams = 3;
        beams.num_return_sequences = 2;
        const auto found = generate(m.model, m.params, prompts, beams, tokens, {.batch_size = batch});
        for (std::size_t i = 0; i < prompts.size(); ++i)
          for (const Answer& a : found[i]) {
            std::vector<i32> ids = prompts[i].ids;
            double score = 0;
            for (const i32 id : a.ids) {
              score += m.next(ids)[static_cast<std::size_t>(id)];
              ids.push_back(id);
            }
            EXPECT_NEAR(a.score, score / static_cast<double>(a.ids.size()), 1e-12) << "prompt " << i;
          }
      });
}

TEST_P(RecurrentCache, SamplesDoNotDependOnTheOtherRows) {
  on_one_rank([](Context&) {
    const RandomRecurrent m(GetParam());
    const auto prompts = prompts_of_many_lengths();
    GenerationSettings s;
    s.max_new_tokens = 10;
    s.temperature = 0.9;
    s.num_return_sequences = 2;
    std::vector<std::vector<i32>> alone, together;
    for (const GenerationPrompt& p : prompts)
      for (const auto& list : generate(m.model, m.params, {&p, 1}, s, {}))
        for (const Answer& a : list) alone.push_back(a.ids);
    for (const auto& list : generate(m.model, m.params, prompts, s, {}, {.batch_size = 4}))
      for (const Answer& a : list) together.push_back(a.ids);
    EXPECT_EQ(together, alone);
  });
}

// A state can be continued, but not taken back.
TEST_P(RecurrentCache, AKeptPrefixIsContinuedOrComputedAgain) {
  on_one_rank([](Context& c) {
    const RandomRecurrent m(GetParam());
    GenerationSettings s;
    s.max_new_tokens = 3;
    PrefixCache prefix;
    std::vector<i32> ids = {7, 8, 9, 10, 11, 12, 13};
    for (int turn = 0; turn < 4; ++turn) {
      const GenerationPrompt p{ids, turn};
      const i64 before = c.flops();
      const auto fresh = generate(m.model, m.params, {&p, 1}, s, {})[0][0];
      const i64 all = c.flops() - before;
      const auto kept = generate(m.model, m.params, {&p, 1}, s, {}, {.prefix = &prefix})[0][0];
      const i64 rest = c.flops() - before - all;
      EXPECT_EQ(kept.ids, fresh.ids);
      const bool continued = turn == 1 || turn == 3;
      EXPECT_EQ(rest < all, continued) << "turn " << turn;
      EXPECT_EQ(prefix.cache.length(), static_cast<i64>(prefix.ids.size()));
      ids.insert(ids.end(), fresh.ids.begin(), fresh.ids.end());
      if (turn == 1) ids.resize(8);  // a shortened history
      ids.push_back(20);
    }
  });
}

}  // namespace
}  // namespace redco
