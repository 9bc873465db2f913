// Small generated data, so that every shipped job runs as it is.
#pragma once

#include <string>
#include <vector>

namespace redco {

// "builtin:NAME"
bool is_builtin(const std::string& path);
std::vector<std::string> builtin_names();

// The paths with each built-in replaced by a file of `folder` that holds its lines; what is evaluated on is
// never trained on. UsageError for a name that there isn't.
//   builtin:chat     800 chats for training, 80 for evaluation (sums, differences, words said backwards,
//                    letters counted)
//   builtin:markov   2000 and 200 texts of a Markov chain: what the best model loses by is known
//   builtin:copy, builtin:reverse, builtin:sort
//                    4000 and 200 pairs of a string of letters and the same, or backwards, or in order
//   builtin:shapes   4000 and 200 drawn images with captions, which follow from the image
//   builtin:glyphs   2000 and 400 drawn images of ten signs, with labels
//   builtin:reviews, builtin:statements
//                    2000 and 200 texts, and pairs of texts, with labels
//   builtin:shopping, builtin:ages, builtin:function
//                    2000 and 200 texts, pairs of texts and vectors with values (data/builtin_labelled.h)
std::vector<std::string> data_files(const std::vector<std::string>& paths, bool evaluation,
                                    const std::string& folder);

// The template that data.chat_template=builtin:chat stands for: each turn is <|role|>, a line break, the text
// and the tokenizer's end token.
const std::string& builtin_chat_template();

}  // namespace redco
