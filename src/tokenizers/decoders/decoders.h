// The way back: tokens to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace redco {

// Const and thread-safe. A decoder maps a list of strings to a list of strings; joined they are the text.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
};

// The `decoder` of a tokenizer.json, of every type of Hugging Face's tokenizers 0.23: ByteLevel, WordPiece,
// Metaspace, BPEDecoder, CTC, Replace, ByteFallback, Fuse, Strip and Sequence; anything else is a
// ContentsError. Null for a JSON null: tokens are joined with spaces then.
std::unique_ptr<Decoder> make_decoder(const nlohmann::json& value, const std::string& where);

}  // namespace redco
