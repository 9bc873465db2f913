#include "data/text/field_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/words.h"

namespace redco {

namespace {

bool there(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::string first_of(const std::vector<std::string>& keys, const std::vector<const char*>& known) {
  for (const char* k : known)
    if (there(keys, k)) return k;
  return "";
}

// The first pair of keys that both exist.
std::pair<std::string, std::string> pair_of(const std::vector<std::string>& keys,
                                            const std::vector<std::pair<const char*, const char*>>& known) {
  for (const auto& [a, b] : known)
    if (there(keys, a) && there(keys, b)) return {a, b};
  return {};
}

std::string suggestion(const std::vector<std::string>& keys, const std::vector<std::string>& fields) {
  return fmt::format("{}. data.fields='{{{}}}' reads records of this form", listed_keys(keys),
                     fmt::join(fields, ", "));
}

}  // namespace

std::string listed_keys(const std::vector<std::string>& keys) {
  if (keys.empty()) return "its keys are none";
  const std::vector<std::string> some(keys.begin(),
                                      keys.begin() + std::min<std::ptrdiff_t>(8, std::ssize(keys)));
  return "its keys are " +
         excerpt(fmt::format("{}{}", fmt::join(some, ", "), keys.size() > 8 ? ", ..." : ""));
}

std::string keys_hint(const std::vector<std::string>& keys) {
  return listed_keys(keys) + (keys.empty() ? "" : " (data.fields renames them)");
}

std::string labelled_fields_hint(const std::vector<std::string>& keys, const std::string& text,
                                 const std::vector<std::string>& label) {
  std::vector<std::string> fields;
  if (!there(keys, text)) {
    auto [first, second] = pair_of(keys, {{"premise", "hypothesis"},
                                          {"sentence1", "sentence2"},
                                          {"question1", "question2"},
                                          {"question", "sentence"},
                                          {"text1", "text2"}});
    if (first.empty())
      first = first_of(keys, {"sentence", "review", "content", "comment", "comment_text", "tweet",
                              "utterance", "message", "body", "description", "title", "document"});
    if (first.empty()) return keys_hint(keys);
    fields.push_back("text: " + first);
    if (!second.empty()) fields.push_back("text_pair: " + second);
  }
  if (label.size() == 1 && !there(keys, label[0])) {
    const std::string found =
        first_of(keys, {"label", "labels", "sentiment", "class", "category", "target", "stars", "rating",
                        "score", "emotion", "intent", "topic", "gold_label", "is_duplicate", "polarity"});
    if (found.empty()) return keys_hint(keys);
    fields.push_back("label: " + found);
  }
  return fields.empty() ? keys_hint(keys) : suggestion(keys, fields);
}

std::string lm_fields_hint(const std::vector<std::string>& keys, bool chat) {
  const auto [asked, answer] = pair_of(keys, {{"question", "answer"},
                                              {"question", "response"},
                                              {"query", "response"},
                                              {"query", "answer"},
                                              {"prompt", "response"},
                                              {"inputs", "targets"},
                                              {"input", "output"},
                                              {"source", "target"},
                                              {"problem", "solution"},
                                              {"article", "highlights"},
                                              {"dialogue", "summary"},
                                              {"document", "summary"},
                                              {"text", "summary"}});
  if (!asked.empty())
    return suggestion(
        keys, {(chat ? "instruction: " : "prompt: ") + asked, (chat ? "output: " : "completion: ") + answer});
  const std::string text = first_of(keys, {"content", "document", "article", "body", "raw_content", "code"});
  return text.empty() ? keys_hint(keys) : suggestion(keys, {"text: " + text});
}

}  // namespace redco
