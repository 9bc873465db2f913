// Sharding rules on renamed transformers, custom rules, the table of rules, and hostile input.
#include "shard/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "decoder_models.h"

namespace redco {
namespace {

using redco::testing::gptj;
using redco::testing::kColumn;
using redco::testing::kRow;
using redco::testing::kWhole;
using redco::testing::llama;
using redco::testing::Model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- A transformer of no known family, under many names

struct Style {
  std::string token, position;             // tables
  std::string block;                       // the numbered module, without the number
  std::string attention, q, k, v, qkv, o;  // attention: a prefix that ends in a dot; empty for a flat block
  std::string mlp, first, gate, second;
  std::string norm1, norm2, last_norm, head;
};

struct Sizes {
  i64 vocab = 1000, positions = 128, width = 64, inner = 64, kv = 64, ff = 256;
  bool bias = false, fused = false, gated = false, cross = false;
};

Model transformer(const Style& s, const Sizes& z) {
  Model m;
  m.table(s.token, z.vocab, z.width);
  if (!s.position.empty()) m.table(s.position, z.positions, z.width);
  for (int i = 0; i < 3; ++i) {
    const std::string b = s.block + "." + std::to_string(i) + ".";
    m.norm(b + s.norm1, z.width, z.bias);
    for (int cross = 0; cross < (z.cross ? 2 : 1); ++cross) {
      const std::string a = (cross ? "cross_" : "") + s.attention;
      if (z.fused) {
        m.linear(b + a + s.qkv, z.inner + 2 * z.kv, z.width, kColumn, z.bias);
      } else {
        m.linear(b + a + s.q, z.inner, z.width, kColumn, z.bias);
        m.linear(b + a + s.k, z.kv, z.width, kColumn, z.bias);
        m.linear(b + a + s.v, z.kv, z.width, kColumn, z.bias);
      }
      m.linear(b + a + s.o, z.width, z.inner, kRow, z.bias);
    }
    m.norm(b + s.norm2, z.width, z.bias);
    if (z.gated) m.linear(b + s.mlp + s.gate, z.ff, z.width, kColumn, z.bias);
    m.linear(b + s.mlp + s.first, z.ff, z.width, kColumn, z.bias);
    m.linear(b + s.mlp + s.second, z.width, z.ff, kRow, z.bias);
  }
  m.norm(s.last_norm, z.width, z.bias);
  m.linear(s.head, z.vocab, z.width, kColumn);
  return m;
}

void expect_dims(const Model& m, const std::string& what) {
  const Sharding s = shard_parameters(m.params, 2);
  for (std::size_t i = 0; i < m.params.size(); ++i) {
    EXPECT_EQ(s.rules[i].dim, m.dims[i])
        << what << ": " << m.params[i].name << to_string(m.params[i].shape) << ", " << s.rules[i].rule;
    EXPECT_STREQ(name_of(s.kinds[i]), name_of(m.kinds[i])) << what << ": " << m.params[i].name;
  }
}

std::vector<Style> styles() {
  return {
      {"tok_emb", "pos_emb", "blocks", "mixer.", "to_q", "to_k", "to_v", "to_qkv", "to_out", "ffn.", "expand",
       "gate", "contract", "norm1", "norm2", "norm", "unembed"},
      {"embedding.token", "embedding.position", "layers", "mha.", "Wq", "Wk", "Wv", "Wqkv", "Wo", "ff.",
       "lin1", "lin_gate", "lin2", "pre_norm", "post_norm", "final_norm", "generator.proj"},
      {"vocab_table", "position_table", "stack", "attention.", "query_layer", "key_layer", "value_layer",
       "query_key_value", "output_layer", "feed_forward.", "linear_1", "linear_gate", "linear_2", "ln_a",
       "ln_b", "ln_out", "to_logits"},
      {"tokens", "positions", "encoder_layers", "self_attention.", "queries.linear", "keys.linear",
       "values.linear", "qkv.linear", "combine_heads.linear", "mlp.", "dense_in", "dense_gate", "dense_out",
       "scale_before", "scale_after", "scale_last", "vocab_proj"},
      {"model.wte", "", "model.h", "attn.", "qProj", "kProj", "vProj", "qkvProj", "oProj", "moe_free_mlp.",
       "upProj", "gateProj", "downProj", "rms1", "rms2", "rms", "lmHead"},
      {"model.shared", "model.pos", "model.decoder_stack.layer", "SelfAttention.", "q", "k", "v", "qkv", "o",
       "DenseReluDense.", "wi_1", "wi_0", "wo", "layer_norm_0", "layer_norm_1", "model.layer_norm",
       "lm_head"},
      {"input.lookup", "", "net", "attend.", "proj_q", "proj_k", "proj_v", "proj_qkv", "proj", "inner.",
       "widen", "gate", "shrink", "n1", "n2", "n", "output.logits"},
      // Flat blocks: layers directly in the block.
      {"words", "pos", "trunk", "", "wq", "wk", "wv", "wqkv", "wo", "", "w1", "w3", "w2", "g1", "g2", "g",
       "head"},
      {"embed", "", "cells", "", "query", "key", "value", "qkv", "out", "", "fc1", "fc_gate", "fc2", "sa",
       "sb", "sc", "predict"},
      // Sequences with numbered leaves.
      {"emb.0", "emb.1", "body", "fn.", "to_q.0", "to_k.0", "to_v.0", "to_qkv.0", "to_out.0", "ff.net.", "0",
       "1", "2", "na", "nb", "final", "classifier_over_words"},
      // Names without information: shapes and order must decide.
      {"alpha", "beta_table", "s", "x.", "a", "b", "c", "abc", "d", "y.", "a", "g", "b", "m", "n", "z",
       "omega"},
      {"alpha", "", "s", "x.in_a.", "lin", "lin_k", "lin_v", "lin", "lin_z", "y.", "lin", "lin_g", "lin_b",
       "m", "n", "z", "omega"},
      {"t", "", "s", "", "a", "b", "c", "abc", "d", "", "e", "g", "f", "m", "n", "z", "omega"},
      {"first", "", "unit", "p.", "left", "middle", "right", "all", "join", "r.", "open", "side", "close",
       "m", "n", "z", "last"},
  };
}

std::vector<std::pair<std::string, Sizes>> sizes() {
  Sizes plain, bias, gated, grouped, fused, multi_query, wide, cross;
  bias.bias = true;
  gated.gated = true;
  grouped.kv = 16;
  grouped.gated = true;
  fused.fused = true;
  fused.bias = true;
  multi_query.fused = true;
  multi_query.kv = 8;
  wide.inner = wide.kv = 96;
  cross.cross = true;
  cross.bias = true;
  return {{"plain", plain},     {"bias", bias},   {"gated", gated},
          {"grouped", grouped}, {"fused", fused}, {"multi-query", multi_query},
          {"wide", wide},       {"cross", cross}};
}

TEST(RulesRenamed, AnyTransformerGetsTheSameSpecs) {
  for (const Style& s : styles())
    for (const auto& [name, z] : sizes())
      expect_dims(transformer(s, z), s.block + "/" + s.attention + s.q + ", " + name);
}

// Names of attention, MLP, tables and head are chosen independently of each other.
TEST(RulesRenamed, MixedNamingStylesGetTheSameSpecs) {
  const std::vector<Style> all = styles();
  std::mt19937 random(7);
  const auto pick = [&] { return all[random() % all.size()]; };
  for (int t = 0; t < 300; ++t) {
    Style s = pick();
    const Style a = pick(), f = pick(), e = pick(), n = pick();
    if (a.attention.empty() == f.mlp.empty()) {
      s.attention = a.attention, s.q = a.q, s.k = a.k, s.v = a.v, s.qkv = a.qkv, s.o = a.o;
      s.mlp = f.mlp, s.first = f.first, s.gate = f.gate, s.second = f.second;
    }
    if (!s.mlp.empty() && s.mlp == s.attention) continue;
    s.token = e.token, s.position = e.position, s.head = e.head;
    s.norm1 = n.norm1, s.norm2 = n.norm2, s.last_norm = n.last_norm;
    const auto all_sizes = sizes();
    const auto& [name, z] = all_sizes[random() % all_sizes.size()];
    expect_dims(transformer(s, z), s.attention + s.q + "/" + s.mlp + s.first + "/" + s.token + ", " + name);
  }
}

// k, v, q and output in another order of definition.
TEST(RulesRenamed, OrderOfDefinitionInAnAttentionDoesNotMatter) {
  Model m;
  m.table("e", 500, 32);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "l." + std::to_string(i) + ".";
    for (const char* x : {"k_map", "v_map", "q_map"}) m.linear(b + "attn." + x, 32, 32, kColumn, true);
    m.linear(b + "attn.final_map", 32, 32, kRow, true);
    m.norm(b + "n", 32);
    m.linear(b + "f.back", 32, 128, kRow);  // the second is defined first
    m.linear(b + "f.up", 128, 32, kColumn);
  }
  m.norm("n", 32);
  // 'back' is not a known name, and from shape and order alone the pair would be reversed; 'down' is known.
  for (ParamInfo& p : m.params)
    if (const auto at = p.name.find("f.back"); at != std::string::npos) p.name.replace(at, 6, "f.down");
  expect_dims(m, "order");
}

// ---- Custom rules

using Spec = std::vector<std::optional<std::string>>;
const std::optional<std::string> kNone = std::nullopt;

int index_of(const std::vector<ParamInfo>& params, const std::string& name) {
  for (std::size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name) return static_cast<int>(i);
  ADD_FAILURE() << name;
  return 0;
}

TEST(RulesCustom, SpecsAreInThePapersOrder) {
  std::vector<ParamInfo> p = gptj(1).params;
  p.push_back({"conv.weight", {8, 4, 3, 3}});
  p.push_back({"stem.experts.up", {4, 64, 32}, ParamKind::linear});
  const Sharding s = shard_parameters(p, 2,
                                      {{".*fc_in.weight", {"mp", kNone}},
                                       {".*wte.weight", {kNone, "mp"}},
                                       {"conv.weight", {kNone, kNone, "mp", kNone}},
                                       {".*experts.*", {kNone, kNone, "mp"}},
                                       {".*ln_f.weight", {"mp"}},
                                       {".*[qk]_proj.weight", {kNone, kNone}}});
  const auto dim = [&](const std::string& name) { return s.rules[index_of(p, name)].dim; };
  EXPECT_EQ(dim("transformer.h.0.mlp.fc_in.weight"), 1);
  EXPECT_EQ(dim("transformer.wte.weight"), 1);
  EXPECT_EQ(dim("conv.weight"), 1);
  EXPECT_EQ(dim("stem.experts.up"), 1);
  EXPECT_EQ(dim("transformer.ln_f.weight"), 0);
  EXPECT_EQ(dim("transformer.h.0.attn.q_proj.weight"), -1);
  EXPECT_EQ(dim("transformer.h.0.attn.v_proj.weight"), 0);
  // The bias is cut like its weight.
  EXPECT_EQ(dim("transformer.h.0.mlp.fc_in.bias"), -1);
  EXPECT_EQ(s.rules[index_of(p, "transformer.h.0.mlp.fc_in.bias")].rule, "bias of row-split layer");
  EXPECT_EQ(s.rules[index_of(p, "transformer.h.0.mlp.fc_in.weight")].rule, "custom: .*fc_in.weight");
  EXPECT_THAT(s.warnings, IsEmpty());
  EXPECT_EQ(s.rows[0].rule.substr(0, 7), "custom:");
}

TEST(RulesCustom, TheFirstMatchWithTheSameNumberOfDimsWins) {
  const std::vector<ParamInfo> p = gptj(2).params;
  const Sharding s = shard_parameters(p, 2,
                                      {{".*", {"mp"}},  // vectors only
                                       {".*h\\.0\\..*", {"mp", kNone}},
                                       {".*q_proj.weight", {kNone, kNone}}});
  const auto dim = [&](const std::string& name) { return s.rules[index_of(p, name)].dim; };
  EXPECT_EQ(dim("transformer.h.0.attn.q_proj.weight"), 1);
  EXPECT_EQ(dim("transformer.h.1.attn.q_proj.weight"), -1);
  EXPECT_EQ(dim("transformer.h.1.attn.k_proj.weight"), 0);
  EXPECT_EQ(dim("transformer.h.1.ln_1.bias"), 0);
  EXPECT_THAT(s.warnings, IsEmpty());
  // The two layers differ now, so they have separate rows in the table.
  EXPECT_NE(s.rules[index_of(p, "transformer.h.0.attn.k_proj.weight")].pattern,
            s.rules[index_of(p, "transformer.h.1.attn.k_proj.weight")].pattern);
}

TEST(RulesCustom, ARuleForAFusedNameAppliesToEachPart) {
  std::vector<ParamInfo> p;
  for (const char* x : {"q", "k", "v"})
    p.push_back({std::string("h.0.attn.c_attn.weight[") + x + "]", {64, 64}});
  const Sharding s = shard_parameters(
      p, 2, {{".*c_attn.weight\\[k\\]", {kNone, kNone}}, {".*c_attn.weight", {"mp", kNone}}});
  EXPECT_EQ(s.rules[0].dim, 1);
  EXPECT_EQ(s.rules[1].dim, -1);
  EXPECT_EQ(s.rules[2].dim, 1);
  EXPECT_NE(s.rules[0].pattern, s.rules[1].pattern);
  EXPECT_EQ(s.rules[0].pattern, s.rules[2].pattern);
}

TEST(RulesCustom, RulesThatDoNothingAreReported) {
  const std::vector<ParamInfo> p = gptj(1).params;
  EXPECT_THAT(shard_parameters(p, 2, {{"fc_in.weight", {"mp", kNone}}}).warnings,
              ElementsAre(HasSubstr("'fc_in.weight' matches no parameter")));
  EXPECT_THAT(shard_parameters(p, 2, {{".*fc_in.weight", {"mp"}}}).warnings,
              ElementsAre(HasSubstr("whose number of dims is not")));
  EXPECT_THAT(shard_parameters(p, 2, {{".*", {"mp", kNone}}, {".*fc_in.weight", {"mp", kNone}}}).warnings,
              ElementsAre(HasSubstr("never used")));
  std::vector<ParamInfo> one = {{"types.weight", {1, 64}, ParamKind::embedding}};
  const Sharding s = shard_parameters(one, 2, {{"types.weight", {"mp", kNone}}});
  EXPECT_EQ(s.rules[0].dim, -1);
  EXPECT_THAT(s.warnings, ElementsAre(HasSubstr("of only one piece")));
}

void expect_usage_error(const std::vector<CustomRule>& rules, const std::string& what) {
  try {
    shard_parameters(gptj(1).params, 2, rules);
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr(what));
    EXPECT_THAT(e.what(), HasSubstr(rules[0].match));
  }
}

