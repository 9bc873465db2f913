// An image encoder and a text decoder with cross-attention (Li et al. 2021): ViT and GPT-2.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/config_tree.h"
#include "models/decoder/decoder.h"
#include "models/decoder/families.h"
#include "models/families.h"
#include "models/vit.h"

namespace redco {

namespace {

class VisionEncoderDecoder : public Model {
 public:
  // `encoder`, `decoder`: the two parts of the config.
  VisionEncoderDecoder(ModelConfig& c, ModelConfig& encoder, ModelConfig& decoder)
      : encoder_(encoder, "encoder."), decoder_(read_gpt2_cross(decoder), "decoder.") {
    family_ = "vision-encoder-decoder";
    task_ = ModelTask::image_captioning;
    vocab_size_ = decoder_.architecture().vocab_size;
    hidden_size_ = decoder_.architecture().width;
    max_length_ = decoder_.architecture().max_length;
    image_shape_ = encoder_.image_shape();
    n_layers_ = decoder_.n_layers();
    decoder_start_token_id_ = c.token_or("decoder_start_token_id", -1, vocab_size_);
    pad_token_id_ = c.token_or("pad_token_id", -1, vocab_size_);
    const i64 pooled = encoder.integer_or("pooler_output_size", encoder_.width());
    encoder.inert({"pooler_act", "tie_word_embeddings"});
    c.expect("is_encoder_decoder", {"true"});
    c.inert({"encoder", "decoder",
             "tie_word_embeddings"});  // the decoder's config has its own tie_word_embeddings
    encoder.finish();
    decoder.finish();
    c.finish();

    SpecBuilder b(params_);
    encoder_.declare(b);
    // transformers' encoder has a pooler that the model does not use.
    b.idle_linear("encoder.pooler.dense", pooled, encoder_.width(), encoder_.init_std());
    decoder_.declare(b);
    projected_ = encoder_.width() != decoder_.architecture().width;
    if (projected_)
      b.linear("enc_to_dec_proj", decoder_.architecture().width, encoder_.width(), true, encoder_.init_std());
    config_json_ = c.dump();
  }

  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor x = encoder_.run(p, in.pixel_values, o);
    Scope s("memory");
    return projected_ ? dense(p, "enc_to_dec_proj", x, o) : x;
  }
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return decoder_.apply(p, in, o);
  }

  std::string canonical_name(const std::string& stored) const override {
    const std::string prefix = "decoder.";
    if (!stored.starts_with(prefix)) return stored;
    const std::string name = decoder_.canonical_name(stored.substr(prefix.size()));
    return name.empty() ? name : prefix + name;
  }

 private:
  VitEncoder encoder_;
  Decoder decoder_;
  bool projected_;
};

}  // namespace

// The vocabulary is the decoder's.
void add_encoder_and_decoder(ConfigTree& config) {
  nlohmann::ordered_json& j = config.json;
  j["encoder"] = {{"model_type", "vit"}};
  nlohmann::ordered_json& decoder =
      j["decoder"] = {{"model_type", "gpt2"}, {"is_decoder", true}, {"add_cross_attention", true}};
  for (const char* key : {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"})
    if (j.contains(key)) decoder[key] = j[key];
  j.erase("vocab_size");
  if (j.contains("bos_token_id")) j["decoder_start_token_id"] = j["bos_token_id"];
  j["is_encoder_decoder"] = true;
}

std::unique_ptr<Model> make_vision_encoder_decoder(ModelConfig& c) {
  ModelConfig encoder = c.part("encoder", "vit"), decoder = c.part("decoder", "gpt2");
  return std::make_unique<VisionEncoderDecoder>(c, encoder, decoder);
}

}  // namespace redco
