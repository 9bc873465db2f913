// Mixtral (Jiang et al. 2024): Mistral with a mixture of experts in place of each MLP. A router's softmax
// selects the experts of a token; their outputs are weighted by its probabilities, normalized to sum 1.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_mixtral(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 131072, .kv_heads = 8, .eps = 1e-5});
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length, {.theta = 1e6})};
  const i64 window = c.integer_or("sliding_window", 0);
  for (DecoderLayer& l : s.layers) l.window = window;
  s.mixture = read_block_sparse_moe(c, s, "mlp.gate", 8, 2);
  s.mixture->normalized = true;
  c.expect("router_jitter_noise", {"0", "0.0"});
  return s;
}

}  // namespace redco
