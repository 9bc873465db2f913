// Low-rank adapters: PEFT's numbers on every mesh, no additional collectives, which layers get adapters,
// initial values.
#include "nn/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "autograd/grad.h"
#include "ckpt/peft.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "plan/planning.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "verify/verify.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::Planned;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string lora_fixture(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }

// --- PEFT's numbers ---

class LikePeft : public ::testing::TestWithParam<const char*> {};

// The tolerances of verify: ten times the difference between fp32 and fp64 in PyTorch.
TEST_P(LikePeft, LogitsLossGradientsAndThreeStepsOfAdamW) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}, Mesh{1, 3}, Mesh{1, 4}}) {
    VerifyReport report;
    on_mesh(mesh, [&](Context& c) {
      const VerifyReport r = verify({.folder = lora_fixture(GetParam())});
      if (c.rank() == 0) report = r;
    });
    std::set<std::string> kinds;
    for (const VerifyLine& l : report.lines) {
      EXPECT_TRUE(l.checked && l.passed) << "dp " << mesh.dp() << " x mp " << mesh.mp() << ": " << l.tensor
                                         << " " << l.difference << " > " << l.tolerance << " " << l.note;
      kinds.insert(l.tensor.substr(0, l.tensor.find('.')));
    }
    EXPECT_TRUE(report.passed);
    EXPECT_THAT(kinds, ElementsAre("adamw", "grad", "logits", "loss", "loss_after3", "loss_step1",
                                   "loss_step2", "loss_step3"));
  }
}
INSTANTIATE_TEST_SUITE_P(Fixtures, LikePeft, ::testing::Values("lora-gpt2", "lora-llama", "lora-gptj"),
                         [](const auto& info) { return std::string(info.param).substr(5); });

// --- Models with adapters ---

constexpr const char* kQwen2 =
    R"({"model_type": "qwen2", "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 6,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 96, "max_position_embeddings": 64})";
constexpr const char* kOptNarrow =
    R"({"model_type": "opt", "hidden_size": 24, "word_embed_proj_dim": 16, "ffn_dim": 40, "num_attention_heads": 4,
        "num_hidden_layers": 2, "vocab_size": 96, "max_position_embeddings": 64, "tie_word_embeddings": false,
        "do_layer_norm_before": false})";
constexpr const char* kT5 =
    R"({"model_type": "t5", "vocab_size": 96, "d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_heads": 4,
        "decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})";
constexpr const char* kBart =
    R"({"model_type": "bart", "vocab_size": 96, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
        "max_position_embeddings": 64, "tie_word_embeddings": false})";

LoraConfig all_linear(i64 rank = 2) {
  LoraConfig l;
  l.rank = rank;
  l.alpha = 3;
  l.target_modules = {kAllLinear};
  return l;
}

void adapt(Model& m, const LoraConfig& l) {
  m.set_params(with_lora(m.params(), l, lora_targets(m.params(), l, "the test"), "the test"));
}

// Random values; B is not zero, so that layers below it have gradients too.
ParamTree random_params(const Model& m, const Mesh& mesh) {
  ParamTree p = make_params(m.params(), shard_specs(m.params().specs, mesh.mp()).layouts);
  initialize(p, 3);
  for (size_t i = 0; i < p.size(); ++i)
    if (p.specs()[i].adapter.dim == 0) {
      Restore<SharedText> scope(Context::current().random_scope, p.specs()[i].name);
      fill_normal(p.values()[i], Context::current().key("test"), 0.3);
    }
  return p;
}

struct Values {
  std::map<std::string, std::vector<double>> gradients;
  double loss = 0;
};

