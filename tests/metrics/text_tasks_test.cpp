#include <gtest/gtest.h>

#include "metrics/entities.h"
#include "metrics/squad.h"

namespace redco {
namespace {

using Tags = std::vector<std::string>;

TEST(Entities, AreThoseOfSeqeval) {
  const auto of = [](const Tags& tags) { return entities_of(tags); };
  EXPECT_EQ(of({"B-PER", "I-PER", "O", "B-LOC"}), (std::vector<Entity>{{"PER", 0, 2}, {"LOC", 3, 4}}));
  EXPECT_EQ(of({"I-PER", "I-LOC", "B-LOC"}),
            (std::vector<Entity>{{"PER", 0, 1}, {"LOC", 1, 2}, {"LOC", 2, 3}}));
  EXPECT_EQ(of({"S-PER", "B-LOC", "E-LOC", "U-X"}),
            (std::vector<Entity>{{"PER", 0, 1}, {"LOC", 1, 3}, {"X", 3, 4}}));
  EXPECT_TRUE(of({"O", "O"}).empty());
  // seqeval.metrics: precision 1/2, recall 1/2, f1 1/2, accuracy 5/6.
  EntityCounts counts;
  counts.add(Tags{"O", "B-MISC", "I-MISC", "B-PER"}, Tags{"O", "B-MISC", "O", "B-PER"});
  counts.add(Tags{"O", "O"}, Tags{"O", "O"});
  const EntityScores s = counts.scores();
  EXPECT_DOUBLE_EQ(s.precision, 0.5);
  EXPECT_DOUBLE_EQ(s.recall, 0.5);
  EXPECT_DOUBLE_EQ(s.f1, 0.5);
  EXPECT_DOUBLE_EQ(s.accuracy, 5.0 / 6);
}

TEST(Squad, ScoresAreThoseOfTheScript) {
  EXPECT_EQ(normalized_answer("The  Cat, a DOG!"), "cat dog");
  EXPECT_DOUBLE_EQ(squad_score("the cat", {"Cat."}).exact, 1);
  EXPECT_DOUBLE_EQ(squad_score("black cat", {"a dog", "the cat"}).f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(squad_score("", {}).exact, 1);
  EXPECT_DOUBLE_EQ(squad_score("cat", {}).f1, 0);
}

}  // namespace
}  // namespace redco
