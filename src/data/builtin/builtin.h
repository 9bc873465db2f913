// Small generated data sets, so that the shipped jobs run without data files.
#pragma once

#include <string>
#include <vector>

namespace redco {

// "builtin:NAME"
bool is_builtin(const std::string& path);
std::vector<std::string> builtin_names();

// Replaces each built-in in `paths` by a file in `folder` with its lines. Evaluation lines are never training
// lines. UsageError for an unknown name.
//   builtin:chat     800 chats for training, 80 for evaluation (sums, differences, reversed words, counted
//                    letters)
//   builtin:preferences   about 680 and 80 prompts with a chosen and a rejected answer
//   builtin:judged        one answer of each of these pairs, with a label (good or bad)
//   builtin:arithmetic    820 and 80 sums of two numbers below 30
//   builtin:markov   2000 and 200 texts of a Markov chain; the best possible loss is known
//   builtin:copy, builtin:reverse, builtin:sort
//                    4000 and 200 pairs: a string of letters, and the same string copied, reversed or sorted
//   builtin:shapes   4000 and 200 drawn images with captions, which follow from the image
//   builtin:glyphs   2000 and 400 drawn images of ten signs, with labels
//   builtin:tones    2000 and 200 made recordings of digits (data/builtin/made_sounds.h)
//   builtin:reviews, builtin:statements
//                    2000 and 200 texts, and text pairs, with labels
//   builtin:shopping, builtin:ages, builtin:function
//                    2000 and 200 texts, text pairs and vectors with values (data/builtin/builtin_labelled.h)
//   builtin:paraphrases   2000 and 200 sentences, each with a paraphrase and a similar one of another meaning
//   builtin:similarity    2000 and 200 pairs of sentences with their similarity, from 0 to 1
//   builtin:entities, builtin:questions, builtin:choices, builtin:topics
//                    2000 and 200 examples about the same facts (data/builtin/builtin_sentences.h)
std::vector<std::string> data_files(const std::vector<std::string>& paths, bool evaluation,
                                    const std::string& folder);
// The paths that it returns; writes no file.
std::vector<std::string> data_file_names(const std::vector<std::string>& paths, bool evaluation,
                                         const std::string& folder);

// The template of data.chat_template=builtin:chat: each turn is <|role|>, a line break, the text and the
// tokenizer's end token.
const std::string& builtin_chat_template();

}  // namespace redco
