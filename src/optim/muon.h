// Muon (Jordan et al. 2024): momentum with all singular values near 1, for the matrices of hidden layers.
// AdamW for all other parameters: embeddings, output heads, convolutions, norms and biases. The order of
// operations and the defaults are those of torch.optim.Muon, but products are computed in fp32.
#pragma once

#include <string>
#include <vector>

#include "optim/adamw.h"
#include "optim/rule_optimizer.h"

namespace redco {

// The factor of the learning rate of a matrix (out, in), in parentheses the name in torch.optim.Muon.
enum class MuonScale : std::uint8_t {
  adamw,     // 0.2 sqrt(max(out, in)): an update is as large as one of AdamW, and both share a learning rate
             // (Liu et al. 2025; match_rms_adamw)
  original,  // sqrt(max(1, out / in)) (original)
  spectral,  // sqrt(out / in) (spectral_unclamped)
};

struct MuonSettings {
  double momentum = 0.95;
  bool nesterov = true;
  i64 iterations = 5;  // of Newton-Schulz
  MuonScale scale = MuonScale::adamw;
  AdamWSettings others{};  // weight_decay and decay_norms_and_biases are those of the matrices too
};

class Muon : public Optimizer {
 public:
  Muon(const MuonSettings& settings, const ParamTree& params, StateSharding sharding = StateSharding::none,
       const std::vector<bool>& members = {});
  std::string name() const override { return "muon"; }
  void update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
              const std::vector<bool>& selected = {}) override;
  std::vector<State> state() const override;

 private:
  Muon(const MuonSettings& settings, const ParamTree& params, StateSharding sharding,
       const std::vector<bool>& members, const std::vector<bool>& hidden);
  RuleOptimizer matrices_;
  AdamW others_;
};

// The parameters that are matrices of hidden layers: linear weights, those of experts and adapters included,
// except output heads as the sharding rules find them.
std::vector<bool> hidden_matrices(const ParamTree& params);

// The last two dims of x as matrices whose singular values are near 1: x = U S V^T becomes about U V^T. After
// 5 iterations they are 0.68 to 1.21, if they were at least 1/500 of the matrix's norm. Model shards multiply
// their parts and add up the products of the shorter side; an x that is cut along that side is gathered
// first.
Tensor orthogonalized(const Tensor& x, i64 iterations);

}  // namespace redco
