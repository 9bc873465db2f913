// Mixtral (Jiang et al. 2024): Mistral with a mixture of experts in place of each MLP. A router's softmax
// selects the experts of a token; their outputs are weighted by its probabilities, normalized to sum 1.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_mixtral(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .eps = 1e-5});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e6})};
  const i64 window = c.integer_or("sliding_window", 0);
  for (DecoderLayer& l : s.layers) {
    l.window = window;
    l.mixture = true;
  }
  MixtureSettings m;
  m.activation = read_expert_activation(c, s.activation);
  m.count = c.integer_as_or({"num_local_experts", "num_experts"}, 8);
  read_router(c, m, "num_local_experts", 2);
  c.expect("router_jitter_noise", {"0", "0.0"});
  m.inner = s.inner;
  m.normalized = true;
  name_block_sparse_moe(m, "mlp.gate");
  s.mixture = m;
  return s;
}

}  // namespace redco