TEST(RulesCustom, BadRulesAreUsageErrors) {
  expect_usage_error({{".*(fc_in", {"mp", kNone}}}, "missing )");
  expect_usage_error({{".*fc_in.weight", {"mp", "mp"}}}, "names mp twice");
  expect_usage_error({{".*fc_in.weight", {"dp", kNone}}}, "unknown mesh axis 'dp'");
  expect_usage_error({{".*fc_in.weight", {"", kNone}}}, "unknown mesh axis ''");
  expect_usage_error({{"(?!x).*", {kNone, "mp"}}}, "look-around");
}

// ---- Dims that cannot be split

TEST(RulesDims, MaxPiecesLimitTheCuts) {
  std::vector<ParamInfo> p = llama(1).params;
  for (ParamInfo& x : p)
    if (x.name.find("k_proj") != std::string::npos || x.name.find("v_proj") != std::string::npos)
      x.max_pieces = {1, 4096};
  const Sharding s = shard_parameters(p, 4);
  EXPECT_EQ(s.rules[index_of(p, "model.layers.0.self_attn.k_proj.weight")].dim, -1);
  EXPECT_EQ(s.rules[index_of(p, "model.layers.0.self_attn.k_proj.weight")].rule,
            "replicated: no dim can be split");
  EXPECT_EQ(s.rules[index_of(p, "model.layers.0.self_attn.q_proj.weight")].dim, 0);
  p[0].max_pieces = {1};
  EXPECT_THROW(shard_parameters(p, 4), UsageError);
}

