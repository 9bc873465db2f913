#include "ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

// B 2, Tq 3, Tk 4, H 4, Hkv 2 or 4, D 2.
Input q_input() { return {{2, 3, 4, 2}, -2, 2}; }
Input kv_input(i64 heads) { return {{2, 4, heads, 2}, -2, 2}; }
Input mask_input() { return ids_input({2, 4}, {0, 1, 1, 1, 1, 0, 1, 0}); }

OpFunction with(const AttentionOptions& o) {
  return [o](const Xs& x) {
    return attention(x[0], x[1], x[2], o, x.size() > 3 ? x[3] : Tensor(), x.size() > 4 ? x[4] : Tensor());
  };
}

// Head cuts of q with units 1 to 3 (2 is a group, the others cut a group) and of k, v.
TEST(Attention, GroupedHeadsPassCheckOpWithEveryCut) {
  OpCase c{"grouped", {q_input(), kv_input(2), kv_input(2)}, with({.scale = 0.7})};
  c.inputs[0].units = {1, 2, 3};
  check_op(c);
}

TEST(Attention, CausalWindowMaskAndBiasPassCheckOp) {
  OpCase causal{"causal", {q_input(), kv_input(4), kv_input(4)}, with({.scale = 0.7, .causal = true})};
  causal.combinations = 120;
  check_op(causal);
  OpCase window{"window",
                {q_input(), kv_input(4), kv_input(4), mask_input()},
                with({.scale = 0.7, .causal = true, .window = 2})};
  window.combinations = 120;
  check_op(window);
  for (i64 batch : {1, 2}) {
    OpCase bias{"bias",
                {q_input(), kv_input(2), kv_input(2), mask_input(), {{batch, 4, 3, 4}}},
                with({.scale = 0.7})};
    bias.combinations = 200;
    check_op(bias);
  }
}

// A window to both sides, and slopes of ALiBi for each head.
TEST(Attention, WindowsToBothSidesAndAlibiPassCheckOp) {
  OpCase both{"both sides",
              {q_input(), kv_input(2), kv_input(2), mask_input()},
              with({.scale = 0.7, .window = 2, .ahead = 1})};
  both.combinations = 60;
  check_op(both);
  const auto slopes = std::make_shared<const std::vector<float>>(std::vector<float>{0.5, 0.25, 0.125, 1});
  OpCase alibi{"alibi",
               {q_input(), kv_input(2), kv_input(2), mask_input()},
               with({.scale = 0.7, .causal = true, .slopes = slopes})};
  alibi.combinations = 120;
  check_op(alibi);
}

TEST(Attention, SinksPassCheckOp) {
  for (const i64 batch : {1, 2}) {
    OpCase sinks{"sinks", {q_input(), kv_input(2), kv_input(2), {{batch, 4}, -1, 1}}, [](const Xs& x) {
                   return attention(x[0], x[1], x[2], {.scale = 0.7, .causal = true, .window = 2}, {}, {},
                                    x[3]);
                 }};
    sinks.combinations = 120;
    check_op(sinks);
  }
  OpCase masked{
      "sinks, masked", {q_input(), kv_input(4), kv_input(4), mask_input(), {{1, 4}, -1, 1}}, [](const Xs& x) {
        const AttentionOptions o{.scale = 0.7, .softcap = 1.5, .dropout = 0.3, .dropout_key = 5};
        return attention(x[0], x[1], x[2], o, x[3], {}, x[4]);
      }};
  masked.combinations = 60;
  check_op(masked);
}

// Soft cap: fused with masks and dropout; composed of simpler ops with a bias.
TEST(Attention, SoftCapPassesCheckOp) {
  OpCase plain{"capped", {q_input(), kv_input(2), kv_input(2)}, with({.scale = 0.7, .softcap = 1.5})};
  plain.combinations = 120;
  check_op(plain);
  OpCase masked{
      "capped, masked",
      {q_input(), kv_input(4), kv_input(4), mask_input()},
      with({.scale = 0.7, .softcap = 0.8, .causal = true, .window = 2, .dropout = 0.3, .dropout_key = 5})};
  masked.combinations = 60;
  check_op(masked);
  OpCase bias{"capped, bias",
              {q_input(), kv_input(2), kv_input(2), mask_input(), {{2, 4, 3, 4}}},
              with({.scale = 0.7, .softcap = 1.5})};
  bias.combinations = 20;
  check_op(bias);
}

