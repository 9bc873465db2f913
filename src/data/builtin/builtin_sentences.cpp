#include "data/builtin/builtin_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <sstream>

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

std::string entity_lines(bool evaluation) {
  return sentence_lines(evaluation, [](std::mt19937_64& random) {
    const Facts facts(random);
    const bool turned = random() % 2 == 0;
    std::string tokens, tags;
    const auto add = [&](const std::string& word, const std::string& tag) {
      tokens += fmt::format("{}\"{}\"", tokens.empty() ? "" : ", ", word);
      tags += fmt::format("{}\"{}\"", tags.empty() ? "" : ", ", tag);
    };
    std::istringstream words(turned ? facts.is() : facts.has());
    const std::string place = kWhere[facts.of[3]], owner = kOwners[facts.of[0]], thing = kOwned[facts.of[1]];
    // The words of the place are consecutive.
    i64 left = turned ? std::ranges::count(place, ' ') + 1 : -1;
    const i64 total = std::ranges::count(turned ? facts.is() : facts.has(), ' ') + 1,
              of_place = std::ranges::count(place, ' ') + 1;
    i64 i = 0;
    for (std::string w; words >> w; ++i) {
      const bool in_place = turned ? i < left : i >= total - of_place;
      const bool first = turned ? i == 0 : i == total - of_place;
      add(w, in_place     ? (first ? "B-PLACE" : "I-PLACE")
             : w == owner ? "B-OWNER"
             : w == thing ? "B-THING"
                          : "O");
    }
    return std::pair(tokens, fmt::format(R"({{"tokens": [{}], "tags": [{}]}})", tokens, tags));
  });
}

std::string question_lines(bool evaluation) {
  return sentence_lines(evaluation, [](std::mt19937_64& random) {
    std::string context;
    std::array<u64, kOwners.size()> owners{};
    for (u64 i = 0; i < owners.size(); ++i) owners[i] = i;
    for (u64 i = 0; i < 4; ++i) std::swap(owners[i], owners[i + random() % (owners.size() - i)]);
    const u64 asked = random() % 4;
    std::string question, answer;
    std::size_t start = 0;
    for (u64 i = 0; i < 4; ++i) {
      Facts facts(random);
      facts.of[0] = owners[i];
      if (i > 0) context += " ";
      context += facts.has() + ".";
      if (i != asked) continue;
      answer = kWhere[facts.of[3]];
      start = context.size() - 1 - answer.size();
      question = fmt::format("where is the {} of {}?", kOwned[facts.of[1]], kOwners[facts.of[0]]);
    }
    const std::string line = fmt::format(
        R"({{"question": "{}", "context": "{}", "answers": {{"text": ["{}"], "answer_start": [{}]}}}})",
        question, context, answer, start);
    return std::pair(line, line);
  });
}

std::string choice_lines(bool evaluation) {
  return sentence_lines(evaluation, [](std::mt19937_64& random) {
    const Facts facts(random);
    const bool colour = random() % 2 == 0;
    const u64 right = colour ? facts.of[2] : facts.of[0];
    std::array<u64, 4> options{};
    const u64 label = random() % options.size();
    for (u64 i = 0; i < options.size(); ++i) {
      if (i == label) {
        options[i] = right;
        continue;
      }
      bool repeated = true;
      while (repeated) {
        options[i] = random() % (colour ? kPaints.size() : kOwners.size());
        repeated = options[i] == right;
        for (u64 k = 0; k < i; ++k) repeated = repeated || options[k] == options[i];
      }
    }
    std::string choices;
    for (const u64 o : options)
      choices += fmt::format("{}\"{}\"", choices.empty() ? "" : ", ", colour ? kPaints[o] : kOwners[o]);
    const std::string line =
        fmt::format(R"({{"context": "{}", "question": "{}", "choices": [{}], "label": {}}})", facts.has(),
                    colour ? fmt::format("which colour has the {}?", kOwned[facts.of[1]]) : "who has it?",
                    choices, label);
    return std::pair(line, line);
  });
}

std::string topic_lines(bool evaluation) {
  constexpr std::array kKinds = {"toy",     "clothes", "vehicle",   "vehicle",
                                 "vehicle", "dishes",  "furniture", "paper"};
  static_assert(kKinds.size() == kOwned.size());
  return sentence_lines(evaluation, [&](std::mt19937_64& random) {
    std::string text = fmt::format("{} has", kOwners[random() % kOwners.size()]);
    std::set<std::string> kinds;
    for (u64 i = 0, n = 1 + random() % 3; i < n; ++i) {
      const u64 thing = random() % kOwned.size();
      text +=
          fmt::format("{} a {} {}", i > 0 ? " and" : "", kPaints[random() % kPaints.size()], kOwned[thing]);
      kinds.insert(kKinds[thing]);
    }
    std::string labels;
    for (const std::string& k : kinds) labels += fmt::format("{}\"{}\"", labels.empty() ? "" : ", ", k);
    return std::pair(text, fmt::format(R"({{"text": "{}", "label": [{}]}})", text, labels));
  });
}

}  // namespace redco
