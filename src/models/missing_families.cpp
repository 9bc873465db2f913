#include "models/missing_families.h"

#include <algorithm>

namespace redco {

namespace {

// The families that users ask for; other ones are refused without a reason.
constexpr MissingFamily kMissing[] = {
    {"gemma3n", "embeddings per layer, AltUp and LAuReL blocks"},
    {"gemma3n_text", "embeddings per layer, AltUp and LAuReL blocks"},
    {"gemma4", "embeddings per layer, keys shared by layers"},
    {"gemma4_text", "embeddings per layer, keys shared by layers"},
    {"bitnet", "ternary weights, activations of 8 bits"},
    {"dbrx", "experts that are stored as rows of one matrix"},
    {"minimax", "lightning attention"},
    {"t5gemma", "cross-attention with rotary positions in the decoder"},
    {"longt5", "local and transient-global attention"},
    {"led", "local and global attention"},
    {"longformer", "local and global attention"},
    {"big_bird", "block-sparse attention"},
    {"bigbird_pegasus", "block-sparse attention"},
    {"recurrent_gemma", "the recurrence RG-LRU"},
    {"rwkv", "the recurrence WKV"},
    {"kimi_linear", "Kimi delta attention"},
    {"deepseek_v32", "sparse attention with an indexer"},
    {"zamba2", "attention layers that share parameters"},
    {"xlnet", "permutation language modeling"},
    {"reformer", "attention by hashing"},
    {"deberta", "disentangled attention without buckets, fused projections"},
    {"qwen2_vl", "images"},
    {"qwen2_5_vl", "images"},
    {"qwen3_vl", "images"},
    {"llava", "images"},
    {"swin", "attention in shifted windows"},
    {"convnext", "convolutional networks with published weights"},
    {"resnet", "convolutional networks with published weights"},
    {"beit", "relative positions of patches"},
    {"wav2vec2", "speech encoders with CTC"},
};

}  // namespace

std::span<const MissingFamily> missing_families() { return kMissing; }

std::string lacking_for(const std::string& model_type) {
  const auto* f =
      std::ranges::find_if(kMissing, [&](const MissingFamily& m) { return model_type == m.model_type; });
  return f == std::end(kMissing) ? "" : f->lacks;
}

}  // namespace redco