// Draws depend on global coordinates: the sharded runs agree with one rank only if every rank drops the same
// elements.
TEST(Attention, DropoutPassesCheckOp) {
  OpCase c{"dropout",
           {q_input(), kv_input(2), kv_input(2)},
           with({.scale = 0.7, .dropout = 0.4, .dropout_key = 5})};
  check_op(c);
}

TEST(Attention, TheBackwardDrawsWithTheRowOffsetOfTheForward) {
  on_one_rank([](Context& c) {
    const Numbers n = numbers_of({"", {q_input(), kv_input(2), kv_input(2)}, {}}, 3);
    const AttentionOptions o{.scale = 0.7, .dropout = 0.5, .dropout_key = 5};
    auto gradient = [&](i64 after) {
      c.random.row_offset = 3;
      const Tensor q = place({2, 3, 4, 2}, n.inputs[0], {}).watched(),
                   k = place({2, 4, 2, 2}, n.inputs[1], {}), v = place({2, 4, 2, 2}, n.inputs[2], {});
      const Tensor y = attention(q, k, v, o);
      c.random.row_offset = after;
      return to_values(grad(sum_all(y), {q})[0]);
    };
    EXPECT_EQ(gradient(3), gradient(0));
  });
}

// Rows with several samples: first and second derivatives with every cut; sample numbers may be in any order.
TEST(Attention, SegmentedRowsPassCheckOp) {
  const Input q{{2, 4, 4, 2}, -2, 2};
  const std::vector<i32> samples = {1, 1, 2, 2, 3, 1, 3, 0};
  for (const bool causal : {true, false}) {
    OpCase c{"segmented",
             {q, kv_input(2), kv_input(2), ids_input({2, 4}, samples)},
             with({.scale = 0.7, .causal = causal, .segmented = true})};
    c.combinations = 120;
    check_op(c);
  }
  OpCase window{"segmented window",
                {q, kv_input(4), kv_input(4), ids_input({2, 4}, samples)},
                with({.scale = 0.7, .causal = true, .window = 2, .segmented = true})};
  window.combinations = 60;
  check_op(window);
  // The queries are the last tokens.
  OpCase last{"segmented, more keys",
              {{{2, 2, 4, 2}, -2, 2}, kv_input(4), kv_input(4), ids_input({2, 4}, samples)},
              with({.scale = 0.7, .causal = true, .segmented = true})};
  last.combinations = 60;
  check_op(last);
}

// Each sample gets exactly the bits that it gets alone, whatever the other samples are; fused and composed.
// Keys of other samples contribute exact zeros. Blocks may be split differently only if a sample is longer
// than one block.
TEST(Attention, ASampleOfASegmentedRowGivesTheBitsItGivesAlone) {
  on_one_rank([](Context& context) {
    const i64 D = 4, first = 150, second = 90, padding = 10, T = first + second + padding;
    auto values = [&](u64 seed, i64 n) { return Random(seed).values(n * D); };
    std::vector<i32> samples(T, 0);
    std::fill_n(samples.begin(), first, 1);
    std::fill_n(samples.begin() + first, second, 2);
    auto run = [&](u64 of_first) {
      std::vector<Tensor> qkv;
      for (u64 i = 0; i < 3; ++i) {
        auto v = values(of_first + i, first);
        const auto rest = values(100 + i, second + padding);
        v.insert(v.end(), rest.begin(), rest.end());
        qkv.push_back(place({1, T, 1, D}, v, {}, DType::f32));
      }
      const auto y =
          to_values(attention(qkv[0], qkv[1], qkv[2], {.scale = 0.5, .causal = true, .segmented = true},
                              from_ids({1, T}, samples)));
      return std::vector<double>(y.begin() + first * D, y.end());
    };
    auto alone = [&] {
      std::vector<Tensor> qkv;
      for (u64 i = 0; i < 3; ++i) {
        auto v = values(100 + i, second + padding);
        v.resize(second * D);
        qkv.push_back(place({1, second, 1, D}, v, {}, DType::f32));
      }
      return to_values(attention(qkv[0], qkv[1], qkv[2], {.scale = 0.5, .causal = true}));
    };
    for (const bool composed : {false, true}) {
      context.composed_only = composed;
      const auto y = run(1);
      EXPECT_EQ(y, run(40));
      const auto one = alone();
      // Sums of 90 products with another order of blocks.
      EXPECT_LT(distance({y.begin(), y.begin() + second * D}, one), 1e-6);
      for (auto p = y.begin() + second * D; p != y.end(); ++p) EXPECT_EQ(*p, 0);
    }
    context.composed_only = false;
    const Tensor q = full({1, 2, 1, 2}, 1), k = full({1, 3, 1, 2}, 1);
    EXPECT_THROW(attention(q, q, q, {.segmented = true}), BugError);
    EXPECT_THROW(attention(k, q, q, {.segmented = true}, from_ids({1, 2}, {{1, 1}})), BugError);
  });
}

