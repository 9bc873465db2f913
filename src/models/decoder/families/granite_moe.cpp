// Granite 3 mixtures (IBM 2024): Granite's multipliers and a mixture in each layer, with an MLP that all
// tokens share in granitemoeshared.
#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

void read_granite_mixture(ModelConfig& c, DecoderArchitecture& s, i64 shared_inner) {
  MixtureSettings m;
  m.inner = s.inner;
  s.inner = shared_inner;
  s.names.gate_up = "shared_mlp.input_linear";
  s.names.down = "shared_mlp.output_linear";
  m.count = c.integer_or("num_local_experts", 8, 0);
  if (m.count == 0) return c.inert({"num_experts_per_tok", "output_router_logits", "router_aux_loss_coef"});
  m.activation = read_expert_activation(c, s.activation);
  read_router(c, m, "num_local_experts", 2);
  m.normalized = true;  // a softmax over the chosen experts
  m.beside_mlp = shared_inner > 0;
  m.router = "block_sparse_moe.router.layer";
  m.computed_router = "block_sparse_moe.router";
  m.stack_in = "block_sparse_moe.input_linear";
  m.stack_out = "block_sparse_moe.output_linear";
  m.computed_experts = "block_sparse_moe.experts";
  for (DecoderLayer& l : s.layers) l.mixture = true;
  s.mixture = m;
}

DecoderArchitecture read_granite_moe(ModelConfig& c) {
  DecoderArchitecture s = read_granite_with(c, {.max_length = 2048});
  const bool shared = s.family == "granitemoeshared";
  read_granite_mixture(c, s, shared ? c.integer_or("shared_intermediate_size", 0, 0) : 0);
  if (!s.mixture) c.fail("num_local_experts", "expected at least 1");
  return s;
}

}  // namespace redco
