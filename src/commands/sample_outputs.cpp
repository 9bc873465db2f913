#include "commands/sample_outputs.h"

#include <algorithm>
#include <cmath>

#include "ops/create.h"

namespace redco {

namespace {

constexpr i64 kRows = 2, kTokens = 32;

Tensor some_ids(const Model& m) {
  const Shape shape = {kRows, std::min(kTokens, m.max_length())};
  std::vector<i32> ids;
  for (i64 r = 0; r < shape[0]; ++r)
    for (i64 t = 0; t < shape[1]; ++t)
      ids.push_back(static_cast<i32>((7919 * (r * shape[1] + t) + 104729 * r + 13) % m.vocab_size()));
  return from_ids(shape, ids);
}

// Numbers in [-1, 1].
Tensor some_values(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  return from_values(shape, std::span<const float>(values));
}

Tensor decoded(const Model& m, const ParamTree& p, DecoderInputs in) {
  in.input_ids = some_ids(m);
  std::vector<i32> positions;
  const std::vector<i32> row =
      m.positions(std::vector<i32>(static_cast<size_t>(in.input_ids.size(1)), 1), false);
  for (i64 r = 0; r < kRows; ++r) positions.insert(positions.end(), row.begin(), row.end());
  in.positions = from_ids(in.input_ids.shape(), positions);
  return m.apply(p, in, {});
}

}  // namespace

std::vector<double> sample_outputs(const Model& m, const ParamTree& p) {
  NoGrad off;
  const ImageShape& image = m.image_shape();
  EncoderInputs in;
  if (image.channels > 0) in.pixel_values = some_values({kRows, image.channels, image.height, image.width});
  if (const AudioShape& audio = m.audio_shape(); audio.bands > 0)
    in.features = some_values({kRows, audio.bands, audio.frames});
  if (m.n_features() > 0) in.features = some_values({kRows, m.n_features()});
  switch (m.task()) {
    case ModelTask::causal_lm:
      return to_values(decoded(m, p, {}));
    case ModelTask::image_captioning:
    case ModelTask::speech_to_text:
      return to_values(decoded(m, p, {.memory = m.encode(p, in, {})}));
    case ModelTask::seq2seq_lm:
      return to_values(decoded(m, p, {.memory = m.encode(p, {.input_ids = some_ids(m)}, {})}));
    case ModelTask::text_to_image:
      in.features = some_values({kRows, 1});
      in.memory = m.encode(p, {.input_ids = some_ids(m)}, {});
      return to_values(m.apply_encoder(p, in, {}));
    case ModelTask::image_text_contrastive: {  // two towers, or one of them
      std::vector<double> out;
      if (in.pixel_values.defined()) out = to_values(m.apply_encoder(p, in, {}));
      if (m.vocab_size() == 0) return out;
      const std::vector<double> texts = to_values(m.apply_encoder(p, {.input_ids = some_ids(m)}, {}));
      out.insert(out.end(), texts.begin(), texts.end());
      return out;
    }
    default:
      if (!in.pixel_values.defined() && !in.features.defined()) in.input_ids = some_ids(m);
      return to_values(m.apply_encoder(p, in, {}));
  }
}

}  // namespace redco
