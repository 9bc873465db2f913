#include "ops/input_moments.h"

#include <algorithm>

#include "base/error.h"
#include "comm/group.h"
#include "ops/create.h"
#include "ops/placement_names.h"
#include "ops/redistribute.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

thread_local InputMoments* active = nullptr;

// x with all its columns, as a matrix of fp32.
Tensor with_all_columns(const Tensor& x) {
  Tensor out = x;
  for (const Axis a : Context::current().mesh().axes())
    if (out.layout()[a].is_sharded(out.rank() - 1)) out = redistribute(out, a, R_);
  return widened(out);
}

}  // namespace

InputMoments::InputMoments(Tensors weights, i64 bytes) : weights_(std::move(weights)), bytes_(bytes) {
  REDCO_CHECK(!active, "two InputMoments on one thread");
  active = this;
}
InputMoments::~InputMoments() { active = nullptr; }
InputMoments* InputMoments::current() { return active; }

InputMoments::Sum& InputMoments::of(const Tensors& w, const Tensor& x) {
  const auto same = [](const Tensor& a, const Tensor& b) { return a.same_bytes(b); };
  const auto at =
      std::ranges::find_if(sums_, [&](const Sum& s) { return std::ranges::equal(s.weights, w, same); });
  if (at != sums_.end()) return *at;
  Sum s{.weights = w, .squares = std::vector<double>(static_cast<std::size_t>(x.local().back()))};
  const i64 columns = x.shape().back(), bytes = columns * columns * 4;
  if (bytes <= bytes_) {
    bytes_ -= bytes;
    s.products = zeros({columns, columns}, DType::f32);
  }
  sums_.push_back(std::move(s));
  return sums_.back();
}

void InputMoments::add(const Tensors& w, const Tensor& x) {
  const auto asked_for = [&](const Tensor& t) {
    return std::ranges::any_of(weights_, [&](const Tensor& a) { return a.same_bytes(t); });
  };
  if (std::ranges::none_of(w, asked_for)) return;
  Sum& s = of(w, x);
  const std::vector<float> values = host_copy<float>(x);
  const std::size_t columns = s.squares.size();
  for (std::size_t i = 0; i < values.size(); i += columns)
    for (std::size_t c = 0; c < columns; ++c)
      s.squares[c] += static_cast<double>(values[i + c]) * static_cast<double>(values[i + c]);
  const View local = x;  // a rank may have no columns
  s.rows += static_cast<double>(local.leading());
  if (!s.products.defined()) return;
  const Tensor whole = with_all_columns(x);
  const View all = whole, rows = all.reshaped({all.leading(), all.last()});
  Context& c = Context::current();
  const Tensor part(s.products.shape(), DType::f32, {});
  c.run(&Kernels::matmul, rows, true, rows, false, part);
  c.run(&Kernels::axpy, 1.0, part, s.products);
}

void InputMoments::take(const std::function<void(const Product&)>& f) {
  Group& world = Context::current().world();
  for (Sum& s : sums_) {
    Product out{.weights = s.weights};
    const auto columns = static_cast<std::size_t>(s.weights[0].shape().back());
    const Range mine = s.weights[0].range(1);
    std::vector<double> all(2 * columns);  // sums of squares, then the rows of each
    for (std::size_t c = 0; c < s.squares.size(); ++c) {
      all[static_cast<std::size_t>(mine.begin) + c] = s.squares[c];
      all[columns + static_cast<std::size_t>(mine.begin) + c] = s.rows;
    }
    double rows = s.rows;
    world.all_reduce(all.data(), std::ssize(all));
    world.all_reduce(&rows, 1);
    for (std::size_t c = 0; c < columns; ++c)
      out.squares.push_back(all[columns + c] > 0 ? static_cast<float>(all[c] / all[columns + c]) : 0);
    if (s.products.defined()) {
      out.products = host_copy<float>(s.products);
      s.products = Tensor();
      world.all_reduce(out.products.data(), std::ssize(out.products));
      for (float& p : out.products) p = static_cast<float>(static_cast<double>(p) / std::max(1.0, rows));
    }
    f(out);
  }
  sums_.clear();
}

}  // namespace redco
