// GPT-2's decoder (Radford et al. 2019): alone, or with cross-attention to an encoder.
#pragma once

#include <string>

#include "models/model.h"
#include "models/spec_builder.h"

namespace redco {

class Gpt2Decoder {
 public:
  // Reads the decoder's keys of a config. `prefix` begins the parameters' names ("decoder."); cross: the
  // blocks have cross-attention to a memory of the decoder's width.
  explicit Gpt2Decoder(ModelConfig& c, std::string prefix = "", bool cross = false);
  void declare(SpecBuilder& b) const;
  // Logits [B, T, V].
  Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  // See Model::canonical_name(); `stored` has no prefix.
  static std::string canonical_name(const std::string& stored);

  i64 vocab_size() const { return vocab_size_; }
  i64 max_length() const { return max_length_; }
  i64 width() const { return width_; }
  i64 layers() const { return layers_; }

 private:
  std::string at(const std::string& rest) const { return prefix_ + rest; }
  std::string layer(i64 i) const;
  double scale_of(i64 i) const;
  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x) const;
  Tensor attend_to_memory(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                          const Tensor& x) const;

  std::string prefix_, activation_;
  bool cross_, scale_, scale_by_layer_, tied_;
  i64 vocab_size_, max_length_, width_, layers_, inner_;
  HeadGeometry heads_;
  double residual_dropout_, embedding_dropout_, attention_dropout_, eps_, std_;
};

}  // namespace redco