// A query without visible keys gets zeros and passes no gradient.
TEST(Attention, AQueryWithoutKeysGivesZerosAndNoGradient) {
  OpCase c{"nothing",
           {q_input(), kv_input(2), kv_input(2), ids_input({2, 4}, {0, 0, 0, 0, 1, 1, 0, 1})},
           with({.scale = 0.7})};
  c.combinations = 40;
  check_op(c);
  on_one_rank([](Context&) {
    const Tensor q = full({1, 2, 1, 2}, 1, DType::f64).watched(), k = full({1, 3, 1, 2}, 1, DType::f64);
    const Tensor y = attention(q, k, k, {}, from_ids({1, 3}, {{0, 0, 0}}));
    EXPECT_EQ(to_values(y), (std::vector<double>(4)));
    EXPECT_EQ(to_values(grad(sum_all(y), {q})[0]), (std::vector<double>(4)));
  });
}

// A cache longer than its written part: equal to attention over the written part, with masks as long as the
// cache or as that part.
TEST(Attention, UnwrittenPartsOfACacheAreIgnored) {
  auto of_cache = [](i64 mask_width) {
    std::vector<i32> mask =
        mask_width == 4 ? std::vector<i32>{0, 1, 1, 1, 1, 0, 1, 0} : std::vector<i32>{0, 1, 1, 1, 0, 1};
    OpCase c{"cache",
             {q_input(), kv_input(2), kv_input(2), ids_input({2, mask_width}, mask)},
             with({.scale = 0.7, .causal = true, .kv_length = 3})};
    c.differentiable = false;
    return c;
  };
  check_op(of_cache(4));
  check_op(of_cache(3));
  on_one_rank([&](Context&) {
    const Numbers n = numbers_of(of_cache(4), 2);
    const Results a = run_case(of_cache(4), n, std::vector<Layout>(4), {}, 0);
    const Results b = run_case(of_cache(3), n, std::vector<Layout>(4), {}, 0);
    EXPECT_EQ(a.value, b.value);
    OpCase part = of_cache(3);
    part.f = [](const Xs& x) {
      return attention(x[0], narrow(x[1], 1, 0, 3), narrow(x[2], 1, 0, 3), {.scale = 0.7, .causal = true},
                       x[3]);
    };
    EXPECT_EQ(run_case(part, n, std::vector<Layout>(4), {}, 0).value, b.value);
  });
}

TEST(Attention, EmptyShardsAndEmptyBatchesPassCheckOp) {
  // One key head on 2 and 3 ranks; a batch of one example with a shared bias, and an empty batch.
  OpCase one{"one head", {{{1, 2, 2, 2}}, {{1, 2, 1, 2}}, {{1, 2, 1, 2}}}, with({})};
  one.combinations = 100;
  check_op(one);
  OpCase bias{"one example",
              {{{1, 2, 2, 2}}, {{1, 2, 1, 2}}, {{1, 2, 1, 2}}, ids_input({1, 2}, {1, 1}), {{1, 2, 2, 2}}},
              with({})};
  bias.combinations = 100;
  check_op(bias);
  OpCase none{"no example", {{{0, 2, 2, 2}}, {{0, 2, 1, 2}}, {{0, 2, 1, 2}}}, with({})};
  none.combinations = 20;
  check_op(none);
}

