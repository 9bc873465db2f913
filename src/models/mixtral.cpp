// Mixtral (Jiang et al. 2024): Mistral with a mixture of experts in place of each MLP. A router's softmax
// selects the experts of a token; their outputs are weighted by its probabilities, normalized to sum 1.
#include <fmt/format.h>

#include "models/families.h"
#include "models/llama_decoder.h"
#include "models/rope_config.h"
#include "nn/activations.h"
#include "ops/elementwise.h"
#include "ops/experts.h"
#include "ops/reduce.h"
#include "ops/softmax.h"

namespace redco {

namespace {

class Mixtral : public LlamaDecoder {
 public:
  explicit Mixtral(ModelConfig& c) {
    read_common(c, {.max_length = 131072, .kv_heads = 8, .eps = 1e-5});
    const std::string activation = c.activation_or("hidden_act", "silu");
    const std::optional<kernels::Unary> op = unary_activation(activation);
    if (!op) c.fail("hidden_act", fmt::format("'{}' is not supported inside experts", activation));
    experts_.activation = *op;
    arch_.rope = read_rope(c, arch_.heads.head_dim, max_length_, 1e6);
    const i64 window = c.integer_or("sliding_window", 0);
    for (Layer& l : arch_.layers) l.window = window;
    n_experts_ = c.integer_as_or({"num_local_experts", "num_experts"}, 8);
    experts_.per_row = c.integer_or("num_experts_per_tok", 2);
    if (experts_.per_row > n_experts_)
      c.fail("num_experts_per_tok", fmt::format("expected at most num_local_experts={}", n_experts_));
    // True adds a loss that balances the experts; router_aux_loss_coef is only the weight of this loss.
    c.expect("output_router_logits", {"false"});
    c.inert({"router_aux_loss_coef"});
    c.expect("router_jitter_noise", {"0", "0.0"});
    c.finish();
    declare();
    config_json_ = c.dump();
  }

 protected:
  void declare_mlp(SpecBuilder& b, const std::string& layer) override {
    const std::string moe = layer + ".block_sparse_moe", joined = layer + ".mlp.experts.gate_up_proj";
    const i64 E = n_experts_, I = arch_.inner, C = arch_.width;
    b.linear(moe + ".gate", E, C, false, arch_.std).role = Role::router;
    params_.specs.back().stored.joined = layer + ".mlp.gate.weight";
    params_.specs.back().precise = true;
    b.experts({moe + ".experts", "w1", E, I, C}, arch_.std, joined, 0, 2 * I).role = Role::first;
    b.experts({moe + ".experts", "w3", E, I, C}, arch_.std, joined, I, 2 * I).role = Role::first;
    b.experts({moe + ".experts", "w2", E, C, I}, arch_.std, layer + ".mlp.experts.down_proj", 0, C).role =
        Role::second;
  }

  Tensor mlp(const ParamTree& p, const std::string& layer, const Tensor& x,
             const ApplyOptions& o) const override {
    const std::string moe = layer + ".block_sparse_moe", experts_name = moe + ".experts.";
    const Tensor scores = softmax(dense(p, moe + ".gate", x, o));  // [B, T, E]
    const Tensor chosen = top_k_mask(scores, experts_.per_row);
    const Tensor picked = scores * chosen;
    const Tensor weights = picked / sum(picked, {-1}, true);
    return experts(
        x, weights, chosen,
        {p[experts_name + "w1.weight"], p[experts_name + "w3.weight"], p[experts_name + "w2.weight"]},
        experts_);
  }

 private:
  i64 n_experts_ = 0;
  ExpertsOptions experts_;
};

}  // namespace

std::unique_ptr<Model> make_mixtral(ModelConfig& c) { return std::make_unique<Mixtral>(c); }

}  // namespace redco
