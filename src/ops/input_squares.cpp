#include "ops/input_squares.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "comm/group.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

thread_local InputSquares* active = nullptr;

}  // namespace

InputSquares::InputSquares() {
  REDCO_CHECK(!active, "two InputSquares on one thread");
  active = this;
}
InputSquares::~InputSquares() { active = nullptr; }
InputSquares* InputSquares::current() { return active; }

void InputSquares::add(const Tensor& w, const Tensor& x) {
  const auto same = [&](const Sum& s) { return s.weight.same_bytes(w); };
  auto at = std::ranges::find_if(sums_, same);
  const auto columns = static_cast<std::size_t>(x.local().back());
  if (at == sums_.end())
    at = sums_.insert(sums_.end(), {.weight = w, .squares = std::vector<double>(columns)});
  const std::vector<float> values = host_copy<float>(x);
  REDCO_CHECK(at->squares.size() == columns, "{} columns of {}", columns, describe(w));
  for (std::size_t i = 0; i < values.size(); i += columns)
    for (std::size_t c = 0; c < columns; ++c)
      at->squares[c] += static_cast<double>(values[i + c]) * static_cast<double>(values[i + c]);
  at->rows += static_cast<double>(values.size() / std::max<std::size_t>(1, columns));
}

std::vector<float> InputSquares::of(const Tensor& w) const {
  const auto columns = static_cast<std::size_t>(w.shape().back());
  const Range mine = w.range(w.rank() - 1);
  std::vector<double> all(2 * columns);  // sums of squares, then the rows of each
  const auto at = std::ranges::find_if(sums_, [&](const Sum& s) { return s.weight.same_bytes(w); });
  if (at != sums_.end())
    for (std::size_t c = 0; c < at->squares.size(); ++c) {
      all[static_cast<std::size_t>(mine.begin) + c] = at->squares[c];
      all[columns + static_cast<std::size_t>(mine.begin) + c] = at->rows;
    }
  Context::current().world().all_reduce(all.data(), static_cast<i64>(all.size()));
  std::vector<float> out;
  for (std::size_t c = 0; c < columns && all[columns] > 0; ++c)
    out.push_back(all[columns + c] > 0 ? static_cast<float>(all[c] / all[columns + c]) : 0);
  return out;
}

}  // namespace redco