// Loss and gradients of the trained parameters for 3 x 8 tokens.
Values loss_and_gradients(const Model& m, const Mesh& mesh, const ApplyOptions& o) {
  const ParamTree p = random_params(m, mesh).watched();
  const Shape shape = {3, 8};
  std::vector<i32> ids, targets, positions;
  for (i64 r = 0; r < shape[0]; ++r) {
    const std::vector<i32> mask(shape[1], 1);
    for (i64 t = 0; t < shape[1]; ++t) {
      ids.push_back(static_cast<i32>((7 * r + 5 * t * t + 3) % 90));
      targets.push_back(static_cast<i32>((11 * r + 3 * t + 1) % 90));
    }
    const auto row = m.positions(mask, false);
    positions.insert(positions.end(), row.begin(), row.end());
  }
  const Layout rows = batch_layout();
  DecoderInputs in{from_ids(shape, ids, rows), from_ids(shape, positions, rows), {}};
  if (m.is_encoder_decoder()) in.memory = m.encode(p, {.input_ids = from_ids(shape, targets, rows)}, o);
  const Tensor loss = sum_all(cross_entropy(m.apply(p, in, o), from_ids(shape, targets, rows)));
  std::vector<Tensor> wanted;
  std::vector<std::string> names;
  for (size_t i = 0; i < p.size(); ++i)
    if (p.specs()[i].trained()) {
      wanted.push_back(p.values()[i]);
      names.push_back(p.specs()[i].name);
    }
  const auto g = grad(loss, wanted);
  Values out;
  for (size_t i = 0; i < g.size(); ++i) out.gradients[names[i]] = to_values(g[i]);
  out.loss = item(loss);
  return out;
}

Values on(const Model& m, const Mesh& mesh, const ApplyOptions& o) {
  Values out;
  on_mesh(mesh, [&](Context& c) {
    c.random.seed = 11;
    const Values v = loss_and_gradients(m, mesh, o);
    if (c.rank() == 0) out = v;
  });
  return out;
}

void expect_near(const Values& got, const Values& want, const std::string& what) {
  // Sums of a few hundred fp32 products in another order, through two blocks: 1e-4 of the largest.
  EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss) << what;
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (const auto& [name, w] : want.gradients) {
    double largest = 0, worst = 0;
    const auto& g = got.gradients.at(name);
    ASSERT_EQ(g.size(), w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      largest = std::max(largest, std::abs(w[i]));
      worst = std::max(worst, std::abs(g[i] - w[i]));
    }
    EXPECT_LE(worst, 1e-4 * largest + 1e-7) << what << " " << name;
  }
}

struct Family {
  const char* name;
  const char* config;
};
class Adapted : public ::testing::TestWithParam<Family> {};

// The forward pass uses every adapter, also that of the head; mesh, dropout and recompute do not change the
// results.
TEST_P(Adapted, EveryAdapterIsUsedAndEveryMeshAgrees) {
  auto model = make_model(ModelConfig(GetParam().config, "test"));
  LoraConfig l = all_linear();
  l.target_modules = short_targets(model->params(), linear_modules(model->params()));
  l.dropout = 0.2;
  adapt(*model, l);
  const Values plain = on(*model, {1, 1}, {});
  const Values dropped = on(*model, {1, 1}, {.train = true});
  EXPECT_NE(plain.loss, dropped.loss);
  size_t adapters = 0;
  for (const Values* v : {&plain, &dropped})
    for (const auto& [name, g] : v->gradients) {
      EXPECT_GT(*std::max_element(g.begin(), g.end()), 0) << name;
      ++adapters;
    }
  EXPECT_GE(adapters,
            4 * linear_modules(make_model(ModelConfig(GetParam().config, "test"))->params()).size());
  for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 4}})
    expect_near(on(*model, mesh, {.train = true}), dropped, fmt::format("{} x {}", mesh.dp(), mesh.mp()));
  expect_near(on(*model, {1, 2}, {.train = true, .recompute_blocks = true}), dropped, "recompute");
}

INSTANTIATE_TEST_SUITE_P(Families, Adapted,
                         ::testing::Values(Family{"gpt2", redco::testing::kGpt2},
                                           Family{"gptj", redco::testing::kGptj}, Family{"opt", kOptNarrow},
                                           Family{"qwen2", kQwen2}, Family{"t5", kT5}, Family{"bart", kBart}),
                         [](const auto& info) { return std::string(info.param.name); });

