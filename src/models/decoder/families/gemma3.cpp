// The text model in a folder of Gemma 3 with images (4B and larger): the part text_config of the config, and
// the tensors of the language model. The image tower is not read. Saved models are those of gemma3_text.
#include "base/log_once.h"
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
  ModelConfig text = c.part("text_config", "gemma3_text");
  c.inert({"vision_config", "mm_tokens_per_image", "image_token_index", "image_token_id", "boi_token_index",
           "boi_token_id", "eoi_token_index", "eoi_token_id", "initializer_range", "tie_word_embeddings"});
  c.finish();
  log_once(LogLevel::info,
           "[model] " + c.source() +
               ": model_type gemma3 has images and texts; only its text model is read, and saved "
               "as gemma3_text");
  return make_decoder_model(text, read_gemma3_part, "Gemma3ForCausalLM");
}

}  // namespace redco
