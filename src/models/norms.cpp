#include "models/norms.h"

#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

namespace {

Init norm_init(const NormSettings& s) { return {s.unit_offset ? Init::Kind::zeros : Init::Kind::ones, 0}; }

}  // namespace

void declare_norm(SpecBuilder& b, const std::string& prefix, i64 width, const NormSettings& s) {
  if (s.weight) b.add(prefix + ".weight", {width}, ParamKind::norm, norm_init(s));
  if (s.bias) b.add(prefix + ".bias", {width}, ParamKind::norm, {Init::Kind::zeros, 0});
}

Tensor norm(const ParamTree& p, const std::string& prefix, const Tensor& x, const NormSettings& s,
            NormResult result) {
  Tensor w = p.find(prefix + ".weight");
  if (s.unit_offset && w.defined()) w = add_scalar(w, 1);
  return s.rms ? rms_norm(x, w, s.eps) : layer_norm(x, w, p.find(prefix + ".bias"), s.eps, result);
}

void declare_head_norm(SpecBuilder& b, const std::string& prefix, const HeadGeometry& g, bool kv,
                       const HeadNormSettings& s) {
  using Over = HeadNormSettings::Over;
  if (s.over == Over::none) return;
  if (s.over == Over::head) return declare_norm(b, prefix, g.head_dim, s.norm);
  const i64 heads = kv ? g.n_kv : g.n_head, D = g.head_dim;
  const bool each = s.over == Over::each_head;
  ParamSpec& w = b.add(prefix + ".weight", each ? Shape{heads, D} : Shape{heads * D}, ParamKind::norm,
                       norm_init(s.norm));
  w.cut = 0;
  w.heads = {0, g.n_head, g.n_kv, each ? 1 : D, kv};
  if (s.listed) {
    w.stored.name = prefix + ".norms.{}.weight";
    w.stored.shape = {D};
    w.stored.stacked = heads;
  }
}

Tensor head_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, const HeadGeometry& g,
                 bool kv, const HeadNormSettings& s, const Tensor& query_weight) {
  using Over = HeadNormSettings::Over;
  if (s.over == Over::none) return x;
  if (s.over == Over::head) return norm(p, prefix, x, s.norm);
  const bool each = s.over == Over::each_head;
  Tensor w = p[prefix + ".weight"];
  if (s.norm.unit_offset) w = add_scalar(w, 1);
  if (kv) w = repeat_kv(w, each ? 1 : g.head_dim, g, query_weight);
  const auto normed = [&](const Tensor& h, const Tensor& weight) {
    return s.norm.rms ? rms_norm(h, weight, s.norm.eps) : layer_norm(h, weight, {}, s.norm.eps);
  };
  if (each) return normed(x, {}) * w;
  const Tensor wide = reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)});
  return reshape(normed(wide, w), {x.size(0), x.size(1), x.size(2), x.size(3)});
}

}  // namespace redco
