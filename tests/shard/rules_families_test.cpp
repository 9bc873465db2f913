// The parameter lists of real models of every family, and where each tensor must be cut.
#include <gtest/gtest.h>

#include "rules_models.h"
#include "shard/rules.h"

namespace redco::testing {

using Names = std::vector<std::string>;

Model gptj(int layers) {
  Model m;
  m.table("transformer.wte", 50400, 4096);
  for (int i = 0; i < layers; ++i) {
    const std::string b = "transformer.h." + std::to_string(i) + ".";
    m.norm(b + "ln_1", 4096, true);
    for (const char* x : {"k_proj", "v_proj", "q_proj"}) m.linear(b + "attn." + x, 4096, 4096, kColumn);
    m.linear(b + "attn.out_proj", 4096, 4096, kRow);
    m.linear(b + "mlp.fc_in", 16384, 4096, kColumn, true);
    m.linear(b + "mlp.fc_out", 4096, 16384, kRow, true);
  }
  m.norm("transformer.ln_f", 4096, true);
  m.linear("lm_head", 50400, 4096, kColumn, true);
  return m;
}

Model llama(int layers) {
  Model m;
  m.table("model.embed_tokens", 32000, 4096);
  for (int i = 0; i < layers; ++i) {
    const std::string b = "model.layers." + std::to_string(i) + ".";
    for (const char* x : {"q_proj", "k_proj", "v_proj"}) m.linear(b + "self_attn." + x, 4096, 4096, kColumn);
    m.linear(b + "self_attn.o_proj", 4096, 4096, kRow);
    for (const char* x : {"gate_proj", "up_proj"}) m.linear(b + "mlp." + x, 11008, 4096, kColumn);
    m.linear(b + "mlp.down_proj", 4096, 11008, kRow);
    m.norm(b + "input_layernorm", 4096);
    m.norm(b + "post_attention_layernorm", 4096);
  }
  m.norm("model.norm", 4096);
  m.linear("lm_head", 32000, 4096, kColumn);
  return m;
}

namespace {

void gpt2_blocks(Model& m, const std::string& prefix, bool cross) {
  m.table(prefix + "wte", 50257, 768);
  m.table(prefix + "wpe", 1024, 768);
  for (int i = 0; i < 2; ++i) {
    const std::string b = prefix + "h." + std::to_string(i) + ".";
    m.norm(b + "ln_1", 768, true);
    m.fused(b + "attn.c_attn", {"q", "k", "v"}, 768, 768, kColumn, true);
    m.linear(b + "attn.c_proj", 768, 768, kRow, true);
    m.norm(b + "ln_2", 768, true);
    if (cross) {
      m.fused(b + "crossattention.c_attn", {"k", "v"}, 768, 768, kColumn, true);
      m.linear(b + "crossattention.q_attn", 768, 768, kColumn, true);
      m.linear(b + "crossattention.c_proj", 768, 768, kRow, true);
      m.norm(b + "ln_cross_attn", 768, true);
    }
    m.linear(b + "mlp.c_fc", 3072, 768, kColumn, true);
    m.linear(b + "mlp.c_proj", 768, 3072, kRow, true);
  }
  m.norm(prefix + "ln_f", 768, true);
}

Model gpt2() {
  Model m;
  gpt2_blocks(m, "transformer.", false);
  return m;
}

Model gpt2_unfused_names() {  // the tensors whole, as in the file
  Model m;
  m.table("transformer.wte", 50257, 768);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "transformer.h." + std::to_string(i) + ".";
    m.linear(b + "attn.c_attn", 2304, 768, kColumn, true);
    m.linear(b + "attn.c_proj", 768, 768, kRow, true);
    m.linear(b + "mlp.c_fc", 3072, 768, kColumn, true);
    m.linear(b + "mlp.c_proj", 768, 3072, kRow, true);
    m.norm(b + "ln_1", 768, true);
  }
  return m;
}

Model opt() {  // opt-350m, the one with projections
  Model m;
  const std::string d = "model.decoder.";
  m.table(d + "embed_tokens", 50272, 512);
  m.table(d + "embed_positions", 2050, 1024);
  m.linear(d + "project_out", 512, 1024, kColumn);  // two of the rest: they alternate
  m.linear(d + "project_in", 1024, 512, kRow);
  for (int i = 0; i < 2; ++i) {
    const std::string b = d + "layers." + std::to_string(i) + ".";
    for (const char* x : {"k_proj", "v_proj", "q_proj"})
      m.linear(b + "self_attn." + x, 1024, 1024, kColumn, true);
    m.linear(b + "self_attn.out_proj", 1024, 1024, kRow, true);
    m.norm(b + "self_attn_layer_norm", 1024, true);
    m.linear(b + "fc1", 4096, 1024, kColumn, true);
    m.linear(b + "fc2", 1024, 4096, kRow, true);
    m.norm(b + "final_layer_norm", 1024, true);
  }
  return m;
}

Model qwen2() {  // q, k, v have biases; grouped heads; tied head
  Model m;
  m.table("model.embed_tokens", 151936, 896);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "model.layers." + std::to_string(i) + ".";
    m.linear(b + "self_attn.q_proj", 896, 896, kColumn, true);
    m.linear(b + "self_attn.k_proj", 128, 896, kColumn, true);
    m.linear(b + "self_attn.v_proj", 128, 896, kColumn, true);
    m.linear(b + "self_attn.o_proj", 896, 896, kRow);
    m.fused(b + "mlp.gate_up_proj", {"gate", "up"}, 4864, 896, kColumn, false);
    m.linear(b + "mlp.down_proj", 896, 4864, kRow);
    m.norm(b + "input_layernorm", 896);
    m.norm(b + "post_attention_layernorm", 896);
  }
  m.norm("model.norm", 896);
  return m;
}

