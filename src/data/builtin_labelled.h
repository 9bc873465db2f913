// Labelled data that follow from a rule, so that what is learnt of them can be right throughout. Lines of
// JSONL; those of an evaluation are no lines of the training.
#pragma once

#include <string>

namespace redco {

// 2000 and 200 sentences on a film, "label": positive or negative. Of two halves the one behind "but" counts,
// and "not" turns a word round.
std::string review_lines(bool evaluation);
// 2000 and 200 pairs, "anna has a red kite" and "the kite is blue", "label": true or false.
std::string statement_lines(bool evaluation);
// 2000 and 200 lists of goods, "label": how many pieces, in tens.
std::string shopping_lines(bool evaluation);
// 2000 and 200 pairs of ages, "label": how many decades the first is older.
std::string age_lines(bool evaluation);
// 2000 and 200 times 3 "features" in [-1, 1), "label": sin(3 a) + b c.
std::string function_lines(bool evaluation);

}  // namespace redco
