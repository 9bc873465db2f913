// What docs/api.md says of ops, against the ops: dims that stay sharded without communication, and
// derivatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "redco.h"
#include "support/docs.h"

namespace redco {
namespace {

constexpr int kWhole = -1, kSum = -2;  // not sharded; Partial

struct ApiInput {
  Shape shape;
  int sharded = kWhole;  // its dim that is sharded over two ranks
  DType type = DType::f32;
};
struct ApiCase {
  const char* op;
  std::vector<ApiInput> in;
  int out;  // the result's sharded dim
  std::function<Tensor(const std::vector<Tensor>&)> f;
};
using Xs = std::vector<Tensor>;

std::vector<ApiCase> api_cases() {
  const Shape act = {4, 6, 8}, heads = {4, 6, 2, 8}, image = {4, 2, 8, 8}, ids = {4, 6},
              kernel = {6, 2, 3, 3};
  const auto i32s = [](const Shape& s, int d = kWhole) { return ApiInput{s, d, DType::i32}; };
  const auto recurrence = [](const Xs& x) { return linear_recurrence({x[0], x[1], x[1], x[2]}).y; };
  const auto attend_to = [](const Xs& x) { return attention(x[0], x[1], x[1], {}); };
  return {
      {"add", {{act, 1}, {act, 1}}, 1, [](const Xs& x) { return x[0] + x[1]; }},
      {"add",
       {{act, kSum}, {act, kSum}},
       kSum,
       [](const Xs& x) {
         return add({x[0], x[1]});
       }},
      {"operator*", {{act, 2}, {{8}, 0}}, 2, [](const Xs& x) { return x[0] * x[1]; }},
      {"operator*", {{act, kSum}, {act}}, kSum, [](const Xs& x) { return x[0] * x[1]; }},
      {"scale", {{act, kSum}}, kSum, [](const Xs& x) { return scale(x[0], 3); }},
      {"add_bias", {{act, kSum}, {{8}}}, kSum, [](const Xs& x) { return add_bias(x[0], x[1]); }},
      {"compare", {{act, 2}, {act, 2}}, 2, [](const Xs& x) { return compare(Binary::lt, x[0], x[1]); }},
      {"maximum", {{act, 0}, {act, 0}}, 0, [](const Xs& x) { return maximum(x[0], x[1]); }},
      {"exp", {{act, 2}}, 2, [](const Xs& x) { return exp(x[0]); }},
      {"relu", {{act, 2}}, 2, [](const Xs& x) { return gelu(x[0]); }},
      {"stop_gradient", {{act, kSum}}, kSum, [](const Xs& x) { return stop_gradient(x[0]); }},
      {"where", {i32s(ids, 0), {ids, 0}, {ids, 0}}, 0, [](const Xs& x) { return where(x[0], x[1], x[2]); }},
      {"clamp", {{act, 2}}, 2, [](const Xs& x) { return clamp(x[0], -1, 1); }},
      {"cumsum", {{act, 2}}, 2, [](const Xs& x) { return cumsum(x[0], 1); }},
      {"sum", {{act, 2}}, kSum, [](const Xs& x) { return sum(x[0], {2}); }},
      {"sum", {{act, 1}}, 1, [](const Xs& x) { return sum(x[0], {2}); }},
      {"sum_all", {{act, 1}}, kSum, [](const Xs& x) { return sum_all(x[0]); }},
      {"max_last", {{act, 1}}, 1, [](const Xs& x) { return max_last(x[0]); }},
      {"softmax", {{act, 1}}, 1, [](const Xs& x) { return softmax(x[0]); }},
      {"log_sum_exp", {{act, 1}}, 1, [](const Xs& x) { return log_sum_exp(x[0]); }},
      {"reshape",
       {{act, 0}},
       0,
       [](const Xs& x) {
         return reshape(x[0], {24, 8});
       }},
      {"permute",
       {{act, 0}},
       2,
       [](const Xs& x) {
         return permute(x[0], {1, 2, 0});
       }},
      {"narrow", {{act, 2}}, 2, [](const Xs& x) { return narrow(x[0], 1, 2, 3); }},
      {"pad_to", {{act, kSum}}, kSum, [](const Xs& x) { return pad_to(x[0], 1, 2, 9); }},
      {"concat",
       {{act, 2}, {act, 2}},
       2,
       [](const Xs& x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"cast", {{act, 2}}, 2, [](const Xs& x) { return cast(x[0], DType::f64); }},
      {"to_float", {i32s(ids, 0)}, 0, [](const Xs& x) { return to_float(x[0]); }},
      {"linear", {{act}, {{10, 8}, 0}}, 2, [](const Xs& x) { return linear(x[0], x[1]); }},
      {"linear", {{act, 2}, {{10, 8}, 1}}, kSum, [](const Xs& x) { return linear(x[0], x[1]); }},
      {"linear_partial",
       {{act, kSum}, {{10, 8}}},
       kSum,
       [](const Xs& x) { return linear_partial(x[0], x[1]); }},
      {"matmul", {{act, 0}, {{4, 8, 6}, 0}}, 0, [](const Xs& x) { return matmul(x[0], x[1]); }},
      {"matmul", {{act, 2}, {{4, 8, 6}, 1}}, kSum, [](const Xs& x) { return matmul(x[0], x[1]); }},
      {"embedding", {{{10, 8}, 0}, i32s(ids)}, kSum, [](const Xs& x) { return embedding(x[0], x[1]); }},
      {"embedding", {{{10, 8}, 1}, i32s(ids)}, 2, [](const Xs& x) { return embedding(x[0], x[1]); }},
      {"pick", {{act, 0}, i32s(ids, 0)}, 0, [](const Xs& x) { return pick(x[0], x[1]); }},
      {"cross_entropy", {{act, 0}, i32s(ids, 0)}, 0, [](const Xs& x) { return cross_entropy(x[0], x[1]); }},
      {"layer_norm",
       {{act, 1}, {{8}}, {{8}}},
       1,
       [](const Xs& x) { return layer_norm(x[0], x[1], x[2], 1e-5); }},
      {"rms_norm", {{act, 1}, {{8}}}, 1, [](const Xs& x) { return rms_norm(x[0], x[1], 1e-5); }},
      {"group_norm", {{image, 0}}, 0, [](const Xs& x) { return group_norm(x[0], 2, {}, {}, 1e-5); }},
      {"attention", {{heads, 2}, {heads, 2}}, 2, attend_to},
      {"attention", {{heads, 0}, {heads, 0}}, 0, attend_to},
      {"dropout", {{act, 2}}, 2, [](const Xs& x) { return dropout(x[0], 0.5, 1); }},
      {"linear_recurrence", {{{4, 6, 2}, 0}, {heads, 0}, {heads, 0}}, 0, recurrence},
      {"linear_recurrence", {{{4, 6, 2}, 2}, {heads, 2}, {heads, 2}}, 2, recurrence},
      {"causal_conv1d",
       {{act, 2}, {{8, 3}, 0}},
       2,
       [](const Xs& x) { return causal_conv1d(x[0], x[1], {}); }},
      {"conv2d", {{image}, {kernel, 0}}, 1, [](const Xs& x) { return conv2d(x[0], x[1]); }},
      {"conv2d", {{image, 1}, {kernel, 1}}, kSum, [](const Xs& x) { return conv2d(x[0], x[1]); }},
      {"avg_pool2d", {{image, 1}}, 1, [](const Xs& x) { return avg_pool2d(x[0]); }},
      {"max_pool2d", {{image, 1}}, 1, [](const Xs& x) { return max_pool2d(x[0]); }},
      {"upsample", {{image, 1}}, 1, [](const Xs& x) { return upsample(x[0], 2, 2); }},
      {"log_sigmoid", {{act, 2}}, 2, [](const Xs& x) { return log_sigmoid(x[0]); }},
  };
}

Layout api_layout(int sharded) {
  Layout l;
  if (sharded >= 0) l[Axis::mp] = Placement::sharded(sharded);
  if (sharded == kSum) l[Axis::mp] = Placement::partial();
  return l;
}

// The derivative's cell in the op's row: "any, zero outside".
std::string derivative_on_page(const std::string& page, const std::string& op) {
  const std::size_t at = page.find("`" + op + "(") < page.find("`" + op + "`") ? page.find("`" + op + "(")
                                                                               : page.find("`" + op + "`");
  if (at == std::string::npos) return "";
  const std::size_t begin = page.rfind('\n', at) + 1, end = page.find('\n', at);
  const std::string row = page.substr(begin, end - begin);
  std::vector<std::string> cells;
  for (std::size_t from = 2, to; (to = row.find(" |", from)) != std::string::npos; from = to + 3)
    cells.push_back(row.substr(from, to - from));
  return cells.size() > 2 ? cells[2] : "";
}

TEST(Api, PlacementsAndDerivativesAreThoseOfThePage) {
  const std::string page = test::page_text(REDCO_SOURCE_DIR "/docs/api.md");
  const auto c = Context::meta(Mesh(1, 2), 0);
  const Context::Use use(*c);
  for (const ApiCase& a : api_cases()) {
    SCOPED_TRACE(a.op);
    Xs in, leaves;
    for (const ApiInput& i : a.in) {
      Tensor t(i.shape, i.type, api_layout(i.sharded));
      if (t.is_float()) leaves.push_back(t = t.watched());
      in.push_back(t);
    }
    c->keep_ledger();
    const Tensor y = a.f(in);
    EXPECT_TRUE(c->ledger()->collectives().empty()) << c->ledger()->collectives()[0].what;
    const Placement p = y.layout()[Axis::mp];
    EXPECT_TRUE(a.out == kSum ? p.is_partial() : p.is_sharded(a.out)) << describe(y);

    const std::string derivative = derivative_on_page(page, a.op);
    EXPECT_THAT(derivative, ::testing::MatchesRegex("(any|none).*"));
    EXPECT_EQ(y.node() != nullptr, derivative.starts_with("any"));
    if (!y.node()) continue;
    const Tensor first = grad(sum_all(square(y)), leaves, {.create_graph = true})[0];
    ASSERT_TRUE(first.node()) << "no second derivative";
    EXPECT_EQ(grad(sum_all(square(first)), leaves)[0].shape(), leaves[0].shape());
  }
}

}  // namespace
}  // namespace redco
