#include "models/spec_builder.h"

namespace redco {

ParamSpec& SpecBuilder::add(const std::string& name, Shape shape, ParamKind kind, Init init) {
  out_.specs.push_back(
      {.name = name, .shape = shape, .kind = kind, .stored = {name, shape, false, 0}, .init = init});
  return out_.specs.back();
}

void SpecBuilder::embedding(const std::string& name, i64 rows, i64 width, double std, i64 zero_row) {
  add(name, {rows, width}, ParamKind::embedding, {Init::Kind::normal, std, zero_row});
}

void SpecBuilder::positions(const std::string& name, i64 rows, i64 width, double std, i64 zero_row) {
  embedding(name, rows, width, std, zero_row);
  out_.specs.back().precise = true;
}

void SpecBuilder::head_table(const std::string& name, i64 rows, i64 heads, double std) {
  add(name, {rows, heads}, ParamKind::embedding, {Init::Kind::normal, std});
  out_.specs.back().heads = {.dim = 1, .n_head = heads, .n_kv = heads, .head_dim = 1};
  out_.specs.back().role = Role::bias_table;
  out_.specs.back().precise = true;
}

void SpecBuilder::buffer(const std::string& name, Shape shape, ParamKind kind) {
  add(name, std::move(shape), kind, {Init::Kind::zeros, 0});
  out_.specs.back().buffer = true;
}

void SpecBuilder::norm(const std::string& prefix, i64 width, bool bias) {
  add(prefix + ".weight", {width}, ParamKind::norm, {Init::Kind::ones, 0});
  if (bias) add(prefix + ".bias", {width}, ParamKind::norm, {Init::Kind::zeros, 0});
}

ParamSpec& SpecBuilder::linear(const std::string& prefix, i64 out, i64 in, bool bias, double std,
                               bool transposed, HeadsOf heads) {
  const size_t weight = out_.specs.size();
  const Shape shape = {out, in}, stored = transposed ? Shape{in, out} : shape;
  out_.specs.push_back({.name = prefix + ".weight",
                        .shape = shape,
                        .kind = ParamKind::linear,
                        .stored = {prefix + ".weight", stored, transposed, 0},
                        .heads = heads,
                        .init = {Init::Kind::normal, std}});
  if (bias) {
    add(prefix + ".bias", {out}, ParamKind::bias, {Init::Kind::zeros, 0});
    if (heads.dim == 0) out_.specs.back().heads = heads;
  }
  return out_.specs[weight];
}

ParamSpec& SpecBuilder::conv(const std::string& prefix, i64 out, i64 in, i64 height, i64 width, bool bias,
                             double std) {
  const size_t weight = out_.specs.size();
  add(prefix + ".weight", {out, in, height, width}, ParamKind::conv, {Init::Kind::normal, std});
  if (bias) add(prefix + ".bias", {out}, ParamKind::bias, {Init::Kind::zeros, 0});
  return out_.specs[weight];
}

ParamSpec& SpecBuilder::experts(const Experts& e, double std, const std::string& joined, i64 joined_row,
                                i64 joined_rows) {
  const std::string name = e.prefix + "." + e.layer + ".weight";
  out_.specs.push_back({.name = name,
                        .shape = {e.count, e.out, e.in},
                        .kind = ParamKind::linear,
                        .stored = {.name = e.prefix + ".{}." + e.layer + ".weight",
                                   .shape = {e.out, e.in},
                                   .stacked = e.count,
                                   .joined = joined,
                                   .joined_row = joined_row,
                                   .joined_rows = joined_rows},
                        .init = {Init::Kind::normal, std}});
  return out_.specs.back();
}

void SpecBuilder::idle_linear(const std::string& prefix, i64 out, i64 in, double std) {
  const size_t first = out_.specs.size();
  linear(prefix, out, in, true, std);
  for (size_t i = first; i < out_.specs.size(); ++i) out_.specs[i].buffer = true;
}

void SpecBuilder::fused(const std::string& prefix, const std::vector<Part>& parts, i64 in, bool bias,
                        double std, bool transposed) {
  this->parts(prefix + ".weight", parts, {in}, ParamKind::linear, {Init::Kind::normal, std}, transposed);
  if (bias) this->parts(prefix + ".bias", parts, {}, ParamKind::bias, {Init::Kind::zeros, 0});
}

void SpecBuilder::rename_stored(const std::string& name, const std::string& stored) {
  for (ParamSpec& s : out_.specs)
    if (s.stored.name == name) s.stored.name = stored;
}

void SpecBuilder::parts(const std::string& name, const std::vector<Part>& parts, const Shape& rest,
                        ParamKind kind, Init init, bool transposed) {
  i64 total = 0, step = 0;
  for (const Part& p : parts) {
    total += p.rows;
    step += p.block;
  }
  Shape stored = {total};
  stored.insert(stored.end(), rest.begin(), rest.end());
  if (transposed) std::swap(stored[0], stored[1]);
  i64 row = 0;
  for (const Part& p : parts) {
    Shape shape = {p.rows};
    shape.insert(shape.end(), rest.begin(), rest.end());
    out_.specs.push_back({.name = name + "[" + p.name + "]",
                          .shape = shape,
                          .kind = kind,
                          .stored = {.name = name,
                                     .shape = stored,
                                     .transposed = transposed,
                                     .row = row,
                                     .block = p.block,
                                     .step = step},
                          .heads = p.heads,
                          .role = kind == ParamKind::linear ? p.role : std::nullopt,
                          .cut = p.cut,
                          .init = init,
                          .precise = p.precise});
    row += p.block > 0 ? p.block : p.rows;
  }
}

}  // namespace redco