TEST(RulesDims, ACutThatTheModelGivesDecides) {
  std::vector<ParamInfo> p = llama(1).params;
  const auto at = [&](const char* name) { return index_of(p, std::string("model.layers.0.") + name); };
  p[at("self_attn.q_proj.weight")].cut = 1;
  p[at("mlp.up_proj.weight")].cut = -1;
  p[at("input_layernorm.weight")].cut = 0;
  p[at("self_attn.k_proj.weight")].cut = 0;
  p[at("self_attn.k_proj.weight")].max_pieces = {1, 4096};
  const Sharding s = shard_parameters(p, 4, {{".*q_proj.*", {std::nullopt, "mp"}}});
  EXPECT_EQ(s.rules[at("mlp.up_proj.weight")].dim, -1);
  EXPECT_EQ(s.rules[at("mlp.up_proj.weight")].rule, "cut given by the model");
  EXPECT_EQ(s.rules[at("input_layernorm.weight")].dim, 0);
  EXPECT_EQ(s.rules[at("self_attn.k_proj.weight")].rule, "replicated: no dim can be split");
  EXPECT_EQ(s.rules[at("self_attn.q_proj.weight")].dim, 0);  // the user's rule comes first
  // The others keep their rules.
  EXPECT_EQ(s.rules[at("mlp.gate_proj.weight")].dim, 0);
  EXPECT_EQ(s.rules[at("mlp.down_proj.weight")].dim, 1);
  p[0].cut = 2;
  EXPECT_THROW(shard_parameters(p, 4), BugError);
}

