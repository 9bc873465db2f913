// Parameter lists of decoder-only transformers, with the dim where each tensor must be cut.
#pragma once

#include "rules_models.h"

namespace redco::testing {

inline Model gptj(int layers) {
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

inline Model llama(int layers) {
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

inline void gpt2_blocks(Model& m, const std::string& prefix, bool cross) {
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

inline Model gpt2() {
  Model m;
  gpt2_blocks(m, "transformer.", false);
  return m;
}

inline Model gpt2_unfused_names() {  // unfused names: whole tensors, as in the file
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

inline Model opt() {  // opt-350m, which has projections
  Model m;
  const std::string d = "model.decoder.";
  m.table(d + "embed_tokens", 50272, 512);
  m.table(d + "embed_positions", 2050, 1024);
  m.linear(d + "project_out", 512, 1024, kColumn);  // two matrices without a role: they alternate
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

inline Model qwen2() {  // q, k, v have biases; grouped heads; tied head
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
inline Model query_key_value(const std::string& blocks, const std::string& attention,
                             const std::string& embedding, i64 kv, bool bias, const std::string& head) {
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

inline Model performer() {
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

inline Model mixtral(bool stacked) {
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

}  // namespace redco::testing
