#include "models/positions.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/shape.h"
#include "tensor/transfer.h"

namespace redco {

Tensor row_positions(const Tensor& ids, i64 first, std::optional<i32> padding) {
  REDCO_CHECK(ids.rank() == 2 && ids.dtype() == DType::i32 && ids.local()[1] == ids.shape()[1],
              "positions of {}: rows must not be sharded along their tokens", describe(ids));
  const Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  if (out.is_meta()) return out;
  const i64 S = ids.local()[1];
  std::vector<i32> ids_or_positions = host_copy<i32>(ids);
  auto at = ids_or_positions.begin();
  for (i64 row = 0; row < ids.local()[0]; ++row) {
    i64 next = first;
    for (i64 s = 0; s < S; ++s, ++at) *at = static_cast<i32>(padding && *at == *padding ? first - 1 : next++);
  }
  copy_from_host<i32>(ids_or_positions, out);
  return out;
}

Tensor shifted_ids(const Tensor& ids, i32 first) {
  REDCO_CHECK(ids.rank() == 2 && ids.dtype() == DType::i32 && ids.local()[1] == ids.shape()[1],
              "shifted ids of {}: rows must not be sharded along their tokens", describe(ids));
  const Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  if (out.is_meta()) return out;
  const std::vector<i32> from = host_copy<i32>(ids);
  const i64 S = ids.local()[1];
  std::vector<i32> to(from.size());
  for (i64 i = 0; i < std::ssize(to); ++i) to[i] = i % S == 0 ? first : from[i - 1];
  copy_from_host<i32>(to, out);
  return out;
}

Tensor chunk_numbers(const Tensor& positions, const Tensor& key_mask, i64 chunk, i64 keys) {
  const i64 T = positions.size(1);
  Shape shape = positions.shape();
  shape.back() = keys;
  const Tensor out(shape, DType::i32, positions.layout(), positions.hidden());
  if (out.is_meta()) return out;
  const std::vector<i32> of_queries = host_copy<i32>(positions);
  std::vector<i32> mask(static_cast<size_t>(out.local_numel()), 1);
  if (key_mask.defined()) mask = host_copy<i32>(narrow(key_mask, 1, 0, keys));
  const i64 rows = static_cast<i64>(of_queries.size()) / T;
  std::vector<i32> numbers(mask.size());
  for (i64 b = 0; b < rows; ++b) {
    // The last T keys are the queries. Those before them are counted back from the first query.
    const i32 *p = of_queries.data() + b * T, *m = mask.data() + b * keys;
    const i32 most = *std::max_element(m, m + keys);
    for (i64 k = 0; k < keys; ++k) {
      const i64 q = k - (keys - T);
      const i64 position = q >= 0 ? p[q] : std::max<i64>(0, p[0] + q);
      if (m[k] != 0) numbers[b * keys + k] = static_cast<i32>(m[k] + (most + 1) * (position / chunk));
    }
  }
  copy_from_host<i32>(numbers, out);
  return out;
}

std::vector<float> sinusoid_rows(i64 rows, i64 width) {
  std::vector<float> out(rows * width);
  const i64 half = (width + 1) / 2;
  for (i64 r = 0; r < rows; ++r)
    for (i64 d = 0; d < width; ++d) {
      const i64 k = d < half ? d : d - half;
      const double angle = static_cast<double>(r) /
                           std::pow(10000.0, 2.0 * static_cast<double>(k) / static_cast<double>(width));
      out[r * width + d] = static_cast<float>(d < half ? std::sin(angle) : std::cos(angle));
    }
  return out;
}

std::vector<float> counted_sinusoid_rows(i64 rows, i64 width, i64 zero_row) {
  const i64 half = width / 2;
  const auto step = static_cast<float>(-std::log(10000.0) / static_cast<double>(half - 1));
  std::vector<float> out(rows * width);
  for (i64 k = 0; k < half; ++k) {
    const auto frequency = static_cast<float>(std::exp(static_cast<double>(static_cast<float>(k) * step)));
    for (i64 r = 0; r < rows; ++r) {
      const float angle = static_cast<float>(r) * frequency;
      if (r == zero_row) continue;
      out[r * width + k] = static_cast<float>(std::sin(static_cast<double>(angle)));
      out[r * width + half + k] = static_cast<float>(std::cos(static_cast<double>(angle)));
    }
  }
  return out;
}

Tensor table_rows(const Tensor& ids, const std::vector<float>& table, i64 width, DType type) {
  Shape shape = ids.shape();
  shape.push_back(width);
  const Tensor out(shape, DType::f32, ids.layout(), ids.hidden());
  if (!out.is_meta()) {
    const std::vector<i32> rows = host_copy<i32>(ids);
    const i64 known = static_cast<i64>(table.size()) / width;
    std::vector<float> values(rows.size() * static_cast<size_t>(width));
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i] >= 0 && rows[i] < known)
        std::copy_n(table.begin() + rows[i] * width, width, values.begin() + static_cast<i64>(i) * width);
    copy_from_host<float>(values, out);
  }
  return type == DType::f64 ? cast(out, type) : out;
}

Tensor full_ids_like(const Tensor& ids, i32 value) {
  Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  Context::current().run(&Kernels::fill, out, value);
  return out;
}

}  // namespace redco
