// Parameter lists of encoders, encoder-decoders, vision models and plain networks, with the dim where each
// tensor must be cut.
#pragma once

#include "decoder_models.h"

namespace redco::testing {

inline Model t5(bool gated) {
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

inline Model bart() {
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

inline void bert_encoder(Model& m, const std::string& prefix) {
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

inline Model bert_mlm() {
  Model m;
  bert_encoder(m, "bert.");
  // Tied head: the bias is cut with the vocabulary.
  m.add("cls.predictions.bias", {30522}, ParamKind::bias, 0);
  m.linear("cls.predictions.transform.dense", 768, 768, kColumn, true);
  m.norm("cls.predictions.transform.LayerNorm", 768, true);
  return m;
}

inline Model bert_classifier() {
  Model m;
  bert_encoder(m, "bert.");
  m.linear("bert.pooler.dense", 768, 768, kColumn, true);
  m.linear("classifier", 2, 768, kRow, true);
  return m;
}

inline Model roberta_classifier() {
  Model m;
  bert_encoder(m, "roberta.");
  m.linear("classifier.dense", 768, 768, kColumn, true);
  m.linear("classifier.out_proj", 3, 768, kRow, true);  // not an attention output, despite its name
  return m;
}

inline void vit_encoder(Model& m, const std::string& prefix) {
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

inline Model vit() {
  Model m;
  vit_encoder(m, "vit.");
  m.linear("classifier", 10, 768, kColumn, true);
  return m;
}

inline Model vision_encoder_decoder() {
  Model m;
  vit_encoder(m, "encoder.");
  m.linear("encoder.pooler.dense", 768, 768, kColumn, true);
  gpt2_blocks(m, "decoder.transformer.", true);
  return m;
}

inline Model mixer() {  // token mixing maps across patches: neither of its widths is the model's width
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

inline Model mlp() {
  Model m;
  const std::vector<i64> widths = {784, 256, 256, 256, 10};
  for (int i = 0; i < 4; ++i)
    m.linear("layers." + std::to_string(2 * i), widths[i + 1], widths[i], i % 2 ? kRow : kColumn, true);
  return m;
}

inline Model actor_critic() {  // two networks, each with a column-split first layer
  Model m;
  for (const std::string net : {"actor", "critic"}) {
    m.linear(net + ".0", 64, 6, kColumn, true);
    m.linear(net + ".2", 64, 64, kRow, true);
    m.linear(net + ".4", net == "actor" ? 3 : 2, 64, kColumn, true);
  }
  return m;
}

inline Model cnn() {
  Model m;
  m.conv("conv1", 8, 1, 3, kColumn);
  m.conv("conv2", 12, 8, 3, kRow);
  m.linear("fc1", 24, 108, kColumn, true);
  m.linear("fc2", 5, 24, kRow, true);
  return m;
}

}  // namespace redco::testing
