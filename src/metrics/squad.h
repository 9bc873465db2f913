// Scores of answers to questions, as the evaluation scripts of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016,
// 2018).
#pragma once

#include <string>
#include <vector>

namespace redco {

// Lower case, without ASCII punctuation and the articles a, an and the; single blanks.
std::string normalized_answer(const std::string& text);

struct SquadScore {
  double exact = 0, f1 = 0;  // 0 to 1
};

// The best score against one of the answers; no answers: the right prediction is the empty text.
SquadScore squad_score(const std::string& prediction, const std::vector<std::string>& answers);

}  // namespace redco
