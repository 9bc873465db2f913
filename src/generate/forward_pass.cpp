#include "generate/forward_pass.h"

#include <algorithm>

#include "ops/create.h"

namespace redco {

Padded pad_left(const std::vector<std::span<const i32>>& rows, i32 pad) {
  Padded p;
  for (const auto& r : rows) p.length = std::max<i64>(p.length, static_cast<i64>(r.size()));
  p.ids.assign(rows.size() * p.length, pad);
  for (size_t i = 0; i < rows.size(); ++i) {
    p.begin.push_back(p.length - static_cast<i64>(rows[i].size()));
    std::copy(rows[i].begin(), rows[i].end(), p.ids.begin() + i * p.length + p.begin[i]);
  }
  return p;
}

Tensor forward(const Model& model, const ParamTree& params, ModelCache& cache, i64 rows, i64 length,
               std::span<const i32> ids, std::span<const i64> begin, const PassMemory& memory) {
  ApplyOptions o;
  o.cache = &cache;
  o.last_position_only = true;
  const bool padded = std::any_of(begin.begin(), begin.end(), [](i64 b) { return b > 0; });
  const i64 piece = std::clamp<i64>(kTokensOfPass / std::max<i64>(1, rows), 1, length);
  Tensor logits;
  for (i64 at = 0; at < length; at += piece) {
    const i64 n = std::min(piece, length - at), before = cache.length(), held = before + n;
    // of_token[i]: the position of a row's i-th token.
    const i64 earliest = std::min(held, *std::min_element(begin.begin(), begin.end()));
    const auto of_token = model.positions(std::vector<i32>(held - earliest, 1), true);
    const i32 of_padding = model.positions(std::vector<i32>(1, 0), true)[0];
    std::vector<i32> positions, fed;
    for (i64 r = 0; r < rows; ++r) {
      for (i64 t = before; t < held; ++t)
        positions.push_back(t < begin[r] ? of_padding : of_token[t - begin[r]]);
      fed.insert(fed.end(), ids.begin() + r * length + at, ids.begin() + r * length + at + n);
    }
    DecoderInputs in;
    in.input_ids = from_ids({rows, n}, fed);
    in.positions = from_ids({rows, n}, positions);
    if (padded) {
      std::vector<i32> mask(rows * held, 1);
      for (i64 r = 0; r < rows; ++r) std::fill_n(mask.begin() + r * held, std::min(begin[r], held), 0);
      in.key_mask = from_ids({rows, held}, mask);
    }
    if (at == 0) in.memory = memory.states;
    if (!memory.mask.empty()) in.memory_mask = from_ids({rows, memory.length}, memory.mask);
    logits = model.apply(params, in, o);
  }
  return logits;
}

std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts) {
  NoGrad off;
  const Padded p = pad_left({prompts.begin(), prompts.end()}, 0);
  ModelCache cache = model.make_cache({.capacity = p.length});
  const auto v = to_values(
      forward(model, params, cache, static_cast<i64>(prompts.size()), p.length, p.ids, p.begin, {}));
  return {v.begin(), v.end()};
}

i64 trace_generation(const Model& model, const ParamTree& params, i64 rows, i64 encoded, i64 prompt,
                     i64 length, CacheDType dtype, const std::function<void()>& between) {
  NoGrad off;
  ModelCache cache = model.make_cache({.capacity = length, .dtype = dtype});
  PassMemory memory;
  const std::vector<i32> mask(rows * encoded, 1);
  EncoderInputs in;
  if (model.task() == ModelTask::image_captioning) {
    const ImageShape& image = model.image_shape();
    in.pixel_values = zeros({rows, image.channels, image.height, image.width});
    memory.states = model.encode(params, in, {});
  } else if (model.task() == ModelTask::speech_to_text) {
    in.features = zeros({rows, model.audio_shape().bands, model.audio_shape().frames});
    memory.states = model.encode(params, in, {});
  } else if (encoded > 0) {
    in.input_ids = from_ids({rows, encoded}, {});
    in.key_mask = from_ids({rows, encoded}, {});
    memory = {model.encode(params, in, {}), mask, encoded};
  }
  const std::vector<i32> ids(rows * prompt, 0);
  std::vector<i64> begin(rows, 0);
  begin[0] = 1;  // one row is padded
  forward(model, params, cache, rows, prompt, ids, begin, memory);
  memory.states = {};
  between();
  cache.move(length - 1 - cache.length(), length);
  const i64 bytes = cache.bytes();
  forward(model, params, cache, rows, 1, std::span<const i32>(ids).first(rows), begin, memory);
  return bytes;
}

}  // namespace redco
