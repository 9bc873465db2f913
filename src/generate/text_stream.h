// Generated text as it grows: texts that end it, and pieces to show at once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// The text of generated ids; ill-formed or unfinished characters are U+FFFD.
using Decode = std::function<std::string(std::span<const i32>)>;

// Texts that end an answer, wherever they begin and end among its tokens. Const: several answers may share
// it.
class StopTexts {
 public:
  StopTexts(std::vector<std::string> texts, Decode decode);

  bool empty() const { return texts_.empty(); }
  // Whether the answer, which had no stop text before its last token, has one now.
  bool ends(std::span<const i32> new_ids) const;
  // Where in `text` the first stop text begins; npos: nowhere.
  std::size_t find(std::string_view text) const;
  // `text` up to the first stop text.
  std::string cut(std::string text) const;
  // How many bytes at the end of `text` may be the beginning of a stop text.
  std::size_t maybe(std::string_view text) const;

 private:
  std::vector<std::string> texts_;
  std::size_t longest_ = 0;
  Decode decode_;
};

// One answer's text in pieces that are never taken back. Together they are what decoding all ids gives, cut
// at the first stop text. Unfinished characters, and what may become a stop text, are held back.
class TextStream {
 public:
  TextStream(Decode decode, const StopTexts& stop) : decode_(std::move(decode)), stop_(stop) {}

  // The answer's new ids so far; `last`: there will be no more. -> what can be shown now.
  std::string push(std::span<const i32> new_ids, bool last);

 private:
  Decode decode_;
  const StopTexts& stop_;
  // The text of ids [from_, ...) is decoded each time; its first seen_ bytes are in pending_ or shown.
  std::size_t from_ = 0, seen_ = 0;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace redco
