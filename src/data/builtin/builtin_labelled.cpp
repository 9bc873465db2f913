#include "data/builtin/builtin_labelled.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <set>

#include "base/types.h"

namespace redco {

namespace {

constexpr std::size_t kTrainLines = 2000, kEvalLines = 200;

using Random = std::mt19937_64;  // the C++ standard fixes its numbers

template <std::size_t N>
const char* one_of(Random& random, const std::array<const char*, N>& words) {
  return words[random() % N];
}

// Different lines: the first for training, the following for evaluation.
template <class Make>
std::string different_lines(bool evaluation, Make make) {
  Random random(1);
  std::set<std::string> seen;
  std::string out;
  while (seen.size() < kTrainLines + kEvalLines) {
    const std::string line = make(random);
    if (seen.insert(line).second && (seen.size() > kTrainLines) == evaluation) out += line + "\n";
  }
  return out;
}

constexpr std::array kParts = {"plot", "acting", "music", "ending", "film", "cast", "story", "humour"};
constexpr std::array kGood = {"good", "great", "fine", "fresh", "funny", "clever"};
constexpr std::array kBad = {"bad", "dull", "weak", "stale", "silly", "boring"};
constexpr std::array kNames = {"anna", "ben", "carl", "dora", "emil", "fay", "gus", "hana"};
constexpr std::array kThings = {"kite", "hat", "car", "boat", "bike", "cup", "lamp", "book"};
constexpr std::array kThingColours = {"red", "blue", "green", "black"};
constexpr std::array kPlaces = {"at home",    "at work",  "in town", "out there",   "over here",
                                "by the sea", "upstairs", "for now", "and no more", "after all"};
constexpr std::array kNumbers = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
constexpr std::array kGoods = {"figs", "nuts", "eggs", "pears", "plums", "rolls"};

}  // namespace

std::string review_lines(bool evaluation) {
  return different_lines(evaluation, [](Random& random) {
    bool positive = false;
    const auto half = [&] {
      const bool good = random() % 2 == 0, turned = random() % 3 == 0;
      positive = good != turned;
      return fmt::format("the {} was {}{}", one_of(random, kParts), turned ? "not " : "",
                         good ? one_of(random, kGood) : one_of(random, kBad));
    };
    std::string text = half();
    if (random() % 2 == 0) text += " but " + half();
    return fmt::format(R"({{"text": "{}", "label": "{}"}})", text, positive ? "positive" : "negative");
  });
}

std::string statement_lines(bool evaluation) {
  return different_lines(evaluation, [](Random& random) {
    const char* name = one_of(random, kNames);
    const char* thing = one_of(random, kThings);
    const std::size_t colour = random() % kThingColours.size();
    const bool right = random() % 2 == 0;
    const std::size_t said =
        right ? colour : (colour + 1 + random() % (kThingColours.size() - 1)) % kThingColours.size();
    return fmt::format(R"({{"text": "{} has a {} {} {}", "text_pair": "the {} is {}", "label": "{}"}})", name,
                       kThingColours[colour], thing, one_of(random, kPlaces), thing, kThingColours[said],
                       right ? "true" : "false");
  });
}

std::string shopping_lines(bool evaluation) {
  return different_lines(evaluation, [](Random& random) {
    std::string text;
    i64 total = 0;
    for (u64 k = 0, n = 1 + random() % 3; k < n; ++k) {
      const std::size_t pieces = random() % kNumbers.size();
      total += static_cast<i64>(pieces) + 1;
      text += fmt::format("{}{} {}", k == 0 ? "" : " and ", kNumbers[pieces], one_of(random, kGoods));
    }
    return fmt::format(R"({{"text": "{}", "label": {}}})", text, static_cast<double>(total) / 10);
  });
}

std::string age_lines(bool evaluation) {
  return different_lines(evaluation, [](Random& random) {
    const u64 a = 10 + random() % 80, b = 10 + random() % 80;
    return fmt::format(R"({{"text": "{} is {}", "text_pair": "{} is {}", "label": {}}})",
                       one_of(random, kNames), a, one_of(random, kNames), b,
                       (static_cast<double>(a) - static_cast<double>(b)) / 10);
  });
}

std::string function_lines(bool evaluation) {
  return different_lines(evaluation, [](Random& random) {
    std::array<double, 3> x{};
    for (double& v : x) v = static_cast<double>(random() % 2000) / 1000 - 1;
    return fmt::format(R"({{"features": [{}, {}, {}], "label": {:.6f}}})", x[0], x[1], x[2],
                       std::sin(3 * x[0]) + x[1] * x[2]);
  });
}

}  // namespace redco
