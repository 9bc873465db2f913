// Text files as a stream of blocks that can be tokenized separately.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/text/token_index.h"

namespace redco {

// Calls block(text, ends_document) for each block of one file, in order. Blocks are whole characters and
// valid UTF-8 unless the tokenizer takes any bytes. A byte order mark is dropped, \r\n is read as \n.
// text(part) gets the whole text of the file, part by part; position(stored bytes read) is called repeatedly.
struct BlockSinks {
  std::function<void(std::string_view text, bool ends_document)> block;
  std::function<void(std::string_view part)> text;
  std::function<void(i64 stored)> position;
};
void read_blocks(const std::string& path, Documents documents, const Tokenizer& tokenizer,
                 const BlockSinks& sinks);

}  // namespace redco
