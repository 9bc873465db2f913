// Generated sentences for pipeline embedding. Lines of JSONL; see builtin.h.
#pragma once

#include <string>

namespace redco {

// {"anchor", "positive", "negative"}: the positive says the same in other words, the negative differs in one.
std::string paraphrase_lines(bool evaluation);
// {"sentence1", "sentence2", "score"}: the share of equal facts.
std::string similarity_lines(bool evaluation);

}  // namespace redco
