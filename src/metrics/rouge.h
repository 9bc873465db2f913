// ROUGE (Lin 2004), equal to rouge_score 0.1.2: words are runs of a-z and 0-9 in the lower-cased text.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct PrecisionRecall {
  double precision = 0, recall = 0, f1 = 0;
};

// Whether a text has words; without words all its scores are 0.
bool has_rouge_words(const std::string& text);

struct Rouge {
  PrecisionRecall rouge1, rouge2, rougeL;
  PrecisionRecall rougeLsum;  // union of longest common subsequences over sentences, separated by \n
};

// use_stemmer: stems words of more than three letters (porter_stem), as usual for summarization.
Rouge rouge(const std::string& prediction, const std::string& reference, bool use_stemmer);

// For each of the four scores the reference with the largest F counts (rouge_score's score_multi).
Rouge rouge(const std::string& prediction, const std::vector<std::string>& references, bool use_stemmer);

}  // namespace redco
