#include "models/short_conv_mixer.h"

#include "models/recurrent_pass.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/shape.h"

namespace redco {

void declare_short_conv(SpecBuilder& b, const std::string& prefix, i64 width, const ShortConvSettings& s) {
  const std::string m = prefix + ".";
  const std::vector<SpecBuilder::Part> parts = {{.name = "b", .rows = width, .cut = 0},
                                                {.name = "c", .rows = width, .cut = 0},
                                                {.name = "x", .rows = width, .cut = 0}};
  ParamSpec& w = b.add(m + "conv.weight", {width, 1, s.taps}, ParamKind::conv, {Init::Kind::normal, s.std});
  w.cut = 0;
  if (s.bias) b.add(m + "conv.bias", {width}, ParamKind::bias, {Init::Kind::zeros}).cut = 0;
  b.fused(m + "in_proj", parts, width, s.bias, s.std, false);
  b.linear(m + "out_proj", width, width, s.bias, s.std).cut = 1;
}

Tensor short_conv_mixer(const ParamTree& p, const std::string& prefix, const ShortConvSettings& s,
                        const ApplyOptions& o, size_t layer, const Tensor& a, const Tensor& key_mask) {
  const std::string m = prefix + ".", proj = m + "in_proj";
  const Tensors of = dense_layers(p, {{proj, "b"}, {proj, "c"}, {proj, "x"}}, a, o);
  RecurrentPass pass(o, layer, key_mask, a, s.taps, sum_type(of[0].dtype()));
  const Tensor w = reshape(p[m + "conv.weight"], {a.size(2), s.taps});
  const Tensor y = of[1] * pass.convolved(of[0] * of[2], w, p.find(m + "conv.bias"));
  pass.finish();
  return dense(p, m + "out_proj", y, o);
}

}  // namespace redco
