// OLMoE (Muennighoff et al. 2024): norms of all queries and all keys of a token, and many small experts.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_olmoe(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 4096, .eps = 1e-5, .padding_row = 1});
  s.qkv_bias = s.out_bias = c.boolean_or("attention_bias", false);
  s.head_norms = {HeadNormSettings::Over::width, s.norm};
  s.clip_qkv = c.number_or("clip_qkv", 0);
  if (s.clip_qkv < 0) c.fail("clip_qkv", "expected a number above 0, or null");
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length)};
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_experts", "num_local_experts"}, 64);
  read_router(c, m, "num_experts", 8, 0.01);
  m.inner = s.inner;
  m.normalized = c.boolean_or("norm_topk_prob", false);
  for (DecoderLayer& l : s.layers) l.mixture = true;
  s.mixture = m;
  return s;
}

}  // namespace redco
