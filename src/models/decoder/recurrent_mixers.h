// The recurrent mixers of the decoder: one row for each, so that the decoder names none of them.
#pragma once

#include <string>

#include "models/decoder/architecture.h"
#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct RecurrentMixer {
  Mixer mixer;
  std::string DecoderNames::*name;  // of its parameters within a layer
  void (*declare)(SpecBuilder& b, const std::string& prefix, const DecoderArchitecture& s);
  // [B, T, C] -> [B, T, C]. layer: index in the cache, a StateCache.
  Tensor (*apply)(const ParamTree& p, const std::string& prefix, const DecoderArchitecture& s,
                  const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask);
};
// Null: the mixer has none.
const RecurrentMixer* recurrent_mixer(Mixer mixer);

}  // namespace redco
