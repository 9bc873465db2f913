// ROUGE (Lin 2004) as rouge_score 0.1.2 computes it: words are runs of a-z and 0-9 of the lower-cased text.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct PrecisionRecall {
  double precision = 0, recall = 0, f1 = 0;
};

struct Rouge {
  PrecisionRecall rouge1, rouge2, rougeL;
  PrecisionRecall rougeLsum;  // union of longest common subsequences over sentences, which \n separates
};

// use_stemmer: words of more than three letters are stemmed (porter_stem), as summarization papers do.
Rouge rouge(const std::string& prediction, const std::string& reference, bool use_stemmer);

// The reference of the largest F counts, for each of the four: rouge_score's score_multi.
Rouge rouge(const std::string& prediction, const std::vector<std::string>& references, bool use_stemmer);

}  // namespace redco