// Hidden dims are batch dims, also of masks and biases.
TEST(Attention, HiddenDimsAreBatchDims) {
  Input q{{2, 2, 3, 2, 2}}, kv{{2, 2, 3, 1, 2}},
      mask = ids_input({2, 2, 3}, {1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1});
  q.hidden = kv.hidden = mask.hidden = 1;
  OpCase c{"hidden", {q, kv, kv, mask}, with({.causal = true})};
  c.combinations = 40;
  check_op(c);
  OpCase shared{"shared keys and mask",
                {q, {{2, 3, 1, 2}}, {{2, 3, 1, 2}}, ids_input({2, 3}, {1, 1, 0, 0, 1, 1}), {{1, 2, 3, 3}}},
                with({})};
  shared.combinations = 40;
  check_op(shared);
  on_one_rank([&](Context&) {  // equal to a loop
    const Numbers n = numbers_of(c, 4);
    const Results all = run_case(c, n, std::vector<Layout>(4), {}, 0);
    std::vector<double> loop;
    for (int t = 0; t < 2; ++t) {
      Numbers part = n;
      OpCase single = c;
      for (int i = 0; i < 4; ++i) {
        Input& in = single.inputs[i];
        const i64 size = numel(in.shape) / 2;
        in.hidden = 0;
        in.shape.erase(in.shape.begin());
        if (i < 3) part.inputs[i] = {n.inputs[i].begin() + t * size, n.inputs[i].begin() + (t + 1) * size};
        if (i == 3) in.ids = {mask.ids.begin() + t * size, mask.ids.begin() + (t + 1) * size};
      }
      const auto v = run_case(single, part, std::vector<Layout>(4), {}, 0).value;
      loop.insert(loop.end(), v.begin(), v.end());
    }
    EXPECT_LT(distance(all.value, loop), 1e-14);
  });
}

TEST(Rope, BothPairingsPassCheckOp) {
  auto freq = std::make_shared<std::vector<float>>(std::vector<float>{1, 0.3f});
  for (bool interleaved : {false, true}) {
    OpCase c{"rope", {{{2, 3, 2, 5}}, ids_input({2, 3}, {0, 1, 2, 5, 3, 9})}, [=](const Xs& x) {
               return rope(x[0], x[1], {freq, interleaved, 1.3});
             }};
    check_op(c);
    Input x{{2, 2, 3, 1, 4}};
    x.hidden = 1;
    c.inputs[0] = x;
    c.combinations = 40;
    check_op(c);
  }
}

TEST(Rope, RotatesPairs) {
  on_one_rank([](Context&) {
    auto freq = std::make_shared<std::vector<float>>(std::vector<float>{0.5f, 0.25f});
    const std::vector<double> v = {1, 2, 3, 4, 7};
    const Tensor x = place({1, 1, 1, 5}, v, {}), at = from_ids({1, 1}, {{3}});
    const double a = 1.5, b = 0.75;
    const auto halves = to_values(rope(x, at, {freq, false, 1}));
    const std::vector<double> expected = {std::cos(a) - 3 * std::sin(a), 2 * std::cos(b) - 4 * std::sin(b),
                                          3 * std::cos(a) + std::sin(a), 4 * std::cos(b) + 2 * std::sin(b),
                                          7};
    EXPECT_LT(distance(halves, expected), 1e-7);  // cos and sin may be fp32
    const auto pairs = to_values(rope(x, at, {freq, true, 1}));
    const std::vector<double> other = {std::cos(a) - 2 * std::sin(a), 2 * std::cos(a) + std::sin(a),
                                       3 * std::cos(b) - 4 * std::sin(b), 4 * std::cos(b) + 3 * std::sin(b),
                                       7};
    EXPECT_LT(distance(pairs, other), 1e-7);
  });
}

TEST(Dropout, SameMaskOnEveryLayout) {
  auto f = [](const Xs& x) { return dropout(x[0], 0.4, 17); };
  for (const Shape& s :
       {Shape{9}, Shape{3, 5}, Shape{2, 3, 2, 3}, Shape{2, 2, 2, 1, 3}, Shape{2, 2, 1, 2, 2, 2}}) {
    OpCase c{"dropout " + to_string(s), {{s}}, f};
    c.inputs[0].units = {1, 2};
    c.combinations = 60;
    check_op(c);
  }
}

TEST(Dropout, HasTheGivenRateAndScaleAndDiffersBetweenRows) {
  on_one_rank([](Context& c) {
    const i64 n = 20000;
    const Tensor x = full({n, 2}, 1, DType::f64);
    const auto y = to_values(dropout(x, 0.25, 3));
    i64 kept = 0;
    for (double v : y) {
      EXPECT_TRUE(v == 0 || v == 1 / 0.75);
      kept += v != 0;
    }
    EXPECT_NEAR(kept, 0.75 * 2 * n, 5 * std::sqrt(2 * n * 0.25 * 0.75));  // five standard deviations
    // Row 0 of a later micro-batch is a later row of the whole batch.
    c.random.row_offset = 100;
    const auto later = to_values(dropout(full({n - 100, 2}, 1, DType::f64), 0.25, 3));
    EXPECT_TRUE(std::equal(later.begin(), later.end(), y.begin() + 200));
    c.random.row_offset = 0;
    // Examples along a hidden dim have separate draws.
    const auto deep = to_values(dropout(full({2, 1, 1, 8, 64}, 1, DType::f64), 0.5, 3));
    EXPECT_FALSE(std::equal(deep.begin(), deep.begin() + 512, deep.begin() + 512));
  });
}

