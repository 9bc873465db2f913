#include "models/relative_bias.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/create.h"
#include "ops/embedding.h"
#include "ops/shape.h"

namespace redco {

RelativeBuckets read_relative_buckets(ModelConfig& c, const char* count, const char* max_distance) {
  RelativeBuckets b;
  // The encoder has count / 2 buckets per direction, count / 4 of them for one distance each.
  b.count = c.integer_or(count, 32, 4);
  if (b.count > (1 << 20)) c.fail(count, "too large");
  // Must be above the number of the decoder's single-distance buckets, count / 2.
  b.max_distance = c.integer_or(max_distance, 128);
  if (b.max_distance <= b.count / 2)
    c.fail(max_distance, fmt::format("expected more than {}/2={}", count, b.count / 2));
  return b;
}

i64 relative_bucket(const RelativeBuckets& b, i64 distance) {
  const i64 side = b.bidirectional ? b.count / 2 : b.count;
  const i64 first = b.bidirectional && distance > 0 ? side : 0;
  const i64 n = b.bidirectional ? std::abs(distance) : std::max<i64>(0, -distance);
  const i64 exact = side / 2;
  if (n < exact) return first + n;
  const float base = static_cast<float>(std::log(
      static_cast<double>(b.max_distance) / static_cast<double>(exact)));  // rounded once, like transformers
  const float log = std::log(static_cast<float>(n) / static_cast<float>(exact));
  const auto further = static_cast<i64>(log / base * static_cast<float>(side - exact));
  return first + std::min(exact + further, side - 1);
}

Tensor relative_bias(const Tensor& table, const RelativeBuckets& b, i64 Tq, i64 Tk) {
  std::vector<i32> ids;
  if (!table.is_meta()) {
    // bucket_of[d]: the bucket of distance d - (Tk - 1).
    std::vector<i32> bucket_of(Tk + Tq - 1);
    for (i64 d = 0; d < static_cast<i64>(bucket_of.size()); ++d)
      bucket_of[d] = static_cast<i32>(relative_bucket(b, d - (Tk - 1)));
    ids.reserve(Tq * Tk);
    for (i64 i = 0; i < Tq; ++i)  // query i is token Tk - Tq + i
      for (i64 j = 0; j < Tk; ++j) ids.push_back(bucket_of[j - (Tk - Tq + i) + Tk - 1]);
  }
  const Tensor y = embedding(table, from_ids({Tq, Tk}, ids));  // [Tq, Tk, H]
  return reshape(permute(y, {2, 0, 1}), {1, y.size(2), Tq, Tk});
}

}  // namespace redco
