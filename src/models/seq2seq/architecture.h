// The switches of the encoder-decoder model of BART's descendants and Whisper (seq2seq.h). A family is a
// function that reads a config into this table.
#pragma once

#include <string>

#include "models/model.h"
#include "models/norms.h"

namespace redco {

enum class SourcePositions : std::uint8_t {
  learned,    // rows of a table from Seq2SeqArchitecture::first_row on
  sinusoids,  // sines in the first half of the dims, cosines in the second (Vaswani et al. 2017)
  // The same with frequencies between 1 and 1 / 10000 (tensor2tensor), counted from padding_row + 1; padding
  // tokens have row padding_row, of zeros.
  counted_sinusoids,
  // The encoder's from 0 on in a table of these sinusoids, which files hold and training does not change; the
  // decoder's are learned rows from 0 on.
  stored_sinusoids,
};

struct StackSettings {
  std::string name;  // "encoder" or "decoder"
  bool decoder = false;
  i64 layers = 0, inner = 0;
  HeadGeometry heads{};
  double layer_dropout = 0;  // rate at which a training pass skips a layer (Fan et al. 2020)
};

struct Seq2SeqArchitecture {
  std::string family;
  i64 vocab_size = 0, max_length = 0, width = 0;
  StackSettings encoder{"encoder", false}, decoder{"decoder", true};
  std::string activation = "gelu";
  double dropout = 0, attention_dropout = 0, activation_dropout = 0, embedding_scale = 1, std = 0.02;
  bool tied = true;
  i32 start_token = -1, padding = -1;
  // The decoder's input begins with the label's last token (mBART: the language), not with start_token.
  bool rotated_labels = false;
  SourcePositions positions = SourcePositions::learned;
  i64 first_row = 2;            // of learned positions; the table's rows before it are not used
  bool pre_norm = false;        // norms before each part instead of after it, and one after the last layer
  bool embedding_norm = false;  // a norm after the embedding
  bool norms_tokens = false;    // the decoder's is before the positions are added
  bool logits_bias = true;      // a buffer that is added to the logits
  bool key_bias = true;         // of the projections of keys
  // > 0: in place of the logits, a head scores this many classes. It reads the decoder's state of the text's
  // last end token; the decoder reads the text too.
  i64 labels = 0;
  std::string problem_type{};
  i32 end_token = -1;
  double head_dropout = 0;
  // The encoder's input is a recording, which two convolutions over time read, with half as many positions.
  // Then the decoder alone has an embedding of tokens. bands 0: the input is text.
  AudioShape audio{};
};

}  // namespace redco
