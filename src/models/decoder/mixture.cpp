// Legend: B batch, T tokens, C width, E experts, G groups of experts, I inner width.
#include "models/decoder/mixture.h"

#include <limits>

#include "base/log_once.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/experts.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"
#include "ops/softmax.h"

namespace redco {

namespace {

// The experts of gpt-oss: see MixtureSettings::limit.
void declare_stacked_experts(SpecBuilder& b, const std::string& h, i64 width, double std,
                             const MixtureSettings& s) {
  const i64 E = s.count, I = s.inner, C = width;
  ParamSpec& router = b.linear(h + s.router, E, C, true, std);
  router.role = Role::router;
  router.precise = true;
  const std::string both = h + s.experts + ".gate_up_proj", down = h + s.experts + ".down_proj";
  for (const i64 part : {0, 1}) {
    const std::string name = part == 0 ? "[gate]" : "[up]";
    ParamSpec& w = b.add(both + ".weight" + name, {E, I, C}, ParamKind::linear, {Init::Kind::normal, std});
    w.stored = {.name = both, .shape = {C, 2 * I}, .transposed = true, .row = part, .stacked = E};
    w.stored.whole_stack = true;
    w.stored.block = 1;
    w.stored.step = 2;
    w.role = Role::first;
    const StoredAs of_weight = w.stored;
    ParamSpec& bias = b.add(both + ".bias" + name, {E, I}, ParamKind::bias, {Init::Kind::zeros, 0});
    bias.stored = of_weight;
    bias.stored.name = both + "_bias";
    bias.stored.shape = {2 * I};
    bias.stored.transposed = false;
  }
  ParamSpec& w = b.add(down + ".weight", {E, C, I}, ParamKind::linear, {Init::Kind::normal, std});
  w.stored = {.name = down, .shape = {I, C}, .transposed = true, .stacked = E};
  w.stored.whole_stack = true;
  w.role = Role::second;
  // A linear layer of the router's weights, cut with the experts.
  ParamSpec& bias = b.add(down + ".bias", {C, E}, ParamKind::bias, {Init::Kind::zeros, 0});
  bias.stored = {.name = down + "_bias", .shape = {E, C}, .transposed = true};
  bias.cut = 1;
}

// The parameter of the experts' layer `part` (MixtureSettings::gate, up or down).
std::string expert_weight(const std::string& layer, const MixtureSettings& s, const std::string& part) {
  if (s.stack_in.empty()) return layer + "." + s.experts + "." + part + ".weight";
  return layer + "." + (part == s.down ? s.stack_out : s.stack_in + ".weight[" + part + "]") +
         (part == s.down ? ".weight" : "");
}

// Rows [row, row + out) of each matrix in a stored tensor [E, rows, in], or columns of [E, in, rows].
void declare_stacked(SpecBuilder& b, const std::string& name, const std::string& stored, const Shape& shape,
                     i64 row, i64 rows, double std, const std::string& joined, Role role, bool transposed) {
  ParamSpec& w = b.add(name, shape, ParamKind::linear, {Init::Kind::normal, std});
  w.stored.name = transposed ? stored : stored + ".weight";
  w.stored.shape = transposed ? Shape{shape[2], rows} : Shape{rows, shape[2]};
  w.stored.transposed = transposed;
  w.stored.row = row;
  w.stored.stacked = shape[0];
  w.stored.whole_stack = true;
  w.stored.joined = joined;
  w.stored.joined_row = row;
  w.stored.joined_rows = rows;
  w.role = role;
}

void declare_experts(SpecBuilder& b, const std::string& layer, i64 C, double std, const MixtureSettings& s) {
  const std::string h = layer + ".", experts = h + s.experts, computed = h + s.computed_experts + ".";
  const i64 E = s.count, I = s.inner;
  // transformers computes with the stored tensors if they are transposed.
  const bool same = s.stack_transposed;
  const std::string in = same ? "" : computed + (s.gated ? "gate_up_proj" : "up_proj"),
                    out = same ? "" : computed + "down_proj";
  if (!s.stack_in.empty()) {
    const auto weight = [&](const std::string& part) { return expert_weight(layer, s, part); };
    declare_stacked(b, weight(s.gate), h + s.stack_in, {E, I, C}, 0, 2 * I, std, in, Role::first,
                    s.stack_transposed);
    declare_stacked(b, weight(s.up), h + s.stack_in, {E, I, C}, I, 2 * I, std, in, Role::first,
                    s.stack_transposed);
    declare_stacked(b, weight(s.down), h + s.stack_out, {E, C, I}, 0, C, std, out, Role::second,
                    s.stack_transposed);
    return;
  }
  const i64 gates = s.gated ? I : 0;
  if (s.gated) b.experts({experts, s.gate, E, I, C}, std, in, 0, gates + I).role = Role::first;
  b.experts({experts, s.up, E, I, C}, std, in, gates, gates + I).role = Role::first;
  b.experts({experts, s.down, E, C, I}, std, out, 0, C).role = Role::second;
}

}  // namespace

void declare_mixture(SpecBuilder& b, const std::string& layer, i64 width, double std,
                     const MixtureSettings& s) {
  const i64 E = s.count, C = width;
  if (s.limit > 0) return declare_stacked_experts(b, layer + ".", C, std, s);
  const std::string h = layer + ".";
  ParamSpec& router = b.linear(h + s.router, E, C, false, std);
  router.role = Role::router;
  router.precise = true;
  if (!s.computed_router.empty()) router.stored.joined = h + s.computed_router + ".weight";
  if (!s.correction.empty())
    b.buffer(h + s.correction, s.correction_row ? Shape{1, E} : Shape{E}, ParamKind::other);
  if (s.latent > 0) b.linear(h + s.latent_in, s.latent, C, s.latent_bias, std).cut = -1;
  declare_experts(b, layer, s.latent > 0 ? s.latent : C, std, s);
  if (s.latent > 0) b.linear(h + s.latent_out, C, s.latent, s.latent_bias, std).cut = -1;
  if (s.shared_inner == 0) return;
  const std::string shared = h + s.shared + ".";
  if (s.gated) b.linear(shared + "gate_proj", s.shared_inner, C, s.shared_bias, std).role = Role::first;
  b.linear(shared + "up_proj", s.shared_inner, C, s.shared_bias, std).role = Role::first;
  b.linear(shared + "down_proj", C, s.shared_inner, s.shared_bias, std).role = Role::second;
  if (s.shared_gate.empty()) return;
  ParamSpec& gate = b.linear(h + s.shared_gate, 1, C, false, std);
  gate.role = Role::router;
  gate.precise = true;
}

namespace {

// 1 where a token chooses an expert. scores: [B, T, E].
Tensor choose(const ParamTree& p, const std::string& layer, const MixtureSettings& s, const Tensor& scores) {
  Tensor ranked = stop_gradient(scores);
  if (!s.correction.empty()) ranked = ranked + p[layer + "." + s.correction];
  if (s.groups > 1) {
    const i64 B = scores.size(0), T = scores.size(1), G = s.groups, each = s.count / G;
    const Tensor grouped = reshape(ranked, {B, T, G, each});
    const Tensor best = sum(grouped * top_k_mask(grouped, s.group_best), {-1});  // [B, T, G]
    const Tensor kept = reshape(top_k_mask(best, s.chosen_groups), {B, T, G, 1});
    const Tensor never = full({}, -std::numeric_limits<double>::infinity(), scores.dtype());
    ranked = reshape(where(kept, grouped, never), {B, T, s.count});
  }
  return top_k_mask(ranked, s.per_token);
}

// The weight of each expert for a token, which is 0 unless it is chosen: [B, T, E].
struct Routing {
  Tensor weights, chosen;
};

// The first expert has the largest logit, the second one the largest of the others. Each is weighted by a
// softmax over the experts left with (largest - logit) <= 2 eps max(|logit|, largest).
Routing sparse_mixer(const Tensor& given, double eps) {
  const Tensor logits = to_sum_type(given);
  const Tensor never = full({}, -std::numeric_limits<double>::infinity(), logits.dtype());
  const Tensor values = stop_gradient(logits);
  const auto choose = [&](const Tensor& used) {
    const Tensor left = used.defined() ? where(used, never, values) : values;
    const Tensor chosen = top_k_mask(left, 1), largest = max_last(left);
    const Tensor far = compare(Binary::lt, scale(maximum(abs(values), largest), 2 * eps), largest - values);
    const Tensor near = where(far, never, used.defined() ? where(used, never, logits) : logits);
    return Routing{softmax(near) * chosen, chosen};
  };
  const Routing first = choose({}), second = choose(first.chosen);
  return {first.weights + second.weights, first.chosen + second.chosen};
}

// The experts with the largest scores, each weighted by its score.
Routing top_experts(const ParamTree& p, const std::string& layer, const MixtureSettings& s,
                    const Tensor& logits) {
  const Tensor scores = s.sigmoid ? sigmoid(logits) : softmax(logits);
  const Tensor chosen = choose(p, layer, s, scores);
  Tensor weights = scores * chosen;
  if (s.normalized) {
    Tensor total = sum(weights, {-1}, true);
    if (s.sum_eps > 0) total = add_scalar(total, s.sum_eps);
    if (s.least_sum > 0) total = clamp(total, s.least_sum, std::numeric_limits<double>::infinity());
    weights = weights / total;
  }
  return {s.scale != 1 ? scale(weights, s.scale) : weights, chosen};
}

Tensor shared_mlp(const ParamTree& p, const std::string& layer, const MixtureSettings& s, const Tensor& x,
                  const ApplyOptions& o) {
  const std::string shared = layer + "." + s.shared + ".";
  Tensor y;
  if (s.gated) {
    const Tensors inner = dense_layers(p, {shared + "gate_proj", shared + "up_proj"}, x, o);
    y = gated(s.activation, inner[0], inner[1]);
  } else {
    y = square(relu(dense(p, shared + "up_proj", x, o)));
  }
  // The gate scales the input of the last layer instead of its output, which may be Partial.
  if (!s.shared_gate.empty()) y = y * sigmoid(dense(p, layer + "." + s.shared_gate, x, o));
  return dense(p, shared + "down_proj", y, o);
}

}  // namespace

Tensor mixture_of_experts(const ParamTree& p, const std::string& layer, const MixtureSettings& s,
                          const Tensor& x, const ApplyOptions& o) {
  const Tensor logits = dense(p, layer + "." + s.router, x, o);  // [B, T, E]
  if (o.router_logits) o.router_logits->push_back(logits);
  if (s.sparse_mixer && o.train)
    log_once(LogLevel::info,
             "[model] SparseMixer: training chooses the experts as evaluation does; transformers draws them");
  const auto [weights, chosen] =
      s.sparse_mixer ? sparse_mixer(logits, *s.sparse_mixer) : top_experts(p, layer, s, logits);
  if (s.limit > 0) {
    const std::string at = layer + "." + s.experts + ".", both = at + "gate_up_proj.",
                      down = at + "down_proj.";
    const ExpertWeights w = {p[both + "weight[gate]"], p[both + "weight[up]"], p[down + "weight"],
                             p[both + "bias[gate]"], p[both + "bias[up]"]};
    const ExpertsOptions e = {.per_row = s.per_token, .limit = s.limit, .alpha = s.alpha};
    return add({experts(x, weights, chosen, w, e), linear(weights, p[down + "bias"])});
  }
  const auto weight = [&](const std::string& part) { return p[expert_weight(layer, s, part)]; };
  // relu(u)^2 is relu(u) u: without a gate, the other factor is its input.
  const ExpertWeights w = {weight(s.gated ? s.gate : s.up), weight(s.up), weight(s.down)};
  Tensor in = s.latent > 0 ? dense(p, layer + "." + s.latent_in, x, o) : x;
  if (s.scales_input) in = in * sum(weights, {-1}, true);
  Tensor y = experts(in, s.scales_input ? chosen : weights, chosen, w,
                     {.activation = s.activation, .per_row = s.per_token});
  if (s.latent > 0) y = dense(p, layer + "." + s.latent_out, y, o);
  return s.shared_inner > 0 ? add({y, shared_mlp(p, layer, s, x, o)}) : y;
}

}  // namespace redco
