// Mamba-2: how it is sharded, what it communicates, its initial values, packed and padded rows, its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"
#include "support/ranks.h"

namespace redco::testing {
namespace {

nlohmann::json small(const nlohmann::json& settings = {}) {
  nlohmann::json j = {{"model_type", "mamba2"}, {"vocab_size", 40},      {"hidden_size", 12},
                      {"num_heads", 6},         {"head_dim", 4},         {"n_groups", 2},
                      {"state_size", 3},        {"num_hidden_layers", 2}};
  if (!settings.is_null()) j.update(settings);
  return j;
}

std::unique_ptr<Model> model_of(const nlohmann::json& j) {
  return make_model(ModelConfig(j.dump(), "config.json"));
}

// The rows of each rank.
std::vector<i64> rows_of(const Model& m, const std::string& name, int shards, int dim = 0) {
  const auto& specs = m.params().specs;
  const ShardedSpecs s = shard_specs(specs, shards);
  std::vector<i64> out;
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == "backbone.layers.0.mixer." + name)
      for (int r = 0; r < shards; ++r)
        out.push_back(
            local_range(specs[i].shape, s.layouts[i], Mesh(1, shards), coord_of(Mesh(1, shards), r), dim)
                .size());
  return out;
}

TEST(Mamba2, HeadsAndGroupsAreCutTogether) {
  using Rows = std::vector<i64>;
  const auto groups = model_of(small());  // two groups of three heads of four
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[x]", 2), (Rows{12, 12}));
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[B]", 2), (Rows{3, 3}));
  EXPECT_EQ(rows_of(*groups, "conv1d.weight[C]", 2), (Rows{3, 3}));
  EXPECT_EQ(rows_of(*groups, "out_proj.weight", 2, 1), (Rows{12, 12}));
  // More shards than groups: each rank has its heads, and B and C on every rank.
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[z]", 4), (Rows{8, 8, 4, 4}));
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[dt]", 4), (Rows{2, 2, 1, 1}));
  EXPECT_EQ(rows_of(*groups, "A_log", 4), (Rows{2, 2, 1, 1}));
  EXPECT_EQ(rows_of(*groups, "norm.weight", 4), (Rows{8, 8, 4, 4}));
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[B]", 4), (Rows{6, 6, 6, 6}));
  EXPECT_EQ(rows_of(*groups, "in_proj.weight[x]", 7), (Rows{4, 4, 4, 4, 4, 4, 0}));
}

// More shards than heads; rows that the other meshes don't have.
TEST(Mamba2, RanksWithoutHeadsGiveTheSameNumbers) {
  expect_matches(fixture("mamba2"), run_model(fixture("mamba2"), {1, 5}));
  expect_matches(fixture("mamba2"), run_model(fixture("mamba2"), {2, 3}));
}

// Forward: one all-reduce of the embedding and one per mixer. If the heads of a group are on several ranks,
// each gated norm needs a number per token and head.
TEST(Mamba2, AMixerNeedsOneLargeAllReduce) {
  const i64 T = 30, C = 12;
  for (const int mp : {2, 3}) {
    const auto model = model_of(small());
    const auto context = Context::meta({1, mp}, 0);
    const Context::Use use(*context);
    const ParamTree params = make_params(model->params(), shard_specs(model->params().specs, mp).layouts);
    const Tensor ids = from_ids({2, T}, {});
    context->keep_ledger();
    NoGrad off;
    model->apply(params, {.input_ids = ids, .positions = ids, .key_mask = {}}, {.last_position_only = true});
    std::map<std::string, std::pair<i64, i64>> calls;  // and bytes
    for (const LedgerLine& l : context->ledger()->collectives()) {
      calls[l.what].first += l.count;
      calls[l.what].second += l.bytes;
    }
    std::map<std::string, std::pair<i64, i64>> expected = {{"all_reduce mp", {3, 3 * C * 2 * T * 4}}};
    if (mp == 3) expected["all_gather mp"] = {2, 2 * 6 * 2 * T * 4};
    EXPECT_EQ(calls, expected) << mp;
  }
}

TEST(Mamba2, InitialValuesDoNotDependOnTheMesh) {
  const auto model =
      model_of(small({{"time_step_min", 0.01}, {"time_step_max", 0.2}, {"time_step_floor", 0.02}}));
  std::map<std::string, std::vector<double>> first;
  for (const int mp : {1, 4})
    on_mesh({1, mp}, [&](Context& c) {
      ParamTree p = make_params(model->params(), shard_specs(model->params().specs, mp).layouts);
      initialize(p, 3);
      const std::string m = "backbone.layers.1.mixer.";
      for (const char* name : {"A_log", "dt_bias", "D", "conv1d.weight[x]", "in_proj.weight[B]"}) {
        const auto values = to_values(p[m + name]);
        if (c.rank() != 0) continue;
        if (mp == 1) first[name] = values;
        EXPECT_EQ(values, first[name]) << name;
      }
    });
  for (i64 h = 0; h < 6; ++h) {
    EXPECT_NEAR(std::exp(first["A_log"][h]), static_cast<double>(h + 1), 1e-6);
    const double step = std::log1p(std::exp(first["dt_bias"][h]));
    EXPECT_GE(step, 0.02 * (1 - 1e-5));
    EXPECT_LE(step, 0.2);
  }
  EXPECT_GT(*std::ranges::max_element(first["dt_bias"]) - *std::ranges::min_element(first["dt_bias"]), 0.1);
}

ParamTree random_params(const Model& m) {
  ParamTree p =
      make_params(m.params(), shard_specs(m.params().specs, Context::current().mesh().mp()).layouts);
  for (size_t i = 0; i < p.size(); ++i) {
    const Shape& s = p.specs()[i].shape;
    p.values()[i] = place(s, Random(i + 3).values(numel(s)), p.values()[i].layout());
  }
  return p;
}

std::vector<double> logits_of(const Model& m, const ParamTree& p, const std::vector<i32>& ids,
                              const std::vector<i32>& mask = {}, bool segmented = false) {
  NoGrad off;
  const i64 T = static_cast<i64>(ids.size());
  DecoderInputs in{.input_ids = from_ids({1, T}, ids), .positions = {}, .key_mask = {}};
  if (!mask.empty()) in.key_mask = from_ids({1, T}, mask);
  return to_values(m.apply(p, in, {.segmented = segmented}));
}

// Samples of one row, and padding on either side, do not affect each other.
TEST(Mamba2, PackedAndPaddedRowsGiveWhatTheirSamplesGive) {
  on_mesh({1, 2}, [](Context&) {
    const auto m = model_of(small());
    const ParamTree p = random_params(*m);
    const std::vector<i32> a = {3, 9, 27, 1}, b = {5, 6}, c = {30, 7, 7, 8, 2};
    const auto expect_at = [&](const std::vector<double>& row, size_t at, const std::vector<i32>& sample) {
      const auto alone = logits_of(*m, p, sample);
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(at * 40);
      EXPECT_LT(distance({begin, begin + static_cast<std::ptrdiff_t>(alone.size())}, alone), 1e-12) << at;
    };
    const auto packed = logits_of(*m, p, {3, 9, 27, 1, 5, 6, 30, 7, 7, 8, 2, 0, 0},
                                  {1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 0, 0}, true);
    expect_at(packed, 0, a);
    expect_at(packed, 4, b);
    expect_at(packed, 6, c);
    expect_at(logits_of(*m, p, {0, 0, 0, 30, 7, 7, 8, 2}, {0, 0, 0, 1, 1, 1, 1, 1}), 3, c);
    expect_at(logits_of(*m, p, {30, 7, 7, 8, 2, 0}, {1, 1, 1, 1, 1, 0}), 0, c);
  });
}

TEST(Mamba2, ReadsOldNamesAndPythonsInfinity) {
  const auto m = model_of(small());
  EXPECT_EQ(m->canonical_name("backbone.embedding.weight"), "backbone.embeddings.weight");
  EXPECT_EQ(m->canonical_name("layers.1.mixer.D"), "backbone.layers.1.mixer.D");
  EXPECT_EQ(m->canonical_name("lm_head.weight"), "lm_head.weight");
  std::string text =
      small({{"time_step_limit", {0.0, "LIMIT"}}, {"_name_or_path", "to \"Infinity\" and NaN"}}).dump();
  text.replace(text.find("\"LIMIT\""), 7, "Infinity");
  const auto model = make_model(ModelConfig(text, "config.json"));
  const auto saved = nlohmann::json::parse(model->config_json());
  EXPECT_EQ(saved["time_step_limit"][1], (nlohmann::json{{"__float__", "Infinity"}}));
  EXPECT_EQ(saved["_name_or_path"], "to \"Infinity\" and NaN");
  make_model(ModelConfig(model->config_json(), "saved"));
}

}  // namespace
}  // namespace redco::testing
