#include "models/decoder/recurrent_mixers.h"

#include <algorithm>
#include <iterator>

#include "models/delta_mixer.h"
#include "models/mamba_mixer.h"
#include "models/selective_mixer.h"
#include "models/short_conv_mixer.h"

namespace redco {

namespace {

// A row from the member with the mixer's settings and from its two functions.
template <auto settings, auto declare, auto apply>
constexpr RecurrentMixer row(Mixer mixer, std::string DecoderNames::*name) {
  return {mixer, name,
          [](SpecBuilder& b, const std::string& prefix, const DecoderArchitecture& s) {
            declare(b, prefix, s.width, *(s.*settings));
          },
          [](const ParamTree& p, const std::string& prefix, const DecoderArchitecture& s,
             const ApplyOptions& o, size_t layer, const Tensor& x,
             const Tensor& key_mask) { return apply(p, prefix, *(s.*settings), o, layer, x, key_mask); }};
}

using Names = DecoderNames;
using Settings = DecoderArchitecture;
constexpr RecurrentMixer kRecurrentMixers[] = {
    row<&Settings::mamba, declare_mamba, mamba_mixer>(Mixer::mamba, &Names::mamba),
    row<&Settings::mamba, declare_mamba, mamba_mixer>(Mixer::attention_and_mamba, &Names::mamba),
    row<&Settings::delta, declare_delta, delta_mixer>(Mixer::delta, &Names::delta),
    row<&Settings::selective, declare_selective, selective_mixer>(Mixer::selective, &Names::selective),
    row<&Settings::conv, declare_short_conv, short_conv_mixer>(Mixer::conv, &Names::conv),
};

}  // namespace

const RecurrentMixer* recurrent_mixer(Mixer mixer) {
  const auto* const r = std::ranges::find(kRecurrentMixers, mixer, &RecurrentMixer::mixer);
  return r == std::end(kRecurrentMixers) ? nullptr : r;
}

}  // namespace redco
