#include "data/builtin/builtin_sentences.h"

#include <fmt/format.h>

#include <array>
#include <random>
#include <set>

#include "base/types.h"

namespace redco {

namespace {

constexpr std::size_t kTrainSentences = 2000, kEvalSentences = 200;
constexpr std::array kOwners = {"anna", "ben", "carl", "dora", "emil", "fay", "gus", "hana"};
constexpr std::array kOwned = {"kite", "hat", "car", "boat", "bike", "cup", "lamp", "book"};
constexpr std::array kPaints = {"red", "blue", "green", "black", "white"};
constexpr std::array kWhere = {"at home",    "at work",  "in town", "out there", "over here",
                               "by the sea", "upstairs", "for now", "near me",   "after all"};

// Who has what, of which colour, and where.
struct Facts {
  std::array<u64, 4> of;
  static constexpr std::array<u64, 4> kSizes = {kOwners.size(), kOwned.size(), kPaints.size(), kWhere.size()};
  explicit Facts(std::mt19937_64& random) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i] = random() % kSizes[i];
  }
  void change(std::mt19937_64& random, std::size_t i) {
    of[i] = (of[i] + 1 + random() % (kSizes[i] - 1)) % kSizes[i];
  }
  std::string has() const {
    return fmt::format("{} has a {} {} {}", kOwners[of[0]], kPaints[of[2]], kOwned[of[1]], kWhere[of[3]]);
  }
  std::string is() const {
    return fmt::format("{} the {} of {} is {}", kWhere[of[3]], kOwned[of[1]], kOwners[of[0]], kPaints[of[2]]);
  }
};

// Different lines: the first for training, the following for evaluation.
template <class Make>
std::string sentence_lines(bool evaluation, Make make) {
  std::mt19937_64 random(1);  // the C++ standard fixes its numbers
  std::set<std::string> seen;
  std::string out;
  while (seen.size() < kTrainSentences + kEvalSentences) {
    const auto [key, line] = make(random);
    if (seen.insert(key).second && (seen.size() > kTrainSentences) == evaluation) out += line + "\n";
  }
  return out;
}

}  // namespace

std::string paraphrase_lines(bool evaluation) {
  return sentence_lines(evaluation, [](std::mt19937_64& random) {
    const Facts facts(random);
    Facts other = facts;
    other.change(random, random() % 4);
    return std::pair(facts.has(), fmt::format(R"({{"anchor": "{}", "positive": "{}", "negative": "{}"}})",
                                              facts.has(), facts.is(), other.is()));
  });
}

std::string similarity_lines(bool evaluation) {
  return sentence_lines(evaluation, [](std::mt19937_64& random) {
    const Facts facts(random);
    Facts other = facts;
    const u64 equal = random() % 5;
    std::array<std::size_t, 4> order = {0, 1, 2, 3};
    for (std::size_t i = 0; i < 3; ++i) std::swap(order[i], order[i + random() % (4 - i)]);
    for (u64 k = equal; k < 4; ++k) other.change(random, order[k]);
    const std::string line = fmt::format(R"({{"sentence1": "{}", "sentence2": "{}", "score": {}}})",
                                         facts.has(), other.is(), static_cast<double>(equal) / 4);
    return std::pair(line, line);
  });
}

}  // namespace redco
