// Streaming of generated text: stop texts, and pieces that can be printed immediately.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// Decodes generated ids; ill-formed or unfinished characters become U+FFFD.
using Decode = std::function<std::string(std::span<const i32>)>;

// Texts that end an answer, also if they begin or end inside a token. Several answers may share one object.
class StopTexts {
 public:
  StopTexts(std::vector<std::string> texts, Decode decode);

  bool empty() const { return texts_.empty(); }
  // Whether the answer, which had no stop text before its last token, has one now.
  bool ends(std::span<const i32> new_ids) const;
  // The position of the first stop text in `text`; npos if there is none.
  std::size_t find(std::string_view text) const;
  // `text` up to the first stop text.
  std::string cut(std::string text) const;
  // The number of bytes at the end of `text` that may begin a stop text.
  std::size_t maybe(std::string_view text) const;

 private:
  std::vector<std::string> texts_;
  std::size_t longest_ = 0;
  Decode decode_;
};

// One answer's text in pieces. Together the pieces are the decoded text of all ids, cut at the first stop
// text. Unfinished characters and text that may begin a stop text are held back.
class TextStream {
 public:
  TextStream(Decode decode, const StopTexts& stop) : decode_(std::move(decode)), stop_(stop) {}

  // The answer's new ids so far; `last`: the answer is complete. -> the text that can be printed now.
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