// Forward and backward have the collectives of a step that trains all parameters, and no others; the Partial
// gradients of the adapters are reduced together in one.
TEST(Collectives, AdaptersNeedNoAdditionalCollectives) {
  for (const char* config :
       {redco::testing::kGpt2, redco::testing::kGptj, redco::testing::kLlama, redco::testing::kOpt})
    for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}}) {
      std::array<PlanReport, 2> plans;
      for (const bool lora : {false, true}) {
        Planned p = Planned::config(config);
        if (lora) adapt(*p.model, all_linear());
        p.request.length = 16;
        p.request.global_batch = 4;
        p.request.per_device = 2;
        plans[lora] = p.on(mesh.dp(), mesh.mp());
      }
      SCOPED_TRACE(fmt::format("{} x {}: {}", mesh.dp(), mesh.mp(), std::string(config).substr(0, 30)));
      const auto of = [&](bool lora, const char* kind, const char* where) {
        return redco::testing::counted(plans[lora].collectives, kind, "mp", where);
      };
      EXPECT_EQ(of(true, "all_reduce", "forward").count, of(false, "all_reduce", "forward").count);
      EXPECT_EQ(of(true, "all_reduce", "forward").bytes, of(false, "all_reduce", "forward").bytes);
      EXPECT_LE(of(true, "all_reduce", "backward").count, of(false, "all_reduce", "backward").count);
      EXPECT_LE(of(true, "all_reduce", "backward").bytes, of(false, "all_reduce", "backward").bytes);
      EXPECT_LE(of(true, "all_reduce", "step/gradients").count, 1);
      for (const char* kind : {"all_gather", "reduce_scatter", "all_to_all"})
        EXPECT_EQ(of(true, kind, "").count, of(false, kind, "").count) << kind;
      EXPECT_LT(plans[true].memory.gradients * 5, plans[false].memory.gradients);
      EXPECT_EQ(plans[true].memory.optimizer, 2 * plans[true].memory.gradients);
      EXPECT_GT(plans[true].n_trained, 0);
      EXPECT_LT(plans[true].n_trained * 5, plans[true].n_parameters);
    }
}

// --- Target layers and initial values ---

std::vector<std::string> targets(const Model& m, const LoraConfig& l) {
  return lora_targets(m.params(), l, "train.lora.target_modules (job.yaml:3:5)");
}
std::vector<std::string> named(const Model& m, std::vector<std::string> names) {
  LoraConfig l;
  l.target_modules = std::move(names);
  return targets(m, l);
}
std::vector<std::string> matched(const Model& m, const std::string& regex) {
  LoraConfig l;
  l.target_regex = regex;
  return targets(m, l);
}

TEST(Targets, AreFoundByEndsExpressionsAndAll) {
  const auto m = make_model(ModelConfig(redco::testing::kGpt2, "test"));
  EXPECT_THAT(named(*m, {"c_attn"}),
              ElementsAre("transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_attn"));
  EXPECT_THAT(
      named(*m, {"mlp.c_proj", "transformer.h.0.attn.c_proj"}),
      ElementsAre("transformer.h.0.attn.c_proj", "transformer.h.0.mlp.c_proj", "transformer.h.1.mlp.c_proj"));
  EXPECT_THAT(matched(*m, R"(.*h\.1\.mlp\..*)"),
              ElementsAre("transformer.h.1.mlp.c_fc", "transformer.h.1.mlp.c_proj"));
  EXPECT_EQ(named(*m, {kAllLinear}).size(), 8u);
  const auto llama = make_model(ModelConfig(redco::testing::kLlama, "test"));
  EXPECT_EQ(named(*llama, {kAllLinear}).size(), 14u);  // without lm_head, although it is a linear
  EXPECT_THAT(named(*llama, {"lm_head"}), ElementsAre("lm_head"));
}

TEST(Targets, NamesWithoutALayerAreErrorsWithSuggestions) {
  const auto m = make_model(ModelConfig(redco::testing::kGpt2, "test"));
  const auto why = [&](std::vector<std::string> names) {
    return error_text<UsageError>([&] { named(*m, std::move(names)); });
  };
  EXPECT_THAT(why({"c_atn"}),
              HasSubstr("train.lora.target_modules (job.yaml:3:5): 'c_atn' matches no layer"));
  EXPECT_THAT(why({"c_attn", "c_fcc"}), HasSubstr("did you mean c_fc? the model's linear layers are c_attn, "
                                                  "c_proj, c_fc"));
  // Whole components match, not parts of names.
  EXPECT_THAT(why({"attn"}), HasSubstr("matches no layer"));
  EXPECT_THAT(why({"wte"}), HasSubstr("'wte' is not a linear layer"));
  EXPECT_THAT(why({"ln_1"}), HasSubstr("not a linear layer"));
  EXPECT_THAT(why({"lm_head"}), HasSubstr("shares transformer.wte.weight"));
  EXPECT_THAT(why({}), HasSubstr("the list of layers is empty"));
  EXPECT_THAT(error_text<UsageError>([&] { matched(*m, "c_attn"); }), HasSubstr("whole name"));
  EXPECT_THAT(error_text<UsageError>([&] { matched(*m, "(c_attn"); }), HasSubstr("(c_attn"));
}