// GPT-NeoX, Falcon, BLOOM: fused query_key_value, an output called `dense`.
Model query_key_value(const std::string& blocks, const std::string& attention, const std::string& embedding,
                      i64 kv, bool bias, const std::string& head) {
  Model m;
  m.table(embedding, 65024, 1024);
  for (int i = 0; i < 2; ++i) {
    const std::string b = blocks + "." + std::to_string(i) + ".";
    m.norm(b + "input_layernorm", 1024, true);
    for (const char* part : {"q", "k", "v"})
      m.add(b + attention + ".query_key_value.weight[" + part + "]", {*part == 'q' ? 1024 : kv, 1024},
            ParamKind::linear, kColumn);
    if (bias)
      for (const char* part : {"q", "k", "v"})
        m.add(b + attention + ".query_key_value.bias[" + part + "]", {*part == 'q' ? 1024 : kv},
              ParamKind::bias, 0);
    m.linear(b + attention + ".dense", 1024, 1024, kRow, bias);
    m.linear(b + "mlp.dense_h_to_4h", 4096, 1024, kColumn, bias);
    m.linear(b + "mlp.dense_4h_to_h", 1024, 4096, kRow, bias);
  }
  m.norm("ln_f", 1024, true);
  if (!head.empty()) m.linear(head, 65024, 1024, kColumn);
  return m;
}

