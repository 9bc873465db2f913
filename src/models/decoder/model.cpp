#include <nlohmann/json.hpp>

#include "models/decoder/decoder.h"
#include "models/positions.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

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
    pad_token_id_ = static_cast<i32>(s.padding_row);
    if (s.labels > 0) {
      task_ = ModelTask::sequence_classification;
      num_labels_ = s.labels;
      problem_type_ = c.text_or("problem_type", "");
    }
    SpecBuilder b(params_);
    decoder_.declare(b);
    config_json_ = c.dump();
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return decoder_.apply(p, in, o);
  }
  // Scores of the last token. Rows are padded on the right, so no token sees padding.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor positions = in.positions.defined()
                                 ? in.positions
                                 : row_positions(in.input_ids, decoder_.architecture().position_offset);
    const Tensor x = decoder_.apply(p, {in.input_ids, positions, {}}, o);  // [B, S, C]
    if (!o.head || decoder_.architecture().labels == 0) return x;
    const Scope scope("classifier");
    const Tensor last = last_tokens(in.key_mask.defined() ? in.key_mask : full_ids_like(in.input_ids, 1));
    const Tensor weights = to_float(last, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
    return dense(p, Decoder::kClassHead, sum(x * reshape(weights, {x.size(0), x.size(1), 1}), {1}), o);
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
  const auto names = nlohmann::json::parse(c.json("architectures"));
  const bool classifies = names.is_array() && !names.empty() && names[0].is_string() &&
                          names[0].get<std::string>().ends_with("ForSequenceClassification");
  if (classifies) architecture.labels = c.labels();
  if (classifies) c.inert({"problem_type"});
  c.finish();
  return std::make_unique<DecoderModel>(c, std::move(architecture));
}

}  // namespace redco
