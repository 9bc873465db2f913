// Ids that ops do not accept are found by the kernels, wherever the mesh puts rows and classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "autograd/grad.h"
#include "kernels/table.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "support/ranks.h"

namespace redco {
namespace {

using kernels::IdUse;

using FoundId = std::optional<std::tuple<IdUse, i64, i64>>;

constexpr i64 kClasses = 6;

// What `body` leaves in the queue: of the ranks that have found an id, they must all have the same. `ids` are
// cut over the replicas, the classes of `x` (and the rows of the table) over the model axis.
FoundId found_on(const Mesh& mesh, bool delayed, const std::vector<i32>& ids,
                 const std::function<void(const Tensor& x, const Tensor& ids)>& body) {
  FoundId out;
  std::mutex mutex;
  run_threads(mesh.ranks(), [&](Group& g) {
    kernels::set_threads(1);
    Context c(mesh, g.split(0), delayed ? Queue::delayed(cpu_device(), 1) : Queue::immediate(cpu_device()));
    const Context::Use use(c);
    const i64 n = static_cast<i64>(ids.size());
    std::vector<double> values(static_cast<std::size_t>(n * kClasses), 0.25);
    const Tensor x = redco::testing::place({n, kClasses}, values,
                                           redco::testing::on_mp(Placement::sharded(1)), DType::f32);
    body(x, from_ids({n}, ids, batch_layout()));
    const std::optional<BadId> bad = c.queue().take_bad_id();
    EXPECT_FALSE(c.queue().take_bad_id()) << "an id is reported once";
    if (!bad) return;
    const std::lock_guard lock(mutex);
    const FoundId mine = std::tuple(bad->use, bad->id, bad->end);
    EXPECT_TRUE(!out || out == mine);
    out = mine;
  });
  return out;
}

// A table of kClasses rows, cut along them.
Tensor table_of_rows() {
  return redco::testing::place({kClasses, 2}, std::vector<double>(2 * kClasses, 0.5),
                               redco::testing::on_mp(Placement::sharded(0)), DType::f32);
}

struct IdCase {
  const char* name;
  std::vector<i32> ids;
  std::function<void(const Tensor& x, const Tensor& ids)> body;
  FoundId expected;
};

std::vector<IdCase> id_cases() {
  const auto loss = [](const Tensor& x, const Tensor& ids) { cross_entropy(x, ids); };
  const auto smooth = [](const Tensor& x, const Tensor& ids) { cross_entropy(x, ids, 0.1); };
  const auto composed = [](const Tensor& x, const Tensor& ids) { cross_entropy_composed(x, ids); };
  const auto pick_last = [](const Tensor& x, const Tensor& ids) { pick(x, ids); };
  const auto rows = [](const Tensor&, const Tensor& ids) { embedding(table_of_rows(), ids); };
  // The gradient skips the frozen row with an id outside of the table.
  const auto gradients = [](const Tensor&, const Tensor& ids) {
    const Tensor table = table_of_rows().watched();
    const Tensor y = sum_all(square(embedding(table, ids, 2)));
    const Tensor g = grad(y, {table}, {.create_graph = true})[0];
    grad(sum_all(square(g)), {table});
  };
  const auto both = [](const Tensor& x, const Tensor& ids) {
    pick(x, ids);
    embedding(table_of_rows(), ids);
  };
  const auto tuple = [](IdUse use, i64 id) { return FoundId({use, id, kClasses}); };
  return {{"labels", {0, -100, 5, 3}, loss, {}},
          {"a label beyond the classes", {0, -100, 5, 6}, loss, tuple(IdUse::label, 6)},
          {"a negative label", {0, -100, 5, -1}, loss, tuple(IdUse::label, -1)},
          {"smoothing", {0, 1, -100, 6}, smooth, tuple(IdUse::label, 6)},
          {"composed", {0, 1, -100, -7}, composed, tuple(IdUse::label, -7)},
          {"composed, labels", {0, 1, -100, 5}, composed, {}},
          {"negative indices", {0, -1, -100, 5}, pick_last, {}},
          {"an index beyond the dim", {0, -1, 5, 1000000}, pick_last, tuple(IdUse::element, 1000000)},
          {"rows", {0, 1, 2, 5}, rows, {}},
          {"a row beyond the table", {0, 1, 2, 6}, rows, tuple(IdUse::row, 6)},
          {"a negative row", {0, 1, 2, -100}, rows, tuple(IdUse::row, -100)},
          {"gradients with a frozen row", {0, 2, 2, 5}, gradients, {}},
          {"the first op", {0, 1, 2, 7}, both, tuple(IdUse::element, 7)}};
}

TEST(BadIds, AreFoundOnEveryMeshAndQueue) {
  for (const IdCase& c : id_cases())
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
      for (const bool delayed : {false, true})
        EXPECT_EQ(found_on(mesh, delayed, c.ids, c.body), c.expected)
            << c.name << " on " << mesh.dp() << "x" << mesh.mp() << (delayed ? ", delayed" : "");
}

TEST(BadIds, APlannedRankFindsNone) {
  const auto c = Context::meta({1, 2}, 0);
  const Context::Use use(*c);
  cross_entropy(zeros({4, kClasses}), from_ids({4}, {}));
  EXPECT_FALSE(c->queue().take_bad_id());
}

}  // namespace
}  // namespace redco