Model t5(bool gated) {
  Model m;
  m.table("shared", 32128, 512);
  for (const std::string side : {"encoder", "decoder"})
    for (int i = 0; i < 2; ++i) {
      const std::string b = side + ".block." + std::to_string(i) + ".layer.";
      const auto attention = [&](const std::string& name, bool table) {
        for (const char* x : {"q", "k", "v"}) m.linear(b + name + "." + x, 384, 512, kColumn);
        m.linear(b + name + ".o", 512, 384, kRow);
        if (table) m.table(b + name + ".relative_attention_bias", 32, 6, 1);
      };
      attention("0.SelfAttention", i == 0);
      m.norm(b + "0.layer_norm", 512);
      if (side == "decoder") {
        attention("1.EncDecAttention", false);
        m.norm(b + "1.layer_norm", 512);
      }
      const std::string ff = b + (side == "decoder" ? "2." : "1.");
      if (gated) {
        m.linear(ff + "DenseReluDense.wi_0", 1024, 512, kColumn);
        m.linear(ff + "DenseReluDense.wi_1", 1024, 512, kColumn);
        m.linear(ff + "DenseReluDense.wo", 512, 1024, kRow);
      } else {
        m.linear(ff + "DenseReluDense.wi", 2048, 512, kColumn);
        m.linear(ff + "DenseReluDense.wo", 512, 2048, kRow);
      }
      m.norm(ff + "layer_norm", 512);
    }
  m.norm("decoder.final_layer_norm", 512);
  if (gated) m.linear("lm_head", 32128, 512, kColumn);
  return m;
}

Model bart() {
  Model m;
  m.table("model.shared", 50265, 1024);
  for (const std::string side : {"encoder", "decoder"}) {
    const std::string s = "model." + side + ".";
    m.table(s + "embed_positions", 1026, 1024);
    for (int i = 0; i < 2; ++i) {
      const std::string b = s + "layers." + std::to_string(i) + ".";
      for (const std::string a : {"self_attn", "encoder_attn"}) {
        if (a == "encoder_attn" && side == "encoder") continue;
        for (const char* x : {"k_proj", "v_proj", "q_proj"})
          m.linear(b + a + "." + x, 1024, 1024, kColumn, true);
        m.linear(b + a + ".out_proj", 1024, 1024, kRow, true);
        m.norm(b + a + "_layer_norm", 1024, true);
      }
      m.linear(b + "fc1", 4096, 1024, kColumn, true);
      m.linear(b + "fc2", 1024, 4096, kRow, true);
      m.norm(b + "final_layer_norm", 1024, true);
    }
    m.norm(s + "layernorm_embedding", 1024, true);
  }
  m.add("final_logits_bias", {1, 50265}, ParamKind::bias, 1);
  return m;
}

void bert_encoder(Model& m, const std::string& prefix) {
  m.table(prefix + "embeddings.word_embeddings", 30522, 768);
  m.table(prefix + "embeddings.position_embeddings", 512, 768);
  m.table(prefix + "embeddings.token_type_embeddings", 2, 768);
  m.norm(prefix + "embeddings.LayerNorm", 768, true);
  for (int i = 0; i < 2; ++i) {
    const std::string b = prefix + "encoder.layer." + std::to_string(i) + ".";
    for (const char* x : {"query", "key", "value"})
      m.linear(b + "attention.self." + x, 768, 768, kColumn, true);
    m.linear(b + "attention.output.dense", 768, 768, kRow, true);
    m.norm(b + "attention.output.LayerNorm", 768, true);
    m.linear(b + "intermediate.dense", 3072, 768, kColumn, true);
    m.linear(b + "output.dense", 768, 3072, kRow, true);
    m.norm(b + "output.LayerNorm", 768, true);
  }
}

Model bert_mlm() {
  Model m;
  bert_encoder(m, "bert.");
  m.add("cls.predictions.bias", {30522}, ParamKind::bias, 0);  // tied head: it follows the vocabulary
  m.linear("cls.predictions.transform.dense", 768, 768, kColumn, true);
  m.norm("cls.predictions.transform.LayerNorm", 768, true);
  return m;
}

Model bert_classifier() {
  Model m;
  bert_encoder(m, "bert.");
  m.linear("bert.pooler.dense", 768, 768, kColumn, true);
  m.linear("classifier", 2, 768, kRow, true);
  return m;
}

Model roberta_classifier() {
  Model m;
  bert_encoder(m, "roberta.");
  m.linear("classifier.dense", 768, 768, kColumn, true);
  m.linear("classifier.out_proj", 3, 768, kRow, true);  // no attention, for all its name
  return m;
}

