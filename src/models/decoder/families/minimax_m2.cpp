// MiniMax-M2 (MiniMax 2025): Mixtral with sigmoid scores, a correction of the choice, norms of all queries
// and all keys of a token, and rotary positions on a part of each head.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_minimax_m2(ModelConfig& c) {
  DecoderArchitecture s = read_usual(c, {.max_length = 196608, .kv_heads = 8, .head_dim = 128});
  s.head_norms = {HeadNormSettings::Over::width, s.norm};
  // Published configs have the number of rotated dims in place of their share.
  const i64 rotated = c.integer_or("rotary_dim", s.heads.head_dim);
  s.ropes = {read_rope(c, s.heads.head_dim, s.max_length,
                       {.theta = 5e6,
                        .share_key = "partial_rotary_factor",
                        .share = static_cast<double>(rotated) / static_cast<double>(s.heads.head_dim)})};
  s.mixture = read_block_sparse_moe(c, s, "mlp.gate", 256, 8);
  s.mixture->sigmoid = s.mixture->normalized = true;
  s.mixture->correction = "block_sparse_moe.e_score_correction_bias";
  c.expect("router_jitter_noise", {"0", "0.0"});
  return s;
}

}  // namespace redco
