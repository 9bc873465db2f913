// Tests an op from its values alone: given only a function of tensors and shapes, it checks
//   - first and second derivatives on one rank against central differences, and the fused backward against
//     the differentiable one;
//   - every combination of placements of inputs and cotangents, on several ranks, against one rank.
//
// All numbers are f64. Tolerances: the sharded runs add the same numbers in another order, a few hundred
// additions of numbers near 1: 1e-12. Central differences with step h = 1e-5 have a truncation error of h^2/6
// f''' = 2e-11 f''' and a rounding error of 1e-16 / h = 1e-11 times the summed terms; 2e-8 leaves a factor of
// about one hundred for steep functions.
#pragma once

#include <gtest/gtest.h>

#include "autograd/grad.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco::testing {

struct Input {
  Shape shape;
  double low = -1, high = 1;
  std::vector<i32> ids;          // not empty: an i32 tensor with these values, without gradient
  std::vector<i64> units = {1};  // units to try on every dim
  bool partial = true;           // whether to try Partial
  int hidden = 0;                // number of vmapped dims
};
inline Input ids_input(const Shape& shape, std::vector<i32> ids) {
  Input in;
  in.shape = shape;
  in.ids = std::move(ids);
  in.partial = false;
  return in;
}

using OpFunction = std::function<Tensor(const std::vector<Tensor>&)>;

struct OpCase {
  std::string name;
  std::vector<Input> inputs;
  OpFunction f;
  bool differentiable = true;
  // Combinations of placements are sampled down to about this number per mesh; each mesh has its own sample.
  int combinations = 120;
};
inline void PrintTo(const OpCase& c, std::ostream* os) { *os << c.name; }

inline std::vector<Placement> placements_of(const Input& in) {
  std::vector<Placement> out = {Placement::replicated()};
  if (in.partial) out.push_back(Placement::partial());
  for (size_t d = 0; d < in.shape.size(); ++d)
    for (i64 u : in.units) out.push_back(Placement::sharded(static_cast<int>(d), u));
  return out;
}

inline Tensor make_input(const Input& in, const std::vector<double>& values, const Layout& l) {
  if (!in.ids.empty()) return from_ids(in.shape, in.ids, l).with_hidden(in.hidden);
  return place(in.shape, values, l).with_hidden(in.hidden);
}

// Values of an op and of its derivatives for given inputs and cotangent.
struct Results {
  std::vector<double> value;
  Shape shape;
  int hidden = 0;
  std::vector<std::vector<double>> first, second;
};

struct Numbers {  // equal on all ranks
  std::vector<std::vector<double>> inputs, directions;
  std::vector<double> cotangent;
};

inline Numbers numbers_of(const OpCase& c, u64 seed) {
  Numbers n;
  Random random(seed);
  for (const Input& in : c.inputs) {
    n.inputs.push_back(random.values(numel(in.shape), in.low, in.high));
    n.directions.push_back(random.values(numel(in.shape)));
  }
  n.cotangent = random.values(4096);
  return n;
}

// order 0: the value; 1: also gradients; 2: also the gradient of sum_i <g_i, direction_i>.
inline Results run_case(const OpCase& c, const Numbers& n, const std::vector<Layout>& layouts,
                        const Layout& cotangent, int order, bool create_graph = false,
                        std::vector<Layout>* gradient_layouts = nullptr) {
  Results r;
  std::vector<Tensor> all, wrt;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Tensor t = make_input(c.inputs[i], n.inputs[i], layouts[i]);
    if (t.is_float() && order > 0) wrt.push_back(t = t.watched());
    all.push_back(t);
  }
  const Tensor y = c.f(all);
  r.shape = y.shape();
  r.hidden = y.hidden();
  r.value = to_values(y);
  if (order == 0) return r;
  const std::vector<double> ct(n.cotangent.begin(), n.cotangent.begin() + y.numel());
  Layout l = cotangent;
  for (Axis a : Context::current().mesh().axes())  // a dim that the output does not have
    if (l[a].is_sharded() && l[a].dim >= y.rank()) l[a] = Placement::replicated();
  const std::vector<Tensor> g = vjp({y}, {place(y.shape(), ct, l).with_hidden(y.hidden())}, wrt,
                                    {.create_graph = order > 1 || create_graph});
  for (const Tensor& t : g) {
    r.first.push_back(to_values(t));
    if (gradient_layouts) gradient_layouts->push_back(t.layout());
  }
  if (order == 1) return r;
  std::vector<Tensor> terms;
  size_t k = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i].ids.empty()) continue;
    const Tensor d = place(c.inputs[i].shape, n.directions[i], {});
    const Tensor product = g[k++].with_hidden(0) * d;
    std::vector<int> dims(product.rank());
    for (int j = 0; j < product.rank(); ++j) dims[j] = j;
    terms.push_back(sum(product, dims));
  }
  // If no gradient depends on any input, the tape is empty and the result is zeros.
  const std::vector<Tensor> h = grad(add(terms), wrt);
  for (const Tensor& t : h) r.second.push_back(to_values(t));
  return r;
}