void vit_encoder(Model& m, const std::string& prefix) {
  m.add(prefix + "embeddings.cls_token", {1, 1, 768}, ParamKind::other, kWhole);
  m.add(prefix + "embeddings.position_embeddings", {1, 197, 768}, ParamKind::embedding, 1);
  m.conv(prefix + "embeddings.patch_embeddings.projection", 768, 3, 16, kColumn);
  for (int i = 0; i < 2; ++i) {
    const std::string b = prefix + "encoder.layer." + std::to_string(i) + ".";
    for (const char* x : {"query", "key", "value"})
      m.linear(b + "attention.attention." + x, 768, 768, kColumn, true);
    m.linear(b + "attention.output.dense", 768, 768, kRow, true);
    m.linear(b + "intermediate.dense", 3072, 768, kColumn, true);
    m.linear(b + "output.dense", 768, 3072, kRow, true);
    m.norm(b + "layernorm_before", 768, true);
    m.norm(b + "layernorm_after", 768, true);
  }
  m.norm(prefix + "layernorm", 768, true);
}

Model vit() {
  Model m;
  vit_encoder(m, "vit.");
  m.linear("classifier", 10, 768, kColumn, true);
  return m;
}

Model vision_encoder_decoder() {
  Model m;
  vit_encoder(m, "encoder.");
  m.linear("encoder.pooler.dense", 768, 768, kColumn, true);
  gpt2_blocks(m, "decoder.transformer.", true);
  return m;
}

Model mixer() {  // token mixing works across patches: neither of its widths is the model's
  Model m;
  m.conv("stem.proj", 512, 3, 16, kColumn);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "blocks." + std::to_string(i) + ".";
    m.norm(b + "norm1", 512, true);
    m.linear(b + "mlp_tokens.fc1", 256, 196, kColumn, true);
    m.linear(b + "mlp_tokens.fc2", 196, 256, kRow, true);
    m.norm(b + "norm2", 512, true);
    m.linear(b + "mlp_channels.fc1", 2048, 512, kColumn, true);
    m.linear(b + "mlp_channels.fc2", 512, 2048, kRow, true);
  }
  m.norm("norm", 512, true);
  m.linear("head", 1000, 512, kColumn, true);
  return m;
}

Model performer() {
  Model m;
  m.table("token_emb", 20000, 512);
  m.table("pos_emb.emb", 2048, 512);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "performer.net.layers.layers." + std::to_string(i) + ".";
    m.norm(b + "0.norm", 512, true);
    m.linear(b + "0.fn.to_q", 512, 512, kColumn);
    m.linear(b + "0.fn.to_k", 512, 512, kColumn);
    m.linear(b + "0.fn.to_v", 512, 512, kColumn);
    m.linear(b + "0.fn.to_out", 512, 512, kRow, true);
    m.norm(b + "1.norm", 512, true);
    m.linear(b + "1.fn.fn.w1", 2048, 512, kColumn, true);
    m.linear(b + "1.fn.fn.w2", 512, 2048, kRow, true);
  }
  m.norm("norm", 512, true);
  m.linear("to_out", 20000, 512, kColumn, true);
  return m;
}

