// sentencepiece's character map as Hugging Face applies it. A grapheme cluster of less than 6 bytes is
// replaced as a whole by the replacement of its shortest prefix with a rule. Larger clusters are mapped
// character by character.
#pragma once

#include <array>

#include "tokenizers/normalizers/charsmap.h"
#include "tokenizers/normalizers/normalizers.h"

namespace redco {

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map);
  std::string normalize(std::string_view text) const override;
  bool unchanged(std::string_view text) const override;
  unsigned cuts() const override { return cuts_; }

 private:
  bool append_rule(std::string_view part, std::string& out) const;

  Charsmap map_;
  std::array<bool, 128> plain_{};  // ASCII characters without a rule
  unsigned cuts_ = kNoCuts;
};

}  // namespace redco
