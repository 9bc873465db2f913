#include "ops/cross_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/embedding.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

// Labels in every rank's part of a vocabulary of 7, and ignored labels.
Input labels() { return ids_input({2, 3}, {0, -100, 6, 3, 4, -100}); }

TEST(CrossEntropy, EveryCutOfTheVocabularyPassesCheckOp) {
  OpCase c{
      "cross entropy", {{{2, 3, 7}, -3, 3}, labels()}, [](const Xs& x) { return cross_entropy(x[0], x[1]); }};
  c.inputs[0].units = {1, 2, 3};
  c.combinations = 400;
  check_op(c);
}

TEST(CrossEntropy, SmoothingAndTheComposedFormPassCheckOp) {
  check_op({"smoothing", {{{2, 3, 7}, -3, 3}, labels()}, [](const Xs& x) {
              return cross_entropy(x[0], x[1], 0.1);
            }});
  check_op({"composed", {{{2, 3, 7}, -3, 3}, labels()}, [](const Xs& x) {
              return cross_entropy_composed(x[0], x[1]);
            }});
}

TEST(CrossEntropy, EqualsTheClosedForm) {
  on_one_rank([](Context&) {
    const std::vector<double> v = {1, 2, 4, 0, 0, 0};
    const double lse = std::log(std::exp(1) + std::exp(2) + std::exp(4));
    const Tensor x = from_values({2, 3}, v), ids = from_ids({2}, {{1, 2}});
    EXPECT_LT(distance(to_values(cross_entropy(x, ids)), {lse - 2, std::log(3.0)}), 1e-15);
    const double e = 0.2;
    EXPECT_LT(distance(to_values(cross_entropy(x, ids, e)), {lse - (1 - e) * 2 - e * 7 / 3, std::log(3.0)}),
              1e-15);
    // Logits far from 0 do not overflow.
    const Tensor far = from_values({1, 2}, std::vector<double>{1e5, 1e5 - 1});
    EXPECT_NEAR(to_values(cross_entropy(far, from_ids({1}, {{1}})))[0], 1 + std::log(1 + std::exp(-1.0)),
                1e-10);
  });
}

// Ignored rows have no effect on losses and gradients, whatever their logits are.
TEST(CrossEntropy, IgnoredRowsMayHoldAnything) {
  const double inf = std::numeric_limits<double>::infinity();
  on_one_rank([&](Context& c) {
    const Tensor ids = from_ids({4}, {{1, -100, -100, -100}});
    const Tensor x =
        from_values({4, 3}, std::vector<double>{1, 2, 4, NAN, 0, 1, inf, 0, -inf, 5, 6, 7}).watched();
    const Tensor clean = from_values({1, 3}, std::vector<double>{1, 2, 4}).watched(),
                 id = from_ids({1}, {{1}});
    for (const double smoothing : {0.0, 0.1})
      for (const bool composed : {false, true}) {
        c.composed_only = composed;
        const Tensor loss = cross_entropy(x, ids, smoothing), want = cross_entropy(clean, id, smoothing);
        const auto first = [](std::vector<double> v, std::size_t rest) {
          v.resize(v.size() + rest);
          return v;
        };
        EXPECT_LT(distance(to_values(loss), first(to_values(want), 3)), 1e-15) << smoothing << composed;
        EXPECT_LT(distance(to_values(grad(sum_all(loss), {x})[0]),
                           first(to_values(grad(sum_all(want), {clean})[0]), 9)),
                  1e-15)
            << smoothing << composed;
      }
    c.composed_only = false;
  });
}

TEST(CrossEntropy, EmptyShardsAndZeroRowsPassCheckOp) {
  OpCase one{"one word", {{{2, 1}}, ids_input({2}, {0, -100})}, [](const Xs& x) {
               return cross_entropy(x[0], x[1]);
             }};
  check_op(one);
  OpCase none{"no rows", {{{0, 4}}}, [](const Xs& x) {
                return cross_entropy(x[0], from_ids({0}, std::span<const i32>()));
              }};
  check_op(none);
}

