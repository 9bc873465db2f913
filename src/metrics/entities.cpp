#include "metrics/entities.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

namespace {

struct Tag {
  char prefix = 'O';
  std::string type;
  explicit Tag(const std::string& tag) {
    if (tag.empty()) return;
    prefix = tag[0];
    // "B-PER"; a tag without a prefix is seqeval's "_".
    const auto dash = tag.find('-');
    type = dash == std::string::npos ? "_" : tag.substr(dash + 1);
    if (tag.size() > 1 && tag[1] != '-' && tag != "O") type = tag, prefix = 'I';  // IO: "PER"
    if (prefix == 'L') prefix = 'E';                                              // BILOU
    if (prefix == 'U') prefix = 'S';
  }
};

// As seqeval's end_of_chunk() and start_of_chunk().
bool ends(const Tag& last, const Tag& now) {
  if (last.prefix == 'O') return false;
  if (last.prefix == 'E' || last.prefix == 'S') return true;
  return now.prefix == 'B' || now.prefix == 'S' || now.prefix == 'O' || last.type != now.type;
}
bool begins(const Tag& last, const Tag& now) {
  if (now.prefix == 'O') return false;
  if (now.prefix == 'B' || now.prefix == 'S') return true;
  return last.prefix == 'E' || last.prefix == 'S' || last.prefix == 'O' || last.type != now.type;
}

}  // namespace

std::vector<Entity> entities_of(std::span<const std::string> tags) {
  std::vector<Entity> out;
  Tag last("O");
  i64 begin = 0;
  for (i64 i = 0; i <= static_cast<i64>(tags.size()); ++i) {
    const Tag now(i < static_cast<i64>(tags.size()) ? tags[static_cast<std::size_t>(i)] : "O");
    if (ends(last, now)) out.push_back({last.type, begin, i});
    if (begins(last, now)) begin = i;
    last = now;
  }
  return out;
}

void EntityCounts::add(std::span<const std::string> predicted, std::span<const std::string> truth) {
  REDCO_CHECK(predicted.size() == truth.size(), "{} predicted tags, {} true ones", predicted.size(),
              truth.size());
  const std::vector<Entity> p = entities_of(predicted), t = entities_of(truth);
  predicted_ += static_cast<i64>(p.size());
  truth_ += static_cast<i64>(t.size());
  for (const Entity& e : p) right_ += std::ranges::find(t, e) != t.end();
  tags_ += static_cast<i64>(truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) right_tags_ += predicted[i] == truth[i];
}

EntityScores EntityCounts::scores() const {
  const auto share = [](i64 part, i64 all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
  };
  EntityScores s;
  s.precision = share(right_, predicted_);
  s.recall = share(right_, truth_);
  s.f1 = s.precision + s.recall > 0 ? 2 * s.precision * s.recall / (s.precision + s.recall) : 0;
  s.accuracy = share(right_tags_, tags_);
  return s;
}

}  // namespace redco
