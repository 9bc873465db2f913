// One decoder for all families whose differences are switches (architecture.h): alone, or as a part of a
// model, with cross-attention.
#pragma once

#include <string>

#include "models/decoder/architecture.h"
#include "models/model.h"
#include "models/spec_builder.h"

namespace redco {

class Decoder {
 public:
  // outer: begins the names of all parameters ("decoder.").
  explicit Decoder(DecoderArchitecture architecture, std::string outer = "");
  const DecoderArchitecture& architecture() const { return arch_; }
  i64 n_layers() const { return static_cast<i64>(arch_.layers.size()); }

  void declare(SpecBuilder& b) const;
  // Logits [B, T, V].
  Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  // See Model::canonical_name(); `stored` without `outer`. A model without head is saved without the prefix.
  std::string canonical_name(const std::string& stored) const;
  // The tokens of the mask before each one; -1 for masked ones.
  std::vector<i32> counted_positions(std::span<const i32> mask) const;

 private:
  struct Branch {
    const char* site;  // of the dropout
    double dropout;
    const std::string &norm, &out_norm;
  };
  Branch attention_branch(i64 i) const {
    const DecoderNames& n = arch_.names;
    return {"attention_out", arch_.attention_out_dropout, attention_norm(i), n.attention_out_norm};
  }
  const std::string& attention_norm(i64 i) const {
    static const std::string kNone;
    return arch_.layers[i].attention_norm ? arch_.names.attention_norm : kNone;
  }
  std::string own_name(const std::string& stored) const;  // canonical_name() of a name without `part`
  Branch mlp_branch() const {
    return {"mlp_out", arch_.mlp_out_dropout, arch_.names.mlp_norm, arch_.names.mlp_out_norm};
  }
  std::string at(const std::string& rest) const { return outer_ + arch_.names.prefix + rest; }
  std::string layer(i64 i) const;
  std::string head() const { return outer_ + arch_.names.head; }

  // Declares a norm of the stream, if its name is not empty.
  void declare_norm(SpecBuilder& b, const std::string& layer, const std::string& name) const;
  void declare_mixer(SpecBuilder& b, i64 i) const;
  void declare_attention(SpecBuilder& b, i64 i) const;
  void declare_cross_attention(SpecBuilder& b, const std::string& layer) const;
  void declare_feed_forward(SpecBuilder& b, i64 i) const;
  void declare_mlp(SpecBuilder& b, const std::string& layer) const;
  void declare_head(SpecBuilder& b) const;

  Tensor embed(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  Tensor head_layer(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const;
  // The norm of this name, or x if the name is empty.
  Tensor norm(const ParamTree& p, const std::string& layer, const std::string& name, const Tensor& x,
              NormResult result = NormResult::computed) const;
  // The stream after a block, and if o has router_logits, those of its mixture.
  Tensors block_results(const ParamTree& p, const DecoderInputs& in, ApplyOptions o, i64 i,
                        const Tensor& x) const;
  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x) const;
  Tensor parallel_block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                        const Tensor& x) const;
  // The sum of the stream and a branch's output y; normed: the branch's input.
  Tensor add_branch(const ParamTree& p, const ApplyOptions& o, const std::string& layer, const Branch& branch,
                    const Tensor& x, const Tensor& normed, const Tensor& y) const;
  // [B, T, C] -> [B, T, C]
  Tensor attention(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                   const Tensor& x) const;
  // The layer's mixer: attention, or a recurrence.
  Tensor mixer(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x) const;
  // The factor of the queries, [B, T, 1, 1].
  Tensor query_growth(const DecoderInputs& in) const;
  Tensor attention_to_memory(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                             const Tensor& x) const;
  // The layer's MLP, mixture, or both.
  Tensor feed_forward(const ParamTree& p, i64 i, const Tensor& x, const ApplyOptions& o) const;
  Tensor mlp(const ParamTree& p, i64 i, const Tensor& x, const ApplyOptions& o) const;
  double score_scale(i64 i) const { return arch_.score_scale / arch_.layers[i].score_divisor; }

  DecoderArchitecture arch_;
  std::string outer_;
  std::shared_ptr<const std::vector<float>> slopes_;  // of ALiBi, one per head; null: none
  std::vector<float> sinusoids_;                      // [position_rows, C]; empty: none
};

// A decoder as a model; reads the architecture, and finishes the config. saved_as: the class in the config of
// saved models; "": as in the config.
using ReadDecoder = DecoderArchitecture (*)(ModelConfig& c);
std::unique_ptr<Model> make_decoder_model(ModelConfig& c, ReadDecoder read, const std::string& saved_as = "");
template <ReadDecoder read>
std::unique_ptr<Model> make_decoder(ModelConfig& c) {
  return make_decoder_model(c, read);
}

}  // namespace redco