// Two small collectives per pass, none of the size of the logits.
TEST(CrossEntropy, NeedsTwoSmallCollectivesPerPass) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({4, 10}, std::vector<double>(40, 0.5), on_mp(Placement::sharded(1))).watched();
    const Tensor ids = from_ids({4}, {{1, 2, 9, 0}});
    c.keep_ledger();
    const Tensor loss = sum_all(cross_entropy(x, ids));
    const auto forward = c.ledger()->collectives();
    ASSERT_EQ(forward.size(), 1u);
    EXPECT_EQ(forward[0].what, "all_reduce mp");
    EXPECT_EQ(forward[0].count, 2);
    EXPECT_EQ(forward[0].bytes, (4 + 2 * 4) * 8);
    c.keep_ledger();
    grad(loss, {x});
    EXPECT_TRUE(c.ledger()->collectives().empty());
  });
}

// Partial logits are scattered once; the backward uses the scattered ones.
TEST(CrossEntropy, PartialLogitsAreScatteredOnce) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({4, 10}, std::vector<double>(40, 0.5), on_mp(Placement::partial())).watched();
    const Tensor ids = from_ids({4}, {{1, 2, 9, 0}});
    const Tensor loss = sum_all(cross_entropy(x, ids));
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::reduce_scatter).calls, 1);
    grad(loss, {x});
    EXPECT_EQ(c.group(Axis::mp).counted(Collective::reduce_scatter).calls, 1);
  });
}

TEST(Embedding, EveryCutOfTableAndIdsPassesCheckOp) {
  OpCase c{"embedding", {{{5, 4}}, ids_input({2, 3}, {0, 4, 4, 2, 1, 4})}, [](const Xs& x) {
             return embedding(x[0], x[1]);
           }};
  c.inputs[0].units = {1, 2, 3};
  check_op(c);
  check_op(
      {"one row", {{{1, 2}}, ids_input({2}, {0, 0})}, [](const Xs& x) { return embedding(x[0], x[1]); }});
}

TEST(Embedding, ScatterRowsPassesCheckOp) {
  for (const Placement& p :
       {Placement::replicated(), Placement::sharded(0), Placement::sharded(0, 2), Placement::sharded(1)}) {
    OpCase c{"scatter " + to_string(p),
             {{{2, 3, 4}}, ids_input({2, 3}, {0, 4, 4, 2, 1, 4})},
             [p](const Xs& x) { return scatter_rows(x[0], x[1], 5, on_both(p, p)); }};
    c.combinations = 100;
    check_op(c);
  }
}

TEST(Pick, EveryCutPassesCheckOp) {
  OpCase c{"pick", {{{2, 3, 7}}, labels()}, [](const Xs& x) { return pick(x[0], x[1]); }};
  c.inputs[0].units = {1, 3};
  check_op(c);
  for (const Placement& p : {Placement::replicated(), Placement::sharded(2), Placement::sharded(2, 3)}) {
    OpCase u{"unpick " + to_string(p), {{{2, 3}}, labels()}, [p](const Xs& x) {
               return unpick(x[0], x[1], 7, on_both(p, p));
             }};
    u.combinations = 100;
    check_op(u);
  }
}

TEST(CrossEntropy, LabelsOfAnotherShapeAreAnError) {
  on_one_rank([](Context&) {
    const Tensor x = full({2, 3, 7}, 1);
    for (const Shape& s : {Shape{2, 2}, Shape{2, 4}, Shape{3, 3}, Shape{6}}) {
      const Tensor ids = from_ids(s, std::vector<i32>(static_cast<std::size_t>(numel(s)), 1));
      EXPECT_THROW(cross_entropy(x, ids), BugError) << to_string(s);
      EXPECT_THROW(pick(x, ids), BugError) << to_string(s);
    }
  });
}

}  // namespace
}  // namespace redco
