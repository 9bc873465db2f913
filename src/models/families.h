// Each family's maker, for the registry in model.cpp.
#pragma once

#include <memory>

#include "models/model.h"

namespace redco {

// Decoders with attention are in decoder/families.h, text encoders in encoder/families.h, and descendants of
// BART in seq2seq/seq2seq.h.
std::unique_ptr<Model> make_mamba2(ModelConfig& c);
std::unique_ptr<Model> make_t5(ModelConfig& c);
std::unique_ptr<Model> make_gemma3(ModelConfig& c);   // the text model of a model of images and texts
std::unique_ptr<Model> make_llama4(ModelConfig& c);   // likewise
std::unique_ptr<Model> make_qwen3_5(ModelConfig& c);  // likewise
std::unique_ptr<Model> make_vit(ModelConfig& c);
std::unique_ptr<Model> make_deit(ModelConfig& c);
std::unique_ptr<Model> make_dinov2(ModelConfig& c);
std::unique_ptr<Model> make_vision_encoder_decoder(ModelConfig& c);
std::unique_ptr<Model> make_dual_encoder(ModelConfig& c);  // clip and siglip, and each of their towers
// Whether the config is that of transformers' class PREFIX + ending.
bool has_class(ModelConfig& c, const char* ending);
// The configs of the parts of a model made from model.arch (ArchNeeds).
void add_encoder_and_decoder(ConfigTree& config);
void add_towers(ConfigTree& config);
std::unique_ptr<Model> make_cnn(ModelConfig& c);
std::unique_ptr<Model> make_mistral3(ModelConfig& c);
std::unique_ptr<Model> make_mlp(ModelConfig& c);
std::unique_ptr<Model> make_mlp_mixer(ModelConfig& c);
std::unique_ptr<Model> make_performer(ModelConfig& c);
std::unique_ptr<Model> make_dit(ModelConfig& c);

}  // namespace redco
