// The text model in a folder of Gemma 3 with images (4B and larger): the part text_config of the config, and
// the tensors of the language model. The image tower is not read. Saved models are those of gemma3_text.
#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/families.h"

namespace redco {

namespace {

DecoderArchitecture read_gemma3_part(ModelConfig& c) {
  // Configs of parts lack the keys whose values are transformers' defaults.
  DecoderArchitecture s =
      read_gemma_with(c, {.vocab_size = 262208, .width = 2304, .inner = 9216, .layers = 26, .heads = 8});
  s.names.part = "language_model.";
  s.names.other_parts = {"vision_tower.", "multi_modal_projector."};
  return s;
}

}  // namespace

std::unique_ptr<Model> make_gemma3(ModelConfig& c) {
  ModelConfig text = text_part(c, "gemma3_text",
                               {"mm_tokens_per_image", "image_token_index", "boi_token_index", "boi_token_id",
                                "eoi_token_index", "eoi_token_id"});
  return make_decoder_model(text, read_gemma3_part, "Gemma3ForCausalLM");
}

}  // namespace redco
