#include "generate/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "kernels/nn.h"
#include "ops/create.h"
#include "ops/shape.h"

namespace redco {

namespace {

// Rows padded on the left to one length, with their masks.
struct Rows {
  i64 rows = 0, length = 0;
  std::vector<i32> ids, mask;
};
Rows pad_left(const std::vector<std::vector<i32>>& prompts, i32 pad_id) {
  Rows r;
  r.rows = static_cast<i64>(prompts.size());
  for (const auto& p : prompts) r.length = std::max<i64>(r.length, static_cast<i64>(p.size()));
  r.ids.assign(r.rows * r.length, pad_id);
  r.mask.assign(r.rows * r.length, 0);
  for (i64 i = 0; i < r.rows; ++i) {
    const auto& p = prompts[i];
    const i64 at = (i + 1) * r.length - static_cast<i64>(p.size());
    std::copy(p.begin(), p.end(), r.ids.begin() + at);
    std::fill_n(r.mask.begin() + at, p.size(), 1);
  }
  return r;
}

// One pass over `length` new tokens a row; the mask covers all that the cache will hold. -> logits of the
// last position, whole.
std::vector<float> forward(const Model& model, const ParamTree& params, i64 rows, i64 length,
                           std::span<const i32> ids, std::span<const i32> mask, KvCache* cache) {
  const i64 held = static_cast<i64>(mask.size()) / std::max<i64>(1, rows);
  std::vector<i32> positions;
  bool padded = false;
  for (i64 i = 0; i < rows; ++i) {
    const auto row = model.positions(mask.subspan(i * held, held), true);
    positions.insert(positions.end(), row.end() - length, row.end());
  }
  for (i32 m : mask) padded |= m == 0;
  DecoderInputs in{from_ids({rows, length}, ids), from_ids({rows, length}, positions), {}};
  if (padded) in.key_mask = from_ids({rows, held}, mask);
  ApplyOptions o;
  o.cache = cache;
  o.last_position_only = true;
  const Tensor logits = model.apply(params, in, o);  // [rows, 1, V]
  const auto v = to_values(logits);
  return {v.begin(), v.end()};
}

}  // namespace

std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s) {
  const i64 V = static_cast<i64>(logits.size());
  std::vector<double> x(logits.begin(), logits.end());
  const double t = s.temperature > 0 ? s.temperature : 1.0;
  for (double& v : x) v /= t;
  std::vector<i64> order(V);
  std::iota(order.begin(), order.end(), i64{0});
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return x[a] > x[b]; });
  i64 keep = V;
  if (s.top_k > 0 && s.top_k < V) {
    keep = s.top_k;
    while (keep < V && x[order[keep]] == x[order[s.top_k - 1]]) ++keep;  // ties with the k-th stay
  }
  std::vector<float> p(V, 0.f);
  const double top = V ? x[order[0]] : 0;
  double sum = 0;
  for (i64 i = 0; i < keep; ++i) sum += std::exp(x[order[i]] - top);
  if (s.top_p < 1) {
    // The smallest set whose probability reaches top_p.
    double held = 0;
    i64 n = 0;
    while (n < keep && (n == 0 || held < s.top_p)) held += std::exp(x[order[n++]] - top) / sum;
    keep = n;
    sum *= held;
  }
  for (i64 i = 0; i < keep; ++i) p[order[i]] = static_cast<float>(std::exp(x[order[i]] - top) / sum);
  return p;
}

std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts, i32 pad_id) {
  NoGrad off;
  const Rows r = pad_left(prompts, pad_id);
  return forward(model, params, r.rows, r.length, r.ids, r.mask, nullptr);
}

std::vector<std::vector<i32>> generate(
    const Model& model, const ParamTree& params, const std::vector<std::vector<i32>>& prompts,
    const std::vector<i64>& ordinals, const GenerationSettings& s,
    const std::function<void(const std::vector<i64>&, const std::vector<i32>&)>& on_tokens) {
  NoGrad off;
  Context& c = Context::current();
  REDCO_CHECK(ordinals.size() == prompts.size());
  std::vector<std::vector<i32>> out(prompts.size());
  if (prompts.empty()) return out;
  for (const auto& p : prompts) REDCO_CHECK(!p.empty(), "an empty prompt");
  Rows r = pad_left(prompts, s.pad_id);
  const i64 rows = r.rows, V = model.vocab_size();
  const i64 steps = std::min(s.max_new_tokens, std::max<i64>(0, model.max_length() - r.length));
  KvCache cache;
  cache.max_length = r.length + steps;
  std::vector<char> done(rows, 0);
  std::vector<i32> mask = r.mask, feed = r.ids;
  i64 length = r.length;
  for (i64 step = 0; step < steps; ++step) {
    const std::vector<float> logits = forward(model, params, rows, length, feed, mask, &cache);
    // Decided on the first rank of the group: rounding may differ between CPU types.
    std::vector<i32> next(rows, s.pad_id);
    if (c.group(Axis::mp).rank() == 0)
      for (i64 i = 0; i < rows; ++i) {
        if (done[i]) continue;
        const std::span<const float> row(logits.data() + i * V, V);
        if (s.temperature <= 0) {
          next[i] = static_cast<i32>(std::max_element(row.begin(), row.end()) - row.begin());
          continue;
        }
        const auto p = sampling_probabilities(row, s);
        const double u = (kernels::philox_word(s.seed, ordinals[i], step, 0, 0) >> 8) * 0x1p-24;
        double held = 0;
        i64 pick = 0;
        for (i64 v = 0; v < V; ++v) {
          if (p[v] <= 0) continue;
          pick = v;
          held += p[v];
          if (u < held) break;
        }
        next[i] = static_cast<i32>(pick);
      }
    c.group(Axis::mp).broadcast_bytes(next.data(), rows * 4);
    std::vector<i64> running;
    std::vector<i32> fresh;
    for (i64 i = 0; i < rows; ++i) {
      if (done[i]) continue;
      running.push_back(i);
      fresh.push_back(next[i]);
      out[i].push_back(next[i]);
      done[i] = std::find(s.eos_ids.begin(), s.eos_ids.end(), next[i]) != s.eos_ids.end();
    }
    if (on_tokens) on_tokens(running, fresh);
    if (std::all_of(done.begin(), done.end(), [](char d) { return d != 0; })) break;
    // The mask grows by one column a row.
    const i64 held = static_cast<i64>(mask.size()) / rows;
    std::vector<i32> wider(rows * (held + 1), 1);
    for (i64 i = 0; i < rows; ++i) std::copy_n(mask.begin() + i * held, held, wider.begin() + i * (held + 1));
    mask = std::move(wider);
    feed = next;
    length = 1;
  }
  return out;
}

}  // namespace redco