TEST(Targets, ModulesToSaveAreTrainedWhole) {
  const auto m = make_model(ModelConfig(redco::testing::kLlama, "test"));
  LoraConfig l = all_linear();
  l.modules_to_save = {"lm_head", "input_layernorm"};
  adapt(*m, l);
  std::vector<std::string> whole;
  for (const ParamSpec& s : m->params().specs)
    if (s.trained() && s.adapter.weight.empty()) whole.push_back(s.name);
  EXPECT_THAT(whole, ElementsAre("model.layers.0.input_layernorm.weight",
                                 "model.layers.1.input_layernorm.weight", "lm_head.weight"));
  const auto why = [](const char* config, std::vector<std::string> save,
                      std::vector<std::string> targets = {}) {
    const auto m = make_model(ModelConfig(config, "test"));
    LoraConfig l = all_linear();
    l.modules_to_save = std::move(save);
    if (!targets.empty()) l.target_modules = std::move(targets);
    return error_text<UsageError>([&] { adapt(*m, l); });
  };
  EXPECT_THAT(why(redco::testing::kLlama, {"normm"}), HasSubstr("no module's name ends in 'normm'"));
  EXPECT_THAT(why(redco::testing::kLlama, {"q_proj"}, {"q_proj"}),
              HasSubstr("is in modules_to_save and would also get an adapter"));
  EXPECT_THAT(why(redco::testing::kGpt2, {"lm_head"}), HasSubstr("tied"));
}

TEST(Initial, ValuesAreThoseOfTorchAndEqualOnEveryMesh) {
  std::map<std::string, std::vector<double>> first;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 3}})
    on_mesh(mesh, [&](Context& c) {
      const auto m = make_model(ModelConfig(redco::testing::kGpt2, "test"));
      adapt(*m, all_linear(4));
      ParamTree p = make_params(m->params(), shard_specs(m->params().specs, mesh.mp()).layouts);
      initialize(p, 5);
      for (size_t i = 0; i < p.size(); ++i) {
        const ParamSpec& s = p.specs()[i];
        if (s.adapter.weight.empty()) continue;
        const auto values = to_values(p.values()[i]);
        if (c.rank() != 0) continue;
        if (mesh.ranks() == 1) {
          first[s.name] = values;
          const double bound = s.adapter.dim == 1 ? 1 / std::sqrt(static_cast<double>(s.shape[1])) : 0;
          double most = 0, sum = 0;
          for (const double v : values) most = std::max(most, std::abs(v)), sum += v;
          EXPECT_LE(most, bound);
          // The largest of 128 uniform draws is below 0.9 with probability 0.9^128 = 1e-6.
          EXPECT_GE(most, 0.9 * bound) << s.name;
          // Their mean has a standard deviation of bound / sqrt(3 * 128) = 0.05 bound.
          EXPECT_LE(std::abs(sum) / static_cast<double>(values.size()), 0.25 * bound);
        }
        EXPECT_EQ(values, first.at(s.name)) << s.name;
      }
    });
}

TEST(Scale, IsThatOfPeft) {
  LoraConfig l;
  l.rank = 16;
  l.alpha = 8;
  EXPECT_EQ(l.scale_of("a.q_proj"), 0.5);
  l.use_rslora = true;
  EXPECT_EQ(l.scale_of("a.q_proj"), 2);
  l.rank_pattern["q_proj"] = 4;
  l.alpha_pattern["layers.1.*"] = 1;
  EXPECT_EQ(l.rank_of("a.q_proj"), 4);
  EXPECT_EQ(l.rank_of("a.xq_proj"), 16);
  EXPECT_EQ(l.scale_of("a.q_proj"), 4);
  EXPECT_EQ(l.scale_of("a.layers.1.q_proj"), 0.5);
}

}  // namespace
}  // namespace redco