// Keys and values of a cache in bf16 give what their rounded values give.
TEST(Attention, KeysAndValuesMayBeBf16) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
    on_mesh(mesh, [](Context&) {
      const Layout heads = on_mp(Placement::sharded(2));
      Random random(3);
      const auto wide = [&](i64 tokens, i64 of) {
        return place({2, tokens, of, 2}, random.values(2 * tokens * of * 2), heads, DType::f32);
      };
      const Tensor q = wide(3, 4), k = cast(wide(5, 2), DType::bf16), v = cast(wide(5, 2), DType::bf16);
      EXPECT_EQ(k.local_bytes(), cast(k, DType::f32).local_bytes() / 2);
      const AttentionOptions o{.scale = 0.7, .causal = true, .kv_length = 4};
      const auto expected = to_values(attention(q, cast(k, DType::f32), cast(v, DType::f32), o));
      EXPECT_LT(distance(to_values(attention(q, k, v, o)), expected), 1e-6);  // the same sums, in fp32
      EXPECT_LT(distance(to_values(attention_composed(q, k, v, o)), expected), 1e-6);
      EXPECT_EQ(to_values(attention(q, k, cast(v, DType::f32), o)),
                to_values(attention(q, cast(k, DType::f32), cast(v, DType::f32), o)));
    });
}

// An op that does not know bf16 computes with fp32 copies.
TEST(StoredTypes, AreWidenedForOtherOps) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
    on_mesh(mesh, [](Context&) {
      Random random(3);
      const Tensor wide = place({4, 6}, random.values(24), on_mp(Placement::sharded(0)), DType::f32);
      const Tensor x = cast(wide, DType::bf16), kept = cast(x, DType::f32);
      const auto expect_same = [](const Tensor& got, const Tensor& wanted) {
        EXPECT_EQ(got.dtype(), DType::f32);
        EXPECT_EQ(to_values(got), to_values(wanted));
      };
      expect_same(x + x, kept + kept);
      expect_same(wide + x, wide + kept);
      expect_same(transpose(x, 0, 1), transpose(kept, 0, 1));
      expect_same(reshape(x, {2, 12}), reshape(kept, {2, 12}));
      expect_same(narrow(x, 0, 1, 2), narrow(kept, 0, 1, 2));
      expect_same(matmul(x, x, true), matmul(kept, kept, true));
      expect_same(sum_all(square(x)), sum_all(square(kept)));
      // Its kernel for bf16 sums in another order.
      EXPECT_LT(distance(to_values(linear(wide, x)), to_values(linear(wide, kept))), 1e-6);
    });
}

TEST(Cache, IsWrittenInPlace) {
  on_mesh({1, 2}, [](Context&) {
    const Layout heads = on_mp(Placement::sharded(2));
    const Tensor cache = zeros({2, 4, 3, 1}, DType::f64, heads);
    std::vector<double> v(2 * 2 * 3);
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i) + 1;
    cache_write(cache, place({2, 2, 3, 1}, v, heads), 1);
    EXPECT_EQ(to_values(cache), (std::vector<double>{0, 0, 0, 1, 2, 3, 4,  5,  6,  0, 0, 0,
                                                     0, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0, 0}));
    EXPECT_THROW(cache_write(cache, place({2, 2, 3, 1}, v, heads), 3), BugError);
    EXPECT_THROW(cache_write(cache, place({2, 2, 3, 1}, v, {}), 0), BugError);
  });
}

TEST(Attention, MisuseIsAnError) {
  on_one_rank([](Context&) {
    const Tensor q = zeros({2, 3, 4, 2}), k = zeros({2, 4, 2, 2});
    EXPECT_THROW(attention(q, zeros({2, 4, 3, 2}), zeros({2, 4, 3, 2}), {}), BugError);
    EXPECT_THROW(attention(q, zeros({1, 4, 2, 2}), zeros({1, 4, 2, 2}), {}), BugError);
    EXPECT_THROW(attention(q, k, k, {}, from_ids({2, 3}, std::vector<i32>(6, 1))), BugError);
    EXPECT_THROW(attention(q, k, k, {}, {}, zeros({2, 4, 3, 3})), BugError);
    EXPECT_THROW(attention(q, k, k, {.kv_length = 5}), BugError);
  });
}

}  // namespace
}  // namespace redco