TEST(RulesDims, TheRestTakesADimThatCanBeSplit) {
  // The first is cut along its output. A dim of one output cannot be split, so the input is cut.
  std::vector<ParamInfo> p = {{"net.0.proj_a.weight", {1, 64}, ParamKind::linear},
                              {"conv.weight", {1, 1, 3, 3}, ParamKind::conv},
                              {"gray.weight", {8, 1, 3, 3}, ParamKind::conv},
                              {"token", {1, 1, 64}}};
  p.insert(p.begin(), {"l.0.x.a.weight", {4, 8}});  // gives the model a block
  p.insert(p.begin() + 1, {"l.0.x.b.weight", {8, 4}});
  const Sharding s = shard_parameters(p, 4);
  EXPECT_EQ(s.rules[2].dim, 1);
  EXPECT_EQ(s.rules[3].dim, -1);
  EXPECT_EQ(s.rules[3].rule, "replicated: no dim can be split");
  EXPECT_EQ(s.rules[4].dim, 0);
  EXPECT_EQ(s.rules[5].dim, -1);
}

TEST(RulesDims, FewerThanOneShardIsAnError) {
  EXPECT_THROW(shard_parameters(gptj(1).params, 0), UsageError);
  EXPECT_THROW(shard_parameters(gptj(1).params, -2), UsageError);
}

