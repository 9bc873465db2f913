// Porter's stemmer (M. Porter, An algorithm for suffix stripping, 1980) with NLTK's extensions, which
// rouge_score uses: a table of irregular words, and changed rules for short words and a few suffixes.
#pragma once

#include <string>

namespace redco {

// The stem of a lower-case word. Words of at most two letters stay unchanged.
std::string porter_stem(const std::string& word);

}  // namespace redco
