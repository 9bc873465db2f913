// One text encoder for all families whose differences are switches (architecture.h), with a masked-LM or a
// classification head, or without head: then the result is the last hidden state.
#pragma once

#include <memory>
#include <string>

#include "models/encoder/architecture.h"
#include "models/model.h"
#include "models/spec_builder.h"

namespace redco {

// Reads the architecture, and finishes the config.
using ReadEncoder = EncoderArchitecture (*)(ModelConfig& c);
std::unique_ptr<Model> make_encoder_model(ModelConfig& c, ReadEncoder read);
template <ReadEncoder read>
std::unique_ptr<Model> make_encoder(ModelConfig& c) {
  return make_encoder_model(c, read);
}

// An encoder that is a part of another model, which calls encode_outputs(). The config is the caller's to
// finish.
class TextEncoder : public Model {
 public:
  using Model::encode_outputs;
};
std::unique_ptr<TextEncoder> make_text_encoder(const ModelConfig& c, EncoderArchitecture architecture);

// The task of the first of `architectures`: PREFIXForMaskedLM (also if the config has none),
// PREFIXForSequenceClassification or PREFIXModel. Reads the labels too.
void read_encoder_task(ModelConfig& c, const std::string& prefix, EncoderArchitecture& s);
// `count` layers "NAME.0", "NAME.1", ...
void add_encoder_layers(EncoderArchitecture& s, const std::string& name, i64 count);

}  // namespace redco
