#include "models/mamba_mixer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/recurrent_pass.h"
#include "ops/elementwise.h"
#include "ops/recurrence.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

constexpr double kNoStepLimit = std::numeric_limits<double>::infinity();

// An RMS norm of each of the groups of heads, y [B, T, I].
Tensor norm_of_groups(const Tensor& y, const Tensor& w, const MambaSettings& s) {
  const i64 B = y.size(0), T = y.size(1), I = y.size(2), G = s.groups, f = head_repeats(s.heads, G);
  if (G == 1) return rms_norm(y, w, s.eps);
  if (f == 1) return reshape(rms_norm(reshape(y, {B, T, G, I / G}), {}, s.eps), {B, T, I}) * w;
  // The heads of a group are on several ranks, which exchange a number for each of their parts.
  const Tensor parts = reshape(to_sum_type(y), {B, T, G * f, I / (G * f)});
  const Tensor squares = reshape(mean(square(parts), {-1}), {B, T, G, f});
  const Tensor factor = rsqrt(add_scalar(mean(squares, {-1}, true), s.eps));  // [B, T, G, 1]
  const Tensor of_parts = reshape(broadcast_to(factor, {B, T, G, f}), {B, T, G * f, 1});
  return reshape(parts * of_parts, {B, T, I}) * w;
}

}  // namespace

void read_step_limit(ModelConfig& c, MambaSettings& s) {
  const auto limit = nlohmann::json::parse(c.json("time_step_limit"));
  if (limit.is_null()) return;
  const auto number = [&](const nlohmann::json& v) {
    if (v.is_number()) return v.get<double>();
    if (v.is_object() && v.value("__float__", "") == "Infinity") return kNoStepLimit;
    c.fail("time_step_limit", "expected [low, high]");
  };
  if (!limit.is_array() || limit.size() != 2) c.fail("time_step_limit", "expected [low, high]");
  s.least_step = number(limit[0]);
  s.most_step = number(limit[1]);
  if (s.least_step > s.most_step) c.fail("time_step_limit", "expected low <= high");
}

// Files store z, x, B, C and dt in one projection, and x, B and C in one convolution.
void declare_mamba(SpecBuilder& b, const std::string& prefix, i64 width, const MambaSettings& s) {
  const std::string m = prefix + ".";
  const auto [H, P, G, N] = std::tuple(s.heads, s.head_dim, s.groups, s.state);
  const i64 I = H * P, S = G * N;
  const HeadsOf of_head{0, H, G, P, false}, of_group{0, H, G, N, true}, one_each{0, H, G, 1, false};
  const auto init = [&](i64 inputs, double factor = 1) {
    return s.std > 0 ? Init{Init::Kind::normal, factor * s.std}
                     : Init{Init::Kind::uniform, factor / std::sqrt(static_cast<double>(inputs))};
  };
  const auto per_head = [&](const std::string& name, const Init& of) {
    ParamSpec& spec = b.add(m + name, {H}, ParamKind::other, of);
    spec.heads = one_each;
    spec.cut = 0;
    spec.precise = true;
  };
  per_head("dt_bias", s.steps);
  per_head("A_log", {Init::Kind::log_count});
  per_head("D", {Init::Kind::ones});
  const std::vector<SpecBuilder::Part> convolved = {
      {"x", I, of_head, 0}, {"B", S, of_group, 0}, {"C", S, of_group, 0}};
  std::vector<SpecBuilder::Part> projected = convolved;
  projected.insert(projected.begin(), SpecBuilder::Part{"z", I, of_head, 0});
  projected.push_back({"dt", H, one_each, 0, true});
  b.parts(m + "conv1d.weight", convolved, {1, s.taps}, ParamKind::conv, init(s.taps));
  if (s.conv_bias) b.parts(m + "conv1d.bias", convolved, {}, ParamKind::bias, {Init::Kind::zeros});
  b.parts(m + "in_proj.weight", projected, {width}, ParamKind::linear, init(width));
  if (s.bias) b.parts(m + "in_proj.bias", projected, {}, ParamKind::bias, {Init::Kind::zeros});
  if (s.normed) {
    ParamSpec& norm = b.add(m + "norm.weight", {I}, ParamKind::norm, {Init::Kind::ones, 0});
    norm.heads = of_head;
    norm.cut = 0;
  }
  ParamSpec& out =
      b.linear(m + "out_proj", width, I, s.out_bias.value_or(s.bias), 0, false, {1, H, G, P, false});
  out.cut = 1;
  out.init = init(I, s.out_scale);
}

Tensor mamba_mixer(const ParamTree& p, const std::string& prefix, const MambaSettings& s,
                   const ApplyOptions& o, size_t layer, const Tensor& a, const Tensor& key_mask) {
  const std::string m = prefix + ".", proj = m + "in_proj";
  const i64 B = a.size(0), T = a.size(1), H = s.heads, P = s.head_dim;
  const auto scaled = [](const Tensor& t, double by) { return by == 1 ? t : scale(t, by); };
  Tensors of = dense_layers(p, {{proj, "z"}, {proj, "x"}, {proj, "B"}, {proj, "C"}, {proj, "dt"}},
                            scaled(a, s.input_scale), o);
  for (size_t i = 0; i < of.size(); ++i) of[i] = scaled(of[i], s.part_scales[i]);
  Tensor dt = softplus(of[4] + p[m + "dt_bias"]);  // [B, T, H]
  if (s.least_step > 0 || s.most_step < kNoStepLimit) dt = clamp(dt, s.least_step, s.most_step);

  // Padding adds nothing to the state and lets nothing decay: a step of 0.
  RecurrentPass pass(o, layer, key_mask, a, s.taps, dt.dtype());
  if (pass.mask().defined()) dt = dt * pass.mask();
  const auto convolved = [&](const std::string& part, const Tensor& x) {
    const Tensor w = p[m + "conv1d.weight[" + part + "]"];
    return activate(s.activation, pass.convolved(x, reshape(w, {x.size(2), s.taps}),
                                                 p.find(m + "conv1d.bias[" + part + "]")));
  };
  const Tensor x = reshape(convolved("x", of[1]), {B, T, H, P});
  const Tensor keys = reshape(convolved("B", of[2]), {B, T, s.groups, s.state});
  const Tensor queries = reshape(convolved("C", of[3]), {B, T, s.groups, s.state});

  const Recurrence r = linear_recurrence({.log_decay = dt * -exp(p[m + "A_log"]),
                                          .k = keys,
                                          .q = queries,
                                          .v = x * reshape(dt, {B, T, H, 1}),
                                          .initial = pass.initial(),
                                          .segments = pass.segments()});
  pass.finish(r.state);
  const Tensor y = reshape(r.y + x * reshape(p[m + "D"], {H, 1}), {B, T, H * P});
  const Tensor gate = silu(of[0]);
  const auto normed = [&](const Tensor& t) {
    return s.normed ? norm_of_groups(t, p[m + "norm.weight"], s) : t;
  };
  const Tensor gated = s.gate_after_norm ? normed(y) * gate : normed(y * gate);
  return scaled(dense(p, m + "out_proj", gated, o), s.output_scale);
}

}  // namespace redco
