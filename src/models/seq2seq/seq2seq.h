// An encoder and a decoder with cross-attention, for BART (Lewis et al. 2020), Whisper (Radford et al. 2022)
// and all families whose differences are switches (architecture.h).
#pragma once

#include <memory>
#include <optional>

#include "models/model.h"
#include "models/seq2seq/architecture.h"

namespace redco {

// Reads the architecture, and finishes the config.
using ReadSeq2Seq = Seq2SeqArchitecture (*)(ModelConfig& c);
std::unique_ptr<Model> make_seq2seq_model(ModelConfig& c, ReadSeq2Seq read);
template <ReadSeq2Seq read>
std::unique_ptr<Model> make_seq2seq(ModelConfig& c) {
  return make_seq2seq_model(c, read);
}

// Defaults of a family's configuration class.
struct Seq2SeqDefaults {
  std::optional<i32> start_token{};
  i32 padding = 1;
  double attention_dropout = 0;
  bool scales_embedding = false;
  const char* activation = "gelu";
  double layer_dropout = 0;
  double dropout = 0.1;
};
// Keys that all these families share, under BART's names.
Seq2SeqArchitecture read_seq2seq_keys(ModelConfig& c, const Seq2SeqDefaults& d);

Seq2SeqArchitecture read_bart(ModelConfig& c);
Seq2SeqArchitecture read_blenderbot(ModelConfig& c);  // blenderbot, blenderbot-small
Seq2SeqArchitecture read_m2m_100(ModelConfig& c);
Seq2SeqArchitecture read_marian(ModelConfig& c);
Seq2SeqArchitecture read_mbart(ModelConfig& c);
Seq2SeqArchitecture read_pegasus(ModelConfig& c);
Seq2SeqArchitecture read_plbart(ModelConfig& c);
Seq2SeqArchitecture read_whisper(ModelConfig& c);

}  // namespace redco
