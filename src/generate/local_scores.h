// The scores of the next token on one rank of an mp group: its part of the vocabulary.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "comm/group.h"
#include "kernels/philox.h"
#include "ops/redistribute.h"
#include "tensor/transfer.h"

namespace redco {

// The rows of this rank's logits, [R, 1, V / mp], copied to the host.
class LocalScores {
 public:
  explicit LocalScores(Tensor logits) {
    const Placement p = logits.layout()[Axis::mp];
    if (!p.is_replicated() && !p.is_sharded(2))
      logits = redistribute(logits, Axis::mp, Placement::replicated());
    const Range r = logits.range(2);
    first_ = r.begin;
    width_ = r.end - r.begin;
    cut_ = !logits.layout()[Axis::mp].is_replicated();
    // Logits in bf16 are read as float.
    visit_float(logits.dtype() == DType::f64 ? DType::f64 : DType::f32,
                [&](auto zero) { values_ = host_copy<decltype(zero)>(logits); });
  }
  // The first token of this part.
  i64 first() const { return first_; }
  // Whether each rank has its own part.
  bool cut() const { return cut_; }
  // Calls f(row): this part of row r, in place, a span of float or double.
  template <class F>
  void row(i64 r, F&& f) {
    std::visit([&](auto& values) { f(std::span(values).subspan(r * width_, width_)); }, values_);
  }
  // Calls f(rows): the rows of these numbers, a vector of spans.
  template <class F>
  void rows(const std::vector<i64>& numbers, F&& f) {
    std::visit(
        [&](auto& values) {
          std::vector<std::span<typename std::decay_t<decltype(values)>::value_type>> out;
          for (const i64 r : numbers) out.push_back(std::span(values).subspan(r * width_, width_));
          f(out);
        },
        values_);
  }
  template <class F>
  void row(i64 r, F&& f) const {
    std::visit([&](const auto& values) { f(std::span(values).subspan(r * width_, width_)); }, values_);
  }
  std::vector<double> copy(i64 r) const {
    std::vector<double> out;
    row(r, [&](auto values) { out.assign(values.begin(), values.end()); });
    return out;
  }

 private:
  std::variant<std::vector<float>, std::vector<double>> values_;
  i64 first_ = 0, width_ = 0;
  bool cut_ = false;
};

// The lists of all ranks in rank order if the vocabulary is cut; otherwise `mine`, which is equal on all
// ranks.
template <class T>
std::vector<T> gathered(Group& g, bool cut, const std::vector<T>& mine) {
  if (!cut) return mine;
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<i64> bytes(g.size(), static_cast<i64>(mine.size() * sizeof(T)));
  std::vector<T> all(g.size() * mine.size());
  g.all_gather<std::byte>(reinterpret_cast<const std::byte*>(mine.data()),
                          reinterpret_cast<std::byte*>(all.data()), bytes);
  return all;
}

// 53 random bits in [0, 1) for one draw.
inline double uniform(u64 seed, i64 ordinal, i64 sample, i64 position) {
  const u64 high = kernels::philox_word(seed, ordinal, position, sample, 0),
            low = kernels::philox_word(seed, ordinal, position, sample, 1);
  return static_cast<double>((high << 21) | (low >> 11)) * 0x1p-53;
}

}  // namespace redco