// ---- The table

// The paper's Figure 7.
TEST(RulesTable, GptJMatchesFigure7) {
  EXPECT_EQ("\n" + format_rules_table(shard_parameters(gptj(28).params, 2).rows), R"(
pattern                        spec        rule                           tensors
fc_in.weight                   (None, mp)  fully connected, first              28
fc_out.weight                  (mp, None)  fully connected, second             28
(q_proj|k_proj|v_proj).weight  (None, mp)  attention q/k/v                     84
out_proj.weight                (mp, None)  attention output                    28
wte.weight                     (mp, None)  embedding                            1
lm_head.weight                 (None, mp)  lm head                              1
(bias|scale)                   None        norm; bias of row-split layer       86
of the biases, redco splits with their column: (fc_in|lm_head).bias (mp) (29 tensors)
)");
}

// The paper's Figure 8.
TEST(RulesTable, LlamaMatchesFigure8) {
  EXPECT_EQ("\n" + format_rules_table(shard_parameters(llama(32).params, 2).rows), R"(
pattern                                                 spec        rule                     tensors
(gate_proj|up_proj).weight                              (None, mp)  fully connected, first        64
down_proj.weight                                        (mp, None)  fully connected, second       32
(q_proj|k_proj|v_proj).weight                           (None, mp)  attention q/k/v               96
o_proj.weight                                           (mp, None)  attention output              32
embed_tokens.weight                                     (mp, None)  embedding                      1
lm_head.weight                                          (None, mp)  lm head                        1
(input_layernorm|post_attention_layernorm|norm).weight  None        norm                          65
)");
}

