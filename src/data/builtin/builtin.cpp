#include "data/builtin/builtin.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/builtin/builtin_labelled.h"
#include "data/builtin/builtin_sentences.h"
#include "data/builtin/drawn_images.h"
#include "data/builtin/made_sounds.h"
#include "data/index/cached_index.h"
#include "data/index/epoch_order.h"

namespace redco {

namespace {

constexpr std::string_view kPrefix = "builtin:";
constexpr i64 kTrain = 800, kEval = 80;

const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = {
      "stone", "river", "lamp",  "green", "paper", "cloud", "bread", "train", "table", "north",
      "ship",  "glass", "tiger", "plant", "music", "salt",  "brick", "chair", "sugar", "light"};
  return kWords;
}

std::string chat_line(i64 id, const std::string& question, const std::string& answer) {
  return fmt::format(
      R"({{"id": {}, "messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
      "\n",
      id, question, answer);
}

// Question `k` of 880: four kinds in turn, all different.
std::string question(i64 k, i64 id) {
  const i64 n = k / 4;  // 0..219
  const i64 a = n / 15, b = n % 15;
  const std::string& word = words()[static_cast<std::size_t>(n % 20)];
  const std::string& other = words()[static_cast<std::size_t>((n / 20 + 1 + n) % 20)];
  switch (k % 4) {
    case 0:
      return chat_line(id, fmt::format("What is {} + {}?", a, b), fmt::format("{}", a + b));
    case 1:
      return chat_line(id, fmt::format("What is {} - {}?", a + b, b), fmt::format("{}", a));
    case 2:
      return chat_line(
          id, fmt::format("Say {} {} backwards.", word, other),
          std::string(other.rbegin(), other.rend()) + " " + std::string(word.rbegin(), word.rend()));
    default:
      return chat_line(id, fmt::format("How many letters have {} and {}?", word, other),
                       fmt::format("{}", word.size() + other.size()));
  }
}

std::string chat_lines(bool evaluation) {
  const EpochOrder order(kTrain + kEval, 1, 0);
  std::string out;
  const i64 begin = evaluation ? kTrain : 0, end = evaluation ? kTrain + kEval : kTrain;
  for (i64 i = begin; i < end; ++i) out += question(order.at(i), i - begin);
  return out;
}

// Different strings of 3 to 6 letters out of 12, and what `change` makes of them.
std::string string_lines(bool evaluation, void (*change)(std::string&)) {
  constexpr std::size_t kTrainStrings = 4000, kEvalStrings = 200;
  std::mt19937_64 random(1);  // the C++ standard fixes its numbers
  std::set<std::string> seen;
  std::string out;
  while (seen.size() < kTrainStrings + kEvalStrings) {
    std::string source(3 + random() % 4, ' ');
    for (char& c : source) c = static_cast<char>('a' + random() % 12);
    if (!seen.insert(source).second || (seen.size() > kTrainStrings) != evaluation) continue;
    std::string target = source;
    change(target);
    out += fmt::format(R"({{"source": "{}", "target": "{}"}})"
                       "\n",
                       source, target);
  }
  return out;
}
std::string copies(bool evaluation) {
  return string_lines(evaluation, [](std::string&) {});
}
std::string reversed(bool evaluation) {
  return string_lines(evaluation, [](std::string& s) { std::reverse(s.begin(), s.end()); });
}
std::string sorted(bool evaluation) {
  return string_lines(evaluation, [](std::string& s) { std::sort(s.begin(), s.end()); });
}

// Texts of 64 letters out of 8. Two letters can follow each letter, one with probability 3/4: 0.5623 nats.
std::string markov_lines(bool evaluation) {
  constexpr int kLetters = 64;
  const int n = evaluation ? 200 : 2000;
  std::mt19937_64 random(evaluation ? 2 : 1);
  std::string out;
  for (int i = 0; i < n; ++i) {
    unsigned at = static_cast<unsigned>(random() % 8);
    std::string text;
    for (int k = 0; k < kLetters; ++k) {
      text += static_cast<char>('a' + at);
      at = (3 * at + (random() % 4 == 0 ? 4 : 1)) % 8;
    }
    out += fmt::format(R"({{"text": "{}"}})"
                       "\n",
                       text);
  }
  return out;
}

// Pairs of answers: two words in alphabetical order are chosen, the same words in the other order rejected.
// The evaluation has pairs of words that the training lacks.
std::string preference_lines(bool evaluation) {
  const std::vector<std::string>& all = words();
  std::string out;
  int k = 0;
  for (const char* prompt : {"Two words: ", "Words in order: ", "Say two words. ", "List: "})
    for (std::size_t a = 0; a < all.size(); ++a)
      for (std::size_t b = 0; b < all.size(); ++b)
        if (all[a] < all[b] && ((7 * a + 3 * b) % 10 == 0) == evaluation)
          out += fmt::format(R"({{"id": {}, "prompt": "{}", "chosen": "{} {}", "rejected": "{} {}"}})"
                             "\n",
                             k++, prompt, all[a], all[b], all[b], all[a]);
  return out;
}

// The same pairs as single answers with a label, good and bad in turn.
std::string judged_lines(bool evaluation) {
  std::string out;
  std::istringstream pairs(preference_lines(evaluation));
  bool good = true;
  for (std::string line; std::getline(pairs, line); good = !good) {
    const auto j = nlohmann::json::parse(line);
    out += nlohmann::ordered_json{{"id", j["id"]},
                                  {"prompt", j["prompt"]},
                                  {"completion", j[good ? "chosen" : "rejected"]},
                                  {"label", good}}
               .dump() +
           "\n";
  }
  return out;
}

// Sums of two numbers below 30, all different; the evaluation has 80 that the training lacks.
std::string arithmetic_lines(bool evaluation) {
  constexpr i64 kNumbers = 30, kSums = kNumbers * kNumbers;
  const EpochOrder order(kSums, 2, 0);
  std::string out;
  for (i64 i = evaluation ? kSums - kEval : 0; i < (evaluation ? kSums : kSums - kEval); ++i) {
    const i64 k = order.at(i), a = k / kNumbers, b = k % kNumbers;
    out += fmt::format(R"({{"id": {}, "prompt": "{}+{}=", "completion": "{}"}})"
                       "\n",
                       k, a, b, a + b);
  }
  return out;
}

// Names of drawn images, with captions or labels.
std::string image_lines(bool evaluation, i64 train, i64 eval, const char* kind, const char* key,
                        std::string (*said)(i64)) {
  std::string out;
  const i64 begin = evaluation ? train : 0, end = evaluation ? train + eval : train;
  for (i64 k = begin; k < end; ++k)
    out += fmt::format(R"({{"image": "drawn:{}/{}", "{}": "{}"}})"
                       "\n",
                       kind, k, key, said(k));
  return out;
}
std::string shapes(bool evaluation) {
  return image_lines(evaluation, 4000, 200, "shapes", "caption", shapes_caption);
}
std::string glyphs(bool evaluation) {
  return image_lines(evaluation, 2000, 400, "glyphs", "label", glyph_label);
}

// Names of made recordings, with their texts.
std::string tones(bool evaluation) {
  constexpr i64 train = 2000, eval = 200;
  std::string out;
  for (i64 k = evaluation ? train : 0; k < (evaluation ? train + eval : train); ++k)
    out += fmt::format(R"({{"audio": "sounded:digits/{}", "text": "{}"}})"
                       "\n",
                       k, sounded_digits(k));
  return out;
}

struct Builtin {
  const char* name;
  std::string (*lines)(bool evaluation);  // JSONL
};
constexpr Builtin kBuiltins[] = {{"chat", chat_lines},
                                 {"markov", markov_lines},
                                 {"copy", copies},
                                 {"reverse", reversed},
                                 {"sort", sorted},
                                 {"shapes", shapes},
                                 {"glyphs", glyphs},
                                 {"tones", tones},
                                 {"reviews", review_lines},
                                 {"statements", statement_lines},
                                 {"shopping", shopping_lines},
                                 {"ages", age_lines},
                                 {"function", function_lines},
                                 {"paraphrases", paraphrase_lines},
                                 {"similarity", similarity_lines},
                                 {"entities", entity_lines},
                                 {"questions", question_lines},
                                 {"choices", choice_lines},
                                 {"topics", topic_lines},
                                 {"preferences", preference_lines},
                                 {"judged", judged_lines},
                                 {"arithmetic", arithmetic_lines}};

}  // namespace