// Checks derivatives on one rank.
inline void check_derivatives(const OpCase& c) {
  SCOPED_TRACE(c.name);
  on_one_rank([&](Context&) {
    const Numbers n = numbers_of(c, 1);
    const std::vector<Layout> plain(c.inputs.size());
    const Results second = run_case(c, n, plain, {}, 2);
    const Results first = run_case(c, n, plain, {}, 1);
    ASSERT_EQ(first.first.size(), second.first.size());
    for (size_t i = 0; i < first.first.size(); ++i)
      EXPECT_LT(distance(first.first[i], second.first[i]), 1e-11)
          << "the fused gradient " << i << " is " << show(first.first[i]) << ", the differentiable one "
          << show(second.first[i]);
    // Differences of <y, ct> and of sum <g_i, direction_i>, one element at a time.
    auto objective = [&](const Numbers& m, bool of_gradient) {
      const Results r = run_case(c, m, plain, {}, of_gradient ? 1 : 0);
      double s = 0;
      if (!of_gradient) {
        for (size_t i = 0; i < r.value.size(); ++i) s += r.value[i] * m.cotangent[i];
        return s;
      }
      size_t k = 0;
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        if (!c.inputs[i].ids.empty()) continue;
        for (size_t j = 0; j < r.first[k].size(); ++j) s += r.first[k][j] * m.directions[i][j];
        ++k;
      }
      return s;
    };
    const double h = 1e-5;
    size_t k = 0;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      if (!c.inputs[i].ids.empty()) continue;
      std::vector<double> d1, d2;
      for (size_t j = 0; j < n.inputs[i].size(); ++j) {
        Numbers up = n, down = n;
        up.inputs[i][j] += h;
        down.inputs[i][j] -= h;
        d1.push_back((objective(up, false) - objective(down, false)) / (2 * h));
        d2.push_back((objective(up, true) - objective(down, true)) / (2 * h));
      }
      EXPECT_LT(distance(d1, first.first[k]), 2e-8)
          << "input " << i << ": differences " << show(d1) << ", gradient " << show(first.first[k]);
      EXPECT_LT(distance(d2, second.second[k]), 2e-8)
          << "input " << i << ": differences of the gradient " << show(d2) << ", second derivative "
          << show(second.second[k]);
      ++k;
    }
  });
}