Model mixtral(bool stacked) {
  Model m;
  m.table("model.embed_tokens", 32000, 4096);
  for (int i = 0; i < 2; ++i) {
    const std::string b = "model.layers." + std::to_string(i) + ".";
    m.linear(b + "self_attn.q_proj", 4096, 4096, kColumn);
    m.linear(b + "self_attn.k_proj", 1024, 4096, kColumn);
    m.linear(b + "self_attn.v_proj", 1024, 4096, kColumn);
    m.linear(b + "self_attn.o_proj", 4096, 4096, kRow);
    if (stacked) {
      m.linear(b + "mlp.gate", 8, 4096, kWhole);
      m.add(b + "mlp.experts.gate_up_proj[gate]", {8, 14336, 4096}, ParamKind::linear, 0);
      m.add(b + "mlp.experts.gate_up_proj[up]", {8, 14336, 4096}, ParamKind::linear, 0);
      m.add(b + "mlp.experts.down_proj", {8, 4096, 14336}, ParamKind::linear, 0);
    } else {
      m.linear(b + "block_sparse_moe.gate", 8, 4096, kWhole);
      for (int e = 0; e < 8; ++e) {
        const std::string x = b + "block_sparse_moe.experts." + std::to_string(e) + ".";
        m.linear(x + "w1", 14336, 4096, kColumn);
        m.linear(x + "w2", 4096, 14336, kRow);
        m.linear(x + "w3", 14336, 4096, kColumn);
      }
    }
    m.norm(b + "input_layernorm", 4096);
    m.norm(b + "post_attention_layernorm", 4096);
  }
  m.norm("model.norm", 4096);
  m.linear("lm_head", 32000, 4096, kColumn);
  return m;
}

Model mlp() {
  Model m;
  const std::vector<i64> widths = {784, 256, 256, 256, 10};
  for (int i = 0; i < 4; ++i)
    m.linear("layers." + std::to_string(2 * i), widths[i + 1], widths[i], i % 2 ? kRow : kColumn, true);
  return m;
}

Model actor_critic() {  // two networks: each starts with a column
  Model m;
  for (const std::string net : {"actor", "critic"}) {
    m.linear(net + ".0", 64, 6, kColumn, true);
    m.linear(net + ".2", 64, 64, kRow, true);
    m.linear(net + ".4", net == "actor" ? 3 : 2, 64, kColumn, true);
  }
  return m;
}

Model cnn() {
  Model m;
  m.conv("conv1", 8, 1, 3, kColumn);
  m.conv("conv2", 12, 8, 3, kRow);
  m.linear("fc1", 24, 108, kColumn, true);
  m.linear("fc2", 5, 24, kRow, true);
  return m;
}

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

// More shards than experts: each expert is cut as a fully-connected layer, so that no shard idles.
TEST(RulesFamilies, FewExpertsAreCutInside) {
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

TEST(RulesFamilies, EveryTensorIsCutWhereItMust) {
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
    const std::vector<ParamKind> kinds = detect_kinds(f.model.params);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      EXPECT_STREQ(name_of(kinds[i]), name_of(f.model.kinds[i])) << f.name << ": " << f.model.params[i].name;
  }
}

TEST(RulesFamilies, HintsChangeNothingThere) {
  for (const Family& f : families()) {
    std::vector<ParamInfo> hinted = f.model.params;
    for (std::size_t i = 0; i < hinted.size(); ++i) hinted[i].kind = f.model.kinds[i];
    const Sharding s = shard_parameters(hinted, 2);
    for (std::size_t i = 0; i < hinted.size(); ++i)
      EXPECT_EQ(s.rules[i].dim, f.model.dims[i])
          << f.name << ": " << hinted[i].name << ", " << s.rules[i].rule;
  }
}

// Every word of a name replaced by one that says nothing; numbers, parts, `weight` and `bias` stay.
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

TEST(RulesFamilies, ShapesAndOrderAreEnough) {
  for (const Family& f : families()) {
    std::vector<ParamInfo> renamed = f.model.params;
    for (ParamInfo& p : renamed) p.name = opaque(p.name);
    const Sharding s = shard_parameters(renamed, 2);
    for (std::size_t i = 0; i < renamed.size(); ++i) {
      const std::string& name = f.model.params[i].name;
      // (buckets, heads) could as well be (positions, head_dim), and OPT's projections are of a table's
      // shape.
      if (name.find("relative_attention_bias") != std::string::npos ||
          name.find("project_") != std::string::npos)
        continue;
      EXPECT_EQ(s.rules[i].dim, f.model.dims[i])
          << f.name << ": " << name << " as " << renamed[i].name << ", " << s.rules[i].rule;
    }
  }
}

TEST(RulesFamilies, LayersFallIntoTheSameRows) {
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
