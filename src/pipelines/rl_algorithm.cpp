#include "pipelines/rl_algorithm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "nn/layers.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "tensor/transfer.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

const std::string kTransition = "transition";

// Copies a row of a column and returns the end of the copy. Most columns have one value, which needs no call
// of memmove.
float* put(const float* from, std::size_t width, float* to) {
  if (width != 1) return std::copy_n(from, width, to);
  *to = *from;
  return to + 1;
}

std::vector<float> drawn(Tensor (*draw)(const Shape&, u64, const Layout&), const std::string& site, i64 seed,
                         i64 epoch, const Shape& shape) {
  Context& c = Context::current();
  Restore<RandomState> random(c.random, {.seed = static_cast<u64>(seed), .step = epoch, .row_offset = 0});
  const Tensor t = draw(shape, c.key("rl/" + site), {});
  if (t.is_meta()) return std::vector<float>(static_cast<std::size_t>(numel(shape)));
  return host_copy<float>(t);
}

}  // namespace

std::vector<float> RlJob::uniforms(const std::string& site, i64 epoch, const Shape& shape) const {
  return drawn(random_uniform, site, seed, epoch, shape);
}
std::vector<float> RlJob::normals(const std::string& site, i64 epoch, const Shape& shape) const {
  return drawn(random_normal, site, seed, epoch, shape);
}

float RlJob::to_bounds(float action) const {
  const double a = std::clamp<double>(action, -1, 1);
  return static_cast<float>(env->action_low() + (a + 1) / 2 * (env->action_high() - env->action_low()));
}

Mlp Mlp::of(const RlJob& job, const std::string& name, i64 in, i64 out) {
  Mlp m{name, {in}, job.rl.activation};
  m.sizes.insert(m.sizes.end(), job.rl.hidden_sizes.begin(), job.rl.hidden_sizes.end());
  m.sizes.push_back(out);
  return m;
}

void Mlp::declare_orthogonal_size(ModelParams& out, double hidden_gain, double last_gain) const {
  SpecBuilder b(out);
  for (std::size_t i = 1; i < sizes.size(); ++i)
    b.linear(fmt::format("{}.fc{}", name, i), sizes[i], sizes[i - 1], true,
             (i + 1 < sizes.size() ? hidden_gain : last_gain) /
                 std::sqrt(static_cast<double>(std::max(sizes[i], sizes[i - 1]))));
}

void Mlp::declare_uniform(ModelParams& out, double last_bound) const {
  SpecBuilder b(out);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const double bound = i + 1 < sizes.size() ? 1 / std::sqrt(static_cast<double>(sizes[i - 1])) : last_bound;
    b.linear(fmt::format("{}.fc{}", name, i), sizes[i], sizes[i - 1], true, 0);
    for (std::size_t k = out.specs.size() - 2; k < out.specs.size(); ++k)
      out.specs[k].init = {Init::Kind::uniform, bound};
  }
}

Tensor Mlp::operator()(const ParamTree& p, const Tensor& x) const {
  Tensor y = x;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    y = dense(p, fmt::format("{}.fc{}", name, i), y);
    if (i + 1 < sizes.size()) y = activate(activation, y);
  }
  return y;
}

std::vector<float> Mlp::outputs(const ParamTree& p, std::span<const float> rows) const {
  const NoGrad off;
  const i64 n = static_cast<i64>(rows.size()) / sizes.front();
  const std::vector<double> out = to_values((*this)(p, from_values({n, sizes.front()}, rows)));
  return {out.begin(), out.end()};
}

std::size_t RlTable::row_width() const {
  i64 width = 0;
  for (const Column& c : columns) width += c.width;
  return static_cast<std::size_t>(width);
}

i64 RlTable::rows() const {
  return columns.empty() ? 0 : static_cast<i64>(columns[0].values.size()) / columns[0].width;
}

RlTable::Column& RlTable::operator[](const std::string& name) {
  for (Column& c : columns)
    if (c.name == name) return c;
  throw BugError("the table has no column " + name);
}

std::string RlTable::text() const {
  Json j = Json::object();
  for (const Column& c : columns)
    j[c.name] =
        encode_base64({reinterpret_cast<const char*>(c.values.data()), c.values.size() * sizeof(float)});
  return j.dump();
}

void RlTable::from_text(const std::string& json, i64 rows) {
  const std::string where = "[rl] the steps in the checkpoint";
  try {
    const Json j = Json::parse(json);
    for (Column& c : columns) {
      const std::string bytes = decode_base64(j.at(c.name).get<std::string>(), where);
      const std::size_t row = sizeof(float) * static_cast<std::size_t>(c.width);
      if (rows < 0) rows = static_cast<i64>(bytes.size() / row);
      if (bytes.size() != static_cast<std::size_t>(rows) * row)
        throw ContentsError("{}: {} bytes of '{}', but {} rows of {} numbers are expected", where,
                            bytes.size(), c.name, rows, c.width);
      c.values.resize(bytes.size() / sizeof(float));
      std::memcpy(c.values.data(), bytes.data(), bytes.size());
    }
  } catch (const Json::exception& e) {
    throw ContentsError("{} are not readable: {}", where, e.what());
  }
}

Example RlRows::get(i64 i) const {
  Example e;
  e.ordinal = i;
  const i64 row = order_[static_cast<std::size_t>(i)];
  std::vector<float>& values = e.values[kTransition];
  values.resize(width_);
  float* to = values.data();
  for (const RlTable::Column& c : table_->columns)
    to = put(&c.values[row * c.width], static_cast<std::size_t>(c.width), to);
  return e;
}

TransitionColumns::TransitionColumns(const RlTable& table, std::span<const Example> rows) : table_(table) {
  rows_.reserve(rows.size());
  for (const Example& e : rows) {
    const std::vector<float>& values = e.values.at(kTransition);
    REDCO_CHECK(values.size() == table.row_width(), "a transition of {} values instead of {}", values.size(),
                table.row_width());
    rows_.push_back(values.data());
  }
}

TransitionColumns::Place TransitionColumns::place(const std::string& column) const {
  std::size_t begin = 0;
  for (const RlTable::Column& c : table_.columns) {
    const auto width = static_cast<std::size_t>(c.width);
    if (c.name == column) return {begin, width};
    begin += width;
  }
  throw BugError("the table has no column " + column);
}

std::vector<float> TransitionColumns::values(const std::string& column) const {
  const auto [begin, width] = place(column);
  std::vector<float> out(rows_.size() * width);
  float* to = out.data();
  for (const float* row : rows_) to = put(row + begin, width, to);
  return out;
}

Tensor TransitionColumns::field(const std::string& column, const BatchShape& shape) const {
  return from_local_values({shape.rows, static_cast<i64>(place(column).width)}, values(column));
}

std::vector<float> generalized_advantages(std::span<const float> rewards, std::span<const float> values,
                                          std::span<const float> next_values,
                                          const std::vector<bool>& terminated, const std::vector<bool>& ended,
                                          i64 n, double gamma, double lambda) {
  std::vector<float> out(rewards.size());
  std::vector<double> later(static_cast<std::size_t>(n), 0);  // advantages of the next step
  for (std::size_t i = rewards.size(); i-- > 0;) {
    double& a = later[i % static_cast<std::size_t>(n)];
    const double delta = rewards[i] + (terminated[i] ? 0 : gamma * next_values[i]) - values[i];
    a = delta + (ended[i] ? 0 : gamma * lambda * a);
    out[i] = static_cast<float>(a);
  }
  return out;
}

}  // namespace redco
