// Decoders: tokens to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace redco {

// Maps the texts of tokens to a list of strings, which joined are the decoded text. Immutable and
// thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
};

// Makes the `decoder` of a tokenizer.json. All types of Hugging Face's tokenizers 0.23 are supported:
// ByteLevel, WordPiece, Metaspace, BPEDecoder, CTC, Replace, ByteFallback, Fuse, Strip and Sequence. Anything
// else is a ContentsError. nullptr for a JSON null: tokens are then joined with spaces.
std::unique_ptr<Decoder> make_decoder(const nlohmann::json& value, const std::string& where);

}  // namespace redco