bool is_builtin(const std::string& path) { return path.starts_with(kPrefix); }

std::vector<std::string> builtin_names() {
  std::vector<std::string> out;
  for (const Builtin& b : kBuiltins) out.push_back(std::string(kPrefix) + b.name);
  return out;
}

namespace {

// Of a path of a built-in.
const Builtin& builtin_of(const std::string& path) {
  const auto* b = std::find_if(std::begin(kBuiltins), std::end(kBuiltins),
                               [&](const Builtin& one) { return path.substr(kPrefix.size()) == one.name; });
  if (b == std::end(kBuiltins))
    throw UsageError("[data] {} does not exist. Built-in data sets: {}", excerpt(path),
                     fmt::join(builtin_names(), ", "));
  return *b;
}

}  // namespace

std::vector<std::string> data_file_names(const std::vector<std::string>& paths, bool evaluation,
                                         const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& p : paths)
    out.push_back(!is_builtin(p) ? p
                                 : join_path(folder, fmt::format("builtin-{}{}.jsonl", builtin_of(p).name,
                                                                 evaluation ? "-eval" : "")));
  return out;
}

std::vector<std::string> data_files(const std::vector<std::string>& paths, bool evaluation,
                                    const std::string& folder) {
  std::vector<std::string> out = data_file_names(paths, evaluation, folder);
  for (std::size_t k = 0; k < paths.size(); ++k) {
    if (!is_builtin(paths[k])) continue;
    const std::string text = builtin_of(paths[k]).lines(evaluation);
    if (exists(out[k]) && file_size(out[k]) == static_cast<i64>(text.size()) &&
        read_file(out[k], i64{1} << 20) == text)
      continue;
    prepare_cache(folder, out[k]);
    write_file_durable(out[k], text);
  }
  return out;
}

const std::string& builtin_chat_template() {
  static const std::string kTemplate =
      "{% for message in messages %}\n"
      "{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token }}\n"
      "{% endfor %}\n"
      "{% if add_generation_prompt %}\n"
      "{{ '<|assistant|>' }}\n"
      "{% endif %}\n";
  return kTemplate;
}

}  // namespace redco
