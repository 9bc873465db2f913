// Labelled data whose labels follow from a rule, so that a model can reach 100 %. Lines of JSONL; evaluation
// lines differ from training lines.
#pragma once

#include <string>

namespace redco {

// 2000 and 200 sentences about a film, "label": positive or negative. In a sentence of two halves, the half
// after "but" decides; "not" negates the next word.
std::string review_lines(bool evaluation);
// 2000 and 200 pairs, "anna has a red kite" and "the kite is blue", "label": true or false.
std::string statement_lines(bool evaluation);
// 2000 and 200 lists of goods, "label": the number of pieces, in tens.
std::string shopping_lines(bool evaluation);
// 2000 and 200 pairs of ages, "label": by how many decades the first person is older.
std::string age_lines(bool evaluation);
// 2000 and 200 vectors of 3 "features" in [-1, 1), "label": sin(3 a) + b c.
std::string function_lines(bool evaluation);

}  // namespace redco
