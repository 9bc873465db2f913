#include "models/selective_mixer.h"

#include <cmath>

#include "models/recurrent_pass.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/recurrence.h"
#include "ops/shape.h"

namespace redco {

namespace {

using Norms = SelectiveSettings::Norms;

// The rates at which the numbers of a channel decay: 1, 2, ..., N (S4D).
Init log_rates(i64 channels, i64 state) {
  auto rates = std::make_shared<std::vector<float>>();
  rates->reserve(channels * state);
  for (i64 c = 0; c < channels; ++c)
    for (i64 n = 1; n <= state; ++n) rates->push_back(std::log(static_cast<float>(n)));
  return {.kind = Init::Kind::values, .values = std::move(rates)};
}

}  // namespace

void declare_selective(SpecBuilder& b, const std::string& prefix, i64 width, const SelectiveSettings& s) {
  const std::string m = prefix + ".";
  const auto [I, N, R] = std::tuple(s.inner, s.state, s.rank);
  const auto uniform = [](i64 inputs, double factor = 1) {
    return Init{Init::Kind::uniform, factor / std::sqrt(static_cast<double>(inputs))};
  };
  const auto per_channel = [&](const std::string& name, const Shape& shape, ParamKind kind,
                               const Init& init) {
    ParamSpec& spec = b.add(m + name, shape, kind, init);
    spec.cut = 0;
    spec.precise = kind == ParamKind::other;
  };
  per_channel("A_log", {I, N}, ParamKind::other, log_rates(I, N));
  per_channel("D", {I}, ParamKind::other, {Init::Kind::ones});
  per_channel("conv1d.weight", {I, 1, s.taps}, ParamKind::conv, uniform(s.taps));
  if (s.conv_bias) per_channel("conv1d.bias", {I}, ParamKind::bias, {Init::Kind::zeros});
  b.fused(m + "in_proj", {{.name = "x", .rows = I, .cut = 0}, {.name = "z", .rows = I, .cut = 0}}, width,
          s.bias, s.std, false);
  b.fused(m + "x_proj",
          {{.name = "dt", .rows = R, .cut = 1},
           {.name = "B", .rows = N, .cut = 1},
           {.name = "C", .rows = N, .cut = 1}},
          I, false, s.std, false);
  ParamSpec& dt = b.linear(m + "dt_proj", I, R, false, 0);
  dt.cut = 0;
  dt.init = uniform(R);
  per_channel("dt_proj.bias", {I}, ParamKind::other, s.steps);
  ParamSpec& out = b.linear(m + "out_proj", width, I, s.bias, 0);
  out.cut = 1;
  out.init = uniform(I, s.out_scale);
  if (s.norms != Norms::weighted) return;
  b.norm(m + "dt_layernorm", R, false);
  b.norm(m + "b_layernorm", N, false);
  b.norm(m + "c_layernorm", N, false);
}

Tensor selective_mixer(const ParamTree& p, const std::string& prefix, const SelectiveSettings& s,
                       const ApplyOptions& o, size_t layer, const Tensor& a, const Tensor& key_mask) {
  const std::string m = prefix + ".", proj = m + "in_proj", small = m + "x_proj";
  const Tensors of = dense_layers(p, {{proj, "x"}, {proj, "z"}}, a, o);
  RecurrentPass pass(o, layer, key_mask, a, s.taps, sum_type(of[0].dtype()));
  const Tensor w = reshape(p[m + "conv1d.weight"], {s.inner, s.taps});
  const Tensor x = activate(s.activation, pass.convolved(of[0], w, p.find(m + "conv1d.bias")));

  const Tensors parts = dense_layers(p, {{small, "dt"}, {small, "B"}, {small, "C"}}, x, o);
  const auto normed = [&](int i, const char* name) {
    if (s.norms == Norms::none) return parts[i];
    return rms_norm(parts[i], p.find(m + name + ".weight"), s.eps);
  };
  const Tensor steps = to_sum_type(linear(normed(0, "dt_layernorm"), p[m + "dt_proj.weight"]));
  Tensor dt = softplus(steps + p[m + "dt_proj.bias"]);
  // Padding adds nothing to the state and lets nothing decay: a step of 0.
  if (pass.mask().defined()) dt = dt * pass.mask();
  const Recurrence r = selective_scan({.dt = dt,
                                       .x = x,
                                       .rates = exp(p[m + "A_log"]),
                                       .k = normed(1, "b_layernorm"),
                                       .q = normed(2, "c_layernorm"),
                                       .initial = pass.initial(),
                                       .segments = pass.segments()});
  pass.finish(r.state);
  return dense(p, m + "out_proj", (r.y + x * p[m + "D"]) * silu(of[1]), o);
}

}  // namespace redco
