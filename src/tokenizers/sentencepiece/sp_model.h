// The files of sentencepiece (tokenizer.model, spiece.model): a protocol buffer with the pieces and the
// normalizer's settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct SpModel {
  enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  // Whether a piece of kind k is text.
  static bool is_normal(Kind k) { return k == Kind::normal || k == Kind::user_defined || k == Kind::unused; }
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::normal;
  };
  enum class Algorithm { unigram = 1, bpe = 2, word = 3, character = 4 };

  std::vector<Piece> pieces;  // indexed by id
  // trainer_spec
  Algorithm algorithm = Algorithm::unigram;
  bool treat_whitespace_as_suffix = false, byte_fallback = false;
  i32 unk_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;
  std::string unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>";
  std::string unk_surface = " \xE2\x81\x87 ";  // decoded text of an unknown piece
  // normalizer_spec
  std::string charsmap;  // charsmap.h; empty: none
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

// ContentsError, starting with `source`, for bytes that are not such a message, and for models that
// sentencepiece rejects: no pieces, an empty piece, a repeated piece, not exactly one unknown piece, fewer
// than all 256 byte pieces. Also for a denormalizer and the algorithms word and char, which redco doesn't
// support.
SpModel parse_sp_model(std::string_view bytes, const std::string& source);

}  // namespace redco
