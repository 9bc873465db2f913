// Text files as a stream of blocks that can be tokenized one by one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/token_index.h"

namespace redco {

// Calls block(text, ends_document) for each block of one file, in order. Blocks are whole characters and
// valid UTF-8 unless the tokenizer takes any bytes. raw(bytes) sees every unpacked byte once; position(stored
// bytes read) is called now and then.
struct BlockSinks {
  std::function<void(std::string_view text, bool ends_document)> block;
  std::function<void(std::string_view bytes)> raw;
  std::function<void(i64 stored)> position;
};
void read_blocks(const std::string& path, Documents documents, const Tokenizer& tokenizer,
                 const BlockSinks& sinks);

}  // namespace redco
