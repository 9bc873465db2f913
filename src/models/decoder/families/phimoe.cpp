// Phi-3.5-MoE (Microsoft 2024): layer norms, biases, and a mixture whose router is SparseMixer (Liu et al.
// 2023): a token's two experts are chosen and weighted one after the other.
#include "base/log_once.h"
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_phimoe(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .eps = 1e-5});
  s.norm = {.rms = false, .bias = true, .eps = s.norm.eps};
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_bias = c.boolean_or("lm_head_bias", false);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e6, .magnitudes = true})};
  read_window_of_all(c, s, 0);
  MixtureSettings m = read_block_sparse_moe(c, s, "mlp.router", 16, 2);
  c.expect("num_experts_per_tok", {"2"});
  m.sparse_mixer = c.number_or("router_jitter_noise", 0.01);
  if (*m.sparse_mixer < 0) c.fail("router_jitter_noise", "expected 0 or a positive number");
  if (c.number_or("input_jitter_noise", 0) != 0)
    log_once(LogLevel::info, "[model] input_jitter_noise is ignored: training adds no noise to inputs");
  s.mixture = m;
  return s;
}

}  // namespace redco
