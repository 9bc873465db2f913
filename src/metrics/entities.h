// Entities in sequences of tags, and their scores: equal to seqeval.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct Entity {
  std::string type;
  i64 begin = 0, end = 0;  // words [begin, end)
  bool operator==(const Entity&) const = default;
  auto operator<=>(const Entity&) const = default;
};

// The entities of tags in the schemes IO, BIO, IOBES and BILOU: B-PER, I-PER, O, ... A tag I- that continues
// no entity of its type begins one, as in conlleval and seqeval's default mode.
std::vector<Entity> entities_of(std::span<const std::string> tags);

struct EntityScores {
  double precision = 0, recall = 0, f1 = 0;  // of all entities together (micro); 0 where undefined
  double accuracy = 0;                       // of the tags
};

// Counts of sequences, added one after another.
class EntityCounts {
 public:
  void add(std::span<const std::string> predicted, std::span<const std::string> truth);
  EntityScores scores() const;

 private:
  i64 right_ = 0, predicted_ = 0, truth_ = 0, right_tags_ = 0, tags_ = 0;
};

}  // namespace redco