// Compares every combination of placements on `axis` of the mesh with one rank. The placements on the mesh's
// other axes are random. Returns the number of runs compared.
inline i64 check_placements(const OpCase& c, const Mesh& mesh, Axis axis) {
  SCOPED_TRACE(c.name);
  const Numbers n = numbers_of(c, 2);
  Results expected;
  on_one_rank([&](Context&) {
    const int order = c.differentiable ? 2 : 0;
    expected = run_case(c, n, std::vector<Layout>(c.inputs.size()), {}, order);
  });
  Input out;
  out.shape = expected.shape;
  const std::vector<Placement> cts = c.differentiable ? placements_of(out) : std::vector<Placement>(1);
  std::vector<std::vector<Placement>> choices;
  i64 all = static_cast<i64>(cts.size());
  for (const Input& in : c.inputs) {
    choices.push_back(placements_of(in));
    all *= static_cast<i64>(choices.back().size());
  }
  // A stride coprime to the number of combinations visits them evenly.
  // On the delayed queue each value that is read waits for another thread.
  const i64 wanted =
      is_set("REDCO_TEST_QUEUE", "delayed") ? std::max(4, c.combinations / 12) : c.combinations;
  i64 stride = std::max<i64>(1, all / wanted);
  i64 runs = 0;
  on_mesh(mesh, [&](Context& context) {
    i64 mine = 0;
    Random random(99 + static_cast<u64>(10 * mesh.ranks() + axis.index()));
    for (i64 at = 0; at < all; at += 1 + (stride > 1 ? random.below(2 * stride - 1) : 0)) {
      i64 rest = at;
      std::vector<Layout> layouts;
      auto draw = [&](const std::vector<Placement>& from) {
        Layout l;
        l[axis] = from[rest % static_cast<i64>(from.size())];
        rest /= static_cast<i64>(from.size());
        for (Axis other : mesh.axes())
          if (other != axis && mesh.size(other) > 1)
            l[other] = from[random.below(static_cast<i64>(from.size()))];
        return l;
      };
      for (const auto& choice : choices) layouts.push_back(draw(choice));
      const Layout cotangent = draw(cts);
      std::string what;
      for (const Layout& l : layouts) what += to_string(l, mesh) + " ";
      what += "cotangent " + to_string(cotangent, mesh);
      const int order = !c.differentiable ? 0 : mine % 4 == 3 ? 2 : 1;
      ++mine;
      std::vector<Layout> born;
      Results r;
      try {
        r = run_case(c, n, layouts, cotangent, order, mine % 8 == 1, &born);
      } catch (const std::exception& e) {
        ADD_FAILURE() << c.name << " on " << what << ": " << e.what();
        throw;
      }
      EXPECT_EQ(r.shape, expected.shape) << what;
      EXPECT_EQ(r.hidden, expected.hidden) << what;
      ASSERT_LT(distance(r.value, expected.value), 1e-12)
          << c.name << " on " << what << ", rank " << context.rank() << ": value " << show(r.value)
          << ", on one rank " << show(expected.value);
      size_t k = 0;
      for (size_t i = 0; i < layouts.size() && order > 0; ++i) {
        if (!c.inputs[i].ids.empty()) continue;
        ASSERT_LT(distance(r.first[k], expected.first[k]), 1e-12)
            << c.name << " on " << what << ", rank " << context.rank() << ": gradient " << i << " "
            << show(r.first[k]) << ", on one rank " << show(expected.first[k]);
        for (Axis a : Context::current().mesh().axes()) {
          if (!layouts[i][a].is_sharded()) continue;
          EXPECT_TRUE(same_cut(c.inputs[i].shape, born[k][a], layouts[i][a], context.mesh().size(a)))
              << c.name << " on " << what << ": gradient " << i << " is " << to_string(born[k], mesh);
        }
        if (order > 1) {
          ASSERT_LT(distance(r.second[k], expected.second[k]), 1e-11)
              << c.name << " on " << what << ", rank " << context.rank() << ": second derivative " << i << " "
              << show(r.second[k]) << ", on one rank " << show(expected.second[k]);
        }
        ++k;
      }
    }
    if (context.rank() == 0) runs = mine;
  });
  return runs;
}

// Runs all checks of one op.
inline void check_op(const OpCase& c) {
  if (c.differentiable) check_derivatives(c);
  if (::testing::Test::HasFailure()) return;
  i64 runs = 0;
  for (int ranks : {2, 3}) {
    runs += check_placements(c, Mesh(1, ranks), Axis::mp);
    if (!::testing::Test::HasFailure()) runs += check_placements(c, Mesh(ranks, 1), Axis::dp);
    if (::testing::Test::HasFailure()) return;
  }
  OpCase few = c;
  few.combinations = std::max(10, c.combinations / 4);
  runs += check_placements(few, Mesh(2, 2), Axis::mp);
  // A further axis of each role: ops know neither its name nor its number.
  few.combinations = std::max(6, c.combinations / 16);
  runs += check_placements(few, Mesh(1, 2, {{"sp", 2, AxisRole::model}}), Axis(2));
  runs += check_placements(few, Mesh(2, 1, {{"ep", 2, AxisRole::data}}), Axis(2));
  ::testing::Test::RecordProperty("runs", static_cast<int>(runs));
}

}  // namespace redco::testing