TEST(RulesTable, PatternsAreLongEnoughToBeUnambiguous) {
  std::vector<ParamInfo> p;
  p.push_back({"wte.weight", {50257, 768}});
  for (const char* x : {"q", "k", "v"})
    p.push_back({std::string("h.0.attn.c_attn.weight[") + x + "]", {768, 768}});
  p.push_back({"h.0.attn.c_proj.weight", {768, 768}});
  p.push_back({"h.0.mlp.c_fc.weight", {3072, 768}});
  p.push_back({"h.0.mlp.c_proj.weight", {768, 3072}});
  const Sharding s = shard_parameters(p, 2);
  EXPECT_EQ(s.rules[1].pattern, "c_attn.weight");
  EXPECT_EQ(s.rules[4].pattern, "attn.c_proj.weight");
  EXPECT_EQ(s.rules[6].pattern, "mlp.c_proj.weight");
}

TEST(RulesTable, LayersOfDifferentSpecKeepTheirNumbers) {
  std::vector<ParamInfo> p;
  for (int i = 0; i < 4; ++i) p.push_back({"layers." + std::to_string(i) + ".weight", {64, 64}});
  const Sharding s = shard_parameters(p, 2);
  EXPECT_EQ(s.rules[0].pattern, "(layers.0|layers.2).weight");
  EXPECT_EQ(s.rules[1].pattern, "(layers.1|layers.3).weight");
}

// ---- Hostile input

TEST(RulesAnything, OddNamesAndShapesCauseNoInternalError) {
  EXPECT_THAT(shard_parameters({}, 2).rules, IsEmpty());
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {
      "",    ".",       "..", "0", "weight", "bias",   "[q]",      "[",   "]",         "attn",          "q",
      "mlp", "experts", "7",  "_", "o",      "router", "\xc3\xa9", "fc1", "weight[k]", "relative_bias", "W"};
  for (int t = 0; t < 3000; ++t) {
    std::vector<ParamInfo> p(random() % 12);
    for (ParamInfo& x : p) {
      for (int k = static_cast<int>(random() % 7); k > 0; --k)
        x.name += (random() % 2 ? "." : "") + pieces[random() % pieces.size()];
      for (int k = static_cast<int>(random() % 6); k > 0; --k)
        x.shape.push_back(static_cast<i64>(random() % 4) * 4);
      if (random() % 4 == 0) x.kind = static_cast<ParamKind>(random() % 6);
    }
    const Sharding s = shard_parameters(p, 1 + static_cast<i64>(random() % 5), {{".*w.*", {"mp", kNone}}});
    ASSERT_EQ(s.rules.size(), p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      ASSERT_LT(s.rules[i].dim, static_cast<int>(p[i].shape.size()));
      ASSERT_FALSE(s.rules[i].rule.empty());
      if (s.rules[i].dim >= 0) {
        ASSERT_GT(p[i].shape[s.rules[i].dim], 1);
      }
    }
    format_rules_table(s.rows);
  }
}

// 60 layers with 256 experts each; an algorithm of quadratic time would exceed the time limit.
TEST(RulesAnything, FiftyThousandTensorsGiveTwoRows) {
  std::vector<ParamInfo> p;
  for (int l = 0; l < 60; ++l)
    for (int e = 0; e < 256; ++e) {
      const std::string b = "layers." + std::to_string(l) + ".mlp.experts." + std::to_string(e) + ".";
      p.push_back({b + "gate_proj.weight", {2048, 7168}});
      p.push_back({b + "up_proj.weight", {2048, 7168}});
      p.push_back({b + "down_proj.weight", {7168, 2048}});
    }
  const Sharding s = shard_parameters(p, 8, {{".*nothing.*", {"mp", kNone}}});
  EXPECT_EQ(s.rows.size(), 2u);
}

}  // namespace
}  // namespace redco
