#include "models/decoder/decoder.h"

namespace redco {

namespace {

class DecoderModel : public Model {
 public:
  DecoderModel(ModelConfig& c, DecoderArchitecture architecture) : decoder_(std::move(architecture)) {
    const DecoderArchitecture& s = decoder_.architecture();
    family_ = s.family;
    vocab_size_ = s.vocab_size;
    hidden_size_ = s.embedding_width;
    max_length_ = s.max_length;
    n_layers_ = decoder_.n_layers();
    relative_positions_ = s.unlimited;
    SpecBuilder b(params_);
    decoder_.declare(b);
    config_json_ = c.dump();
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return decoder_.apply(p, in, o);
  }
  i64 window(i64 layer) const override { return decoder_.architecture().layers[layer].window; }
  std::string canonical_name(const std::string& stored) const override {
    return decoder_.canonical_name(stored);
  }
  std::vector<i32> positions(std::span<const i32> mask, bool generating) const override {
    return decoder_.architecture().position_offset > 0 ? decoder_.counted_positions(mask)
                                                       : Model::positions(mask, generating);
  }

 private:
  Decoder decoder_;
};

}  // namespace

std::unique_ptr<Model> make_decoder_model(ModelConfig& c, ReadDecoder read) {
  DecoderArchitecture architecture = read(c);
  c.finish();
  return std::make_unique<DecoderModel>(c, std::move(architecture));
}

}  // namespace redco
