// The stage after the model: adds special tokens around one sequence or a pair.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// One template for a single sequence and one for a pair. Immutable and thread-safe.
class PostProcessor {
 public:
  // One part of a template: the ids of a special token; if there are none, sequence A or B.
  struct Part {
    std::vector<i32> special;
    bool second = false;
    i32 type = 0;
  };

  // The `post_processor` of a tokenizer.json: ByteLevel (offsets only), TemplateProcessing,
  // RobertaProcessing, BertProcessing, a Sequence with at most one of the last three, or null. ContentsError
  // for anything else, and for a special token's id outside [0, vocab_size).
  PostProcessor(const nlohmann::json* value, const std::string& where, i32 vocab_size);

  // The number of special tokens around one sequence, or in a pair.
  i64 n_special(bool pair) const;

  // Fills the template with a, and with b if it is not null. types may be null.
  void apply(const std::vector<i32>& a, const std::vector<i32>* b, bool add_special, std::vector<i32>& ids,
             std::vector<i32>* types) const;

  // From now on, `id` after a sequence that ends with it is left out; -1: never.
  void end_once(i32 id) { end_once_ = id; }
  i32 end_once() const { return end_once_; }

  // Whether a single sequence is returned unchanged.
  bool plain() const { return single_.size() == 1; }

 private:
  bool read(const nlohmann::json& value, const std::string& where, i32 vocab_size);
  std::vector<Part> single_, pair_;
  i32 end_once_ = -1;
};

}  // namespace redco
