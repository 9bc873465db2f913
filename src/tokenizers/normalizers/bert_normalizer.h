// BERT's normalizer. Each step is optional: remove control characters and replace white space by spaces, put
// spaces around Chinese characters, remove accents, convert to lower case.
#pragma once

#include <string>
#include <string_view>

#include "tokenizers/normalizers/normalizers.h"

namespace redco {

class BertNormalizer : public Normalizer {
 public:
  BertNormalizer(bool clean_text, bool handle_chinese_chars, bool strip_accents, bool lowercase)
      : clean_(clean_text), chinese_(handle_chinese_chars), accents_(strip_accents), lower_(lowercase) {}
  std::string normalize(std::string_view text) const override;
  bool unchanged(std::string_view text) const override;
  bool keeps_front(std::string_view text) const override;
  unsigned cuts() const override { return kCutBoth; }

 private:
  bool clean_, chinese_, accents_, lower_;
};

}  // namespace redco
