// Sharding rules on the parameter lists of real models: every tensor is cut at the expected dim.
#include <gtest/gtest.h>

#include "decoder_models.h"
#include "encoder_models.h"
#include "shard/rules.h"

namespace redco::testing {
namespace {

struct Family {
  const char* name;
  Model model;
};

std::vector<Family> families() {
  return {{"gptj", gptj(2)},
          {"llama", llama(2)},
          {"gpt2", gpt2()},
          {"gpt2, fused tensors whole", gpt2_unfused_names()},
          {"opt", opt()},
          {"qwen2", qwen2()},
          {"gpt-neox",
           query_key_value("gpt_neox.layers", "attention", "gpt_neox.embed_in", 1024, true, "embed_out")},
          {"falcon", query_key_value("transformer.h", "self_attention", "transformer.word_embeddings", 64,
                                     false, "lm_head")},
          {"bloom", query_key_value("h", "self_attention", "word_embeddings", 1024, true, "")},
          {"t5", t5(false)},
          {"t5 v1.1", t5(true)},
          {"bart", bart()},
          {"bert mlm", bert_mlm()},
          {"bert classifier", bert_classifier()},
          {"roberta classifier", roberta_classifier()},
          {"vit", vit()},
          {"vision-encoder-decoder", vision_encoder_decoder()},
          {"mixer", mixer()},
          {"performer", performer()},
          {"mixtral", mixtral(false)},
          {"mixtral, stacked experts", mixtral(true)},
          {"mlp", mlp()},
          {"actor and critic", actor_critic()},
          {"cnn", cnn()}};
}

// With more shards than experts, each expert is cut as a fully-connected layer, so that no shard is idle.
TEST(RulesFamilies, ExpertsAreCutIfThereAreFewerThanShards) {
  const Model m = mixtral(true);
  for (const i64 n : {8, 9}) {
    const Sharding s = shard_parameters(m.params, n);
    for (std::size_t i = 0; i < m.params.size(); ++i) {
      const std::string& name = m.params[i].name;
      if (name.find(".experts.") == std::string::npos) continue;
      EXPECT_EQ(s.rules[i].dim, n == 8 ? 0 : name.ends_with("down_proj") ? 2 : 1) << name << " on " << n;
    }
  }
}

TEST(RulesFamilies, EveryTensorIsCutAtTheExpectedDim) {
  for (const Family& f : families())
    for (const i64 n : {1, 2, 3, 4}) {
      const Sharding s = shard_parameters(f.model.params, n);
      for (std::size_t i = 0; i < f.model.params.size(); ++i)
        EXPECT_EQ(s.rules[i].dim, f.model.dims[i])
            << f.name << " on " << n << ": " << f.model.params[i].name << ", " << s.rules[i].rule;
      EXPECT_TRUE(s.warnings.empty());
    }
}

TEST(RulesFamilies, KindsAreFoundWithoutHints) {
  for (const Family& f : families()) {
    const std::vector<ParamKind> kinds = shard_parameters(f.model.params, 1).kinds;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      EXPECT_STREQ(name_of(kinds[i]), name_of(f.model.kinds[i])) << f.name << ": " << f.model.params[i].name;
  }
}

TEST(RulesFamilies, GivenKindsDoNotChangeTheResult) {
  for (const Family& f : families()) {
    std::vector<ParamInfo> hinted = f.model.params;
    for (std::size_t i = 0; i < hinted.size(); ++i) hinted[i].kind = f.model.kinds[i];
    const Sharding s = shard_parameters(hinted, 2);
    for (std::size_t i = 0; i < hinted.size(); ++i)
      EXPECT_EQ(s.rules[i].dim, f.model.dims[i])
          << f.name << ": " << hinted[i].name << ", " << s.rules[i].rule;
  }
}

// Replaces every word of a name by a random one; numbers, parts, `weight` and `bias` are kept.
std::string opaque(const std::string& name) {
  std::string out, word;
  const auto flush = [&] {
    const bool keep = word == "weight" || word == "bias" ||
                      (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos);
    if (keep || word.empty()) {
      out += word;
    } else {
      std::size_t hash = 7;
      for (const char c : word) hash = (hash * 131 + static_cast<unsigned char>(c)) % 1000003;
      out += 'z';
      for (; hash > 0; hash /= 8) out += "bcdfhjlm"[hash % 8];
    }
    word.clear();
  };
  const std::size_t part = std::min(name.find('['), name.size());
  for (const char c : name.substr(0, part)) {
    if (c == '.') {
      flush();
      out += '.';
    } else {
      word += c;
    }
  }
  flush();
  return out + name.substr(part);
}

TEST(RulesFamilies, ShapesAndOrderDecideWithoutNames) {
  for (const Family& f : families()) {
    std::vector<ParamInfo> renamed = f.model.params;
    for (ParamInfo& p : renamed) p.name = opaque(p.name);
    const Sharding s = shard_parameters(renamed, 2);
    for (std::size_t i = 0; i < renamed.size(); ++i) {
      const std::string& name = f.model.params[i].name;
      // A table (buckets, heads) looks like (positions, head_dim), and OPT's projections have the shape of a
      // table.
      if (name.find("relative_attention_bias") != std::string::npos ||
          name.find("project_") != std::string::npos)
        continue;
      EXPECT_EQ(s.rules[i].dim, f.model.dims[i])
          << f.name << ": " << name << " as " << renamed[i].name << ", " << s.rules[i].rule;
    }
  }
}

TEST(RulesFamilies, LayersShareTheRowsOfTheTable) {
  for (const Family& f : families()) {
    const Sharding few = shard_parameters(f.model.params, 2);
    i64 tensors = 0;
    for (const RuleRow& r : few.rows) tensors += r.tensors;
    EXPECT_EQ(tensors, static_cast<i64>(f.model.params.size())) << f.name;
    for (const ShardingRule& r : few.rules)
      EXPECT_TRUE(std::any_of(few.rows.begin(), few.rows.end(),
                              [&](const RuleRow& x) { return x.pattern == r.pattern; }))
          << f.name << ": " << r.pattern;
  }
  EXPECT_EQ(shard_parameters(llama(2).params, 2).rows.size(),
            shard_parameters(llama(5).params, 2).rows.size());
}

}  // namespace
}  // namespace redco::testing
