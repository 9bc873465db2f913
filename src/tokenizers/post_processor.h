// The stage behind the model: special tokens around one sequence or two.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// Templates of what the model is shown. Const and thread-safe.
class PostProcessor {
 public:
  // One part of a template: the ids of special tokens, or (where there are none) sequence A or B.
  struct Part {
    std::vector<i32> special;
    bool second = false;
    i32 type = 0;
  };

  // The `post_processor` of a tokenizer.json: ByteLevel (offsets only), TemplateProcessing,
  // RobertaProcessing, BertProcessing, a Sequence with at most one of the last three, null; anything else is
  // a ContentsError, also a special id outside 0..vocab_size.
  PostProcessor(const nlohmann::json* value, const std::string& where, i32 vocab_size);

  // How many special tokens come with one sequence or a pair.
  i64 n_special(bool pair) const;

  // Puts a (and b, where it is given) in their places. types may be null.
  void apply(const std::vector<i32>& a, const std::vector<i32>* b, bool add_special, std::vector<i32>& ids,
             std::vector<i32>* types) const;

  // Whether one sequence comes out as it is.
  bool plain() const { return single_.size() == 1; }

 private:
  bool read(const nlohmann::json& value, const std::string& where, i32 vocab_size);
  std::vector<Part> single_, pair_;
};

}  // namespace redco
