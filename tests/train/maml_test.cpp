// Pipeline maml: its gradients against PyTorch and against single tasks, its tasks, and equal losses on all
// meshes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "autograd/grad.h"
#include "base/error.h"
#include "models/spec_builder.h"
#include "nn/inner_loop.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/maml_tasks.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "train/mean_terms.h"
#include "train/step.h"
#include "verify/verify.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using namespace redco::testing;
using Order = FastWeights::Order;

// --- verify
TEST(MamlFixtures, MetaGradientsEqualPyTorch) {
  for (const char* name : {"maml-cnn", "maml-cnn-3steps"})
    for (const auto& [mesh, sharding] :
         {std::pair(Mesh{1, 1}, StateSharding::none), std::pair(Mesh{1, 2}, StateSharding::none),
          std::pair(Mesh{2, 1}, StateSharding::none), std::pair(Mesh{2, 2}, StateSharding::none),
          std::pair(Mesh{2, 1}, StateSharding::parameters), std::pair(Mesh{2, 2}, StateSharding::parameters)})
      on_mesh(mesh, [&](Context& c) {
        const VerifyReport r =
            verify({.folder = std::string(REDCO_FIXTURES) + "/" + name, .sharding = sharding});
        if (c.rank() != 0) return;
        EXPECT_TRUE(r.passed) << name << "\n" << to_text(r);
        EXPECT_EQ(std::count_if(r.lines.begin(), r.lines.end(), [](const auto& l) { return l.checked; }), 20);
        EXPECT_EQ(r.lines.size(), 20u);
      });
}

// --- fast weights
constexpr i64 kTasks = 3, kRows = 2, kWide = 48;  // factored gradients are smaller for a, not for b

ModelParams two_layers() {
  ModelParams params;
  SpecBuilder b(params);
  b.linear("net.a", kWide, kWide, true, 1);
  b.linear("net.b", 2, kWide, true, 1);
  return params;
}

Tensor squares(const ParamTree& p, const Tensor& x, bool recomputed = false) {  // any leading dims
  const ApplyOptions o{.recompute_blocks = recomputed};
  const Tensor h = run_block(
      p, o, "a", x, [](const ParamTree& q, const Tensor& in) { return tanh(dense(q, "net.a", in)); });
  const Tensor y =
      run_block(p, o, "b", h, [](const ParamTree& q, const Tensor& in) { return dense(q, "net.b", in); });
  const Tensor each = square(y);
  return sum_all((each * y).with_hidden(0));
}

struct Outcome {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
};

ParamTree double_params(const ModelParams& params, const std::vector<Layout>& layouts) {
  ParamTree tree(params.specs, params.aliases);
  Random random(3);
  for (size_t i = 0; i < tree.size(); ++i)
    tree.values()[i] = place(params.specs[i].shape, random.values(numel(params.specs[i].shape), -0.2, 0.2),
                             layouts.empty() ? Layout{} : layouts[i]);
  return tree;
}

std::vector<double> rows_of(u64 seed) { return Random(seed).values(kTasks * kRows * kWide); }

Outcome outcome(const Tensor& loss, const ParamTree& watched, bool differentiable) {
  Outcome o;
  o.loss = item(loss);
  if (differentiable)
    for (const Tensor& g : grad(loss, watched.values())) o.gradients.push_back(to_values(g));
  return o;
}

// All tasks in one batch.
Outcome together(const std::vector<Layout>& layouts, Order order, int steps, bool recomputed) {
  const ModelParams specs = two_layers();
  const ParamTree params = double_params(specs, layouts);
  const auto x = [](u64 seed) {
    return place({kTasks, kRows, kWide}, rows_of(seed), batch_layout()).with_hidden(1);
  };
  const ParamTree shared = order == Order::none ? params : params.watched();
  FastWeights fast(specs, shared, kTasks, order);
  for (int k = 0; k < steps; ++k)
    fast.descend([&](const ParamTree& p) { return squares(p, x(10 + k), recomputed); }, 0.1);
  return outcome(squares(fast.params(), x(9), recomputed), shared, order != Order::none);
}

// One task after another, with explicit weights.
Outcome one_by_one(Order order, int steps) {
  const ModelParams specs = two_layers();
  const ParamTree shared = double_params(specs, {}).watched();
  std::vector<Tensor> losses;
  for (i64 t = 0; t < kTasks; ++t) {
    const auto x = [t](u64 seed) {
      return reshape(narrow(place({kTasks, kRows, kWide}, rows_of(seed), {}), 0, t, 1), {kRows, kWide});
    };
    std::vector<Tensor> own = shared.values();
    for (int k = 0; k < steps; ++k) {
      const ParamTree p = shared.with_values(own);
      const auto g = grad(squares(p, x(10 + k)), own, {.create_graph = true});
      for (size_t i = 0; i < own.size(); ++i)
        own[i] = own[i] - 0.1 * (order == Order::second ? g[i] : g[i].detached());
    }
    losses.push_back(squares(shared.with_values(own), x(9)));
  }
  return outcome(add(losses), shared, order != Order::none);
}

// In f64: some hundred additions in another order.
TEST(FastWeights, BatchedTasksEqualSingleTasks) {
  const auto layouts = shard_specs(two_layers().specs, 2).layouts;
  for (const Order order : {Order::none, Order::first, Order::second})
    for (const int steps :
         {0, 1, 2, 4}) {  // after the fourth step, a's factored gradients are not smaller any more
      SCOPED_TRACE(fmt::format("order {}, {} steps", static_cast<int>(order), steps));
      Outcome want;
      on_one_rank([&](Context&) { want = one_by_one(order, steps); });
      for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
        on_mesh(mesh, [&](Context& c) {
          for (const bool recomputed : {false, true}) {
            SCOPED_TRACE(recomputed ? "recomputed" : "kept");
            const Outcome got =
                together(mesh.mp() == 2 ? layouts : std::vector<Layout>(4), order, steps, recomputed);
            EXPECT_NEAR(got.loss, want.loss, 1e-12 * std::abs(want.loss)) << c.rank();
            ASSERT_EQ(got.gradients.size(), want.gradients.size());
            for (size_t i = 0; i < want.gradients.size(); ++i)
              EXPECT_LT(distance(got.gradients[i], want.gradients[i]), 1e-11) << "parameter " << i;
          }
        });
    }
}

// --- the pipeline
struct Job {
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline = make_maml_pipeline();
  Job(const std::string& config, const std::string& data, MamlSettings maml) {
    model = make_model({config, "config.json"});
    auto s = std::make_shared<PipelineSettings>();
    s->maml = maml;
    s->data.train = s->data.eval = {data};
    pipeline->settings = s;
    pipeline->model = model.get();
    pipeline->train_data = pipeline->open({.files = {data}});
  }
};
const char* const kCnn =
    R"({"model_type": "cnn", "image_size": 8, "conv_channels": [4], "hidden_sizes": [64], "num_labels": 2})";
const char* const kMixer =
    R"({"model_type": "mlp-mixer", "image_size": 8, "patch_size": 4, "num_channels": 1, "hidden_size": 24,
        "num_hidden_layers": 2, "tokens_mlp_dim": 8, "channels_mlp_dim": 48, "num_labels": 2})";
const char* const kMlp =
    R"({"model_type": "mlp", "input_size": 1, "hidden_sizes": [12, 12], "hidden_act": "tanh"})";
MamlSettings two_ways() { return {.n_ways = 2, .inner_learning_rate = 0.1, .tasks_per_epoch = 12}; }

// Losses of 20 steps of 3 tasks, which is uneven on two replicas.
std::vector<double> train(const Mesh& mesh, const std::string& config, const std::string& data,
                          const MamlSettings& maml, std::map<std::string, double>* metrics = nullptr,
                          const StepOptions& options = {}, int steps = 20) {
  std::vector<double> losses;
  on_mesh(mesh, [&](Context& c) {
    Job job(config, data, maml);
    ParamTree params =
        make_params(job.model->params(), shard_specs(job.model->params().specs, c.mesh().mp()).layouts);
    initialize(params, 1);
    TrainStep step(*job.pipeline, params, options);
    const auto batch_of = [&](const Dataset& data, i64 first, i64 rows) {
      const Range mine = shard_range(rows, 1, c.mesh().dp(), c.coord().dp());
      std::vector<Example> examples;
      for (i64 r = mine.begin; r < mine.end; ++r) examples.push_back(data.get((first + r) % data.size()));
      return job.pipeline->collate(examples, {.rows = rows, .mine = mine, .length = 1});
    };
    for (i64 s = 0; s < steps; ++s) {
      StepContext ctx;
      ctx.epoch = s / 4;
      const auto tasks = job.pipeline->source(params, ctx);
      const StepOutcome out = step.run({batch_of(*tasks, s % 4 * 3, 3)}, {0}, s, ctx.epoch, 3e-3);
      ASSERT_TRUE(out.finite);
      if (c.rank() == 0) losses.push_back(out.loss);
    }
    if (!metrics) return;
    const auto eval = job.pipeline->open({.evaluation = true, .files = {data}});
    i64 at = 0;
    const auto means = mean_terms(*job.pipeline, params, [&](Batch* b) {
      if (at >= eval->size()) return false;
      *b = batch_of(*eval, at, std::min<i64>(8, eval->size() - at));
      at += 8;
      return true;
    });
    if (c.rank() == 0) *metrics = job.pipeline->metrics(means);
  });
  return losses;
}

// fp32: the same sums in another order, 20 times: within 1e-4.
TEST(Maml, LossesAreEqualOnAllMeshes) {
  struct Case {
    const char *config, *data;
    i64 steps, shots;
  };
  for (const Case& k : {Case{kCnn, "builtin:glyphs", 1, 1}, Case{kMlp, "builtin:sinusoid", 2, 5}}) {
    MamlSettings maml = two_ways();
    maml.inner_steps = k.steps;
    maml.n_shots = k.shots;
    maml.eval_tasks = 20;
    std::map<std::string, double> metrics, others;
    const auto want = train({1, 1}, k.config, k.data, maml, &metrics);
    ASSERT_EQ(want.size(), 20u);
    for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}}) {
      const auto got = train(mesh, k.config, k.data, maml, &others);
      for (size_t s = 0; s < want.size(); ++s)
        EXPECT_NEAR(got[s], want[s], 1e-4 * want[s]) << k.data << " step " << s;
      EXPECT_NEAR(others["loss"], metrics["loss"], 1e-4 * metrics["loss"]);
    }
    if (std::string(k.config) != kCnn) continue;
    EXPECT_GE(metrics["accuracy"],
              0.5);  // two classes with one image each: even random features separate some
    EXPECT_GT(metrics["accuracy_ci95"], 0);
    EXPECT_LT(metrics["accuracy_ci95"], 0.25);
  }
}

// Activation recomputation: fast weights are temporary, and gradients are factored. The first loss has the
// same bits. Second derivatives are summed in another order: fp32, two updates.
TEST(Maml, RecomputeGivesTheSameLosses) {
  for (const i64 inner : {1, 2}) {
    MamlSettings maml = two_ways();
    maml.inner_steps = inner;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}}) {
      const auto kept = train(mesh, kMixer, "builtin:glyphs", maml, nullptr, {}, 3);
      ASSERT_EQ(kept.size(), 3u);
      EXPECT_NE(kept[0], kept[2]);
      const auto again = train(mesh, kMixer, "builtin:glyphs", maml, nullptr, {.recompute_blocks = true}, 3);
      ASSERT_EQ(again.size(), 3u);
      EXPECT_EQ(again[0], kept[0]);
      for (size_t s = 1; s < 3; ++s) EXPECT_NEAR(again[s], kept[s], 1e-5 * kept[s]);
    }
  }
}

TEST(Maml, TasksDependOnSeedEpochAndIndex) {
  on_one_rank([](Context&) {
    auto classes = std::make_shared<ImageClasses>();
    classes->shape = {1, 2, 2};
    for (int c = 0; c < 3; ++c) {
      classes->names.push_back(std::to_string(c));
      auto& images = classes->images.emplace_back();
      for (int k = 0; k < 4; ++k)
        images.push_back(
            {static_cast<float>(10 * c + k), 100, 200, 300});  // the first pixel identifies the image
    }
    MamlSettings s{.n_ways = 3, .n_shots = 2, .n_query = 2};
    const TaskSet tasks(classes, s, 50, 7, false);
    EXPECT_EQ(tasks.size(), 50);
    EXPECT_EQ(tasks.get(3).values, tasks.of_epoch(nullptr, 0, 0)->get(3).values);
    EXPECT_NE(tasks.get(3).values, tasks.of_epoch(nullptr, 0, 1)->get(3).values);
    EXPECT_NE(tasks.get(3).values, tasks.get(4).values);
    EXPECT_NE(tasks.get(3).values, TaskSet(classes, s, 50, 8, false).get(3).values);
    EXPECT_NE(tasks.get(3).values, TaskSet(classes, s, 50, 7, true).get(3).values);
    std::set<float> first;
    for (i64 i = 0; i < 50; ++i) {
      const Example e = tasks.get(i);
      EXPECT_THAT(e.ids.at("support_y"), ::testing::ElementsAre(0, 0, 1, 1, 2, 2));
      EXPECT_EQ(e.ids.at("support_y"), e.ids.at("query_y"));
      std::set<float> seen;
      for (const char* set : {"support_x", "query_x"})
        for (size_t k = 0; k < 24; k += 4) seen.insert(e.values.at(set)[k]);
      EXPECT_EQ(seen.size(), 12u);  // no image twice: all 4 of all 3 classes
      for (size_t k = 0; k < 24; k += 4)
        EXPECT_EQ(static_cast<int>(e.values.at("support_x")[k]) / 10,
                  static_cast<int>(e.values.at("query_x")[k]) / 10);
      first.insert(e.values.at("support_x")[0]);
    }
    EXPECT_GE(first.size(), 10u);  // of 12
    // Rotated to the left: (0, 1; 2, 3) becomes (1, 3; 0, 2). Three classes in four rotations are twelve.
    s.n_ways = 12;
    s.rotations = true;
    std::set<std::vector<float>> turned;
    const Example e = TaskSet(classes, s, 1, 7, false).get(0);
    for (size_t k = 0; k < e.values.at("support_x").size(); k += 8) {
      std::vector<float> image(e.values.at("support_x").begin() + k,
                               e.values.at("support_x").begin() + k + 4);
      for (float& p : image) p = p < 100 ? 0 : p;
      turned.insert(image);
    }
    EXPECT_EQ(turned, (std::set<std::vector<float>>{
                          {0, 100, 200, 300}, {100, 300, 0, 200}, {300, 200, 100, 0}, {200, 0, 300, 100}}));
    // Evaluation doesn't rotate classes.
    EXPECT_THAT(error_text<ContentsError>([&] { TaskSet(classes, s, 1, 7, true); }), HasSubstr("3 classes"));
    s = {.n_ways = 2, .n_shots = 3, .n_query = 2};
    EXPECT_THAT(error_text<ContentsError>([&] { TaskSet(classes, s, 1, 7, false); }),
                ::testing::AllOf(HasSubstr("class '0' has 4 examples"), HasSubstr("= 5")));
  });
}

TEST(Maml, ContradictionsAreErrors) {
  on_one_rank([](Context&) {
    EXPECT_THAT(usage_error([] { Job(kCnn, "builtin:glyphs", {.n_ways = 5}); }), HasSubstr("num_labels=5"));
    EXPECT_THAT(usage_error([] { Job(kCnn, "builtin:glyph", two_ways()); }), HasSubstr("builtin:glyphs"));
    EXPECT_THAT(usage_error([] { Job(kMlp, "builtin:glyphs", two_ways()); }), HasSubstr("builtin:sinusoid"));
    EXPECT_THAT(usage_error([] {
                  Job(R"({"model_type": "mlp", "input_size": 2, "hidden_sizes": [4]})", "builtin:sinusoid",
                      two_ways());
                }),
                HasSubstr("input_size=1"));
    const Job cnn(kCnn, "builtin:glyphs", two_ways()), mlp(kMlp, "builtin:sinusoid", two_ways());
    for (const auto& [job, line, what] : std::vector<std::tuple<const Job*, std::string, std::string>>{
             {&mlp, "7", "support"},
             {&mlp, R"({"support": []})", "support"},
             {&mlp, R"({"support": [[1, 2]]})", "query"},
             {&mlp, R"({"support": [[1]], "query": [1]})", "[x, y]"},
             {&mlp, R"({"support": [[1, 2]], "query": ["a"]})", "a number"},
             {&cnn, R"({"support": [{"label": 1}], "query": []})", "\"image\""}})
      EXPECT_THAT(error_text<ContentsError>([&, &line = line] { job->pipeline->request(line, "line 4"); }),
                  ::testing::AllOf(HasSubstr("line 4"), HasSubstr(what)))
          << line;
    // A task in a line: one point more of a curve than in training.
    const auto e = mlp.pipeline->request(R"({"support": [[0, 1], [1, 2]], "query": [0.5, 1, 2]})", "line 1");
    ParamTree params =
        make_params(mlp.model->params(), std::vector<Layout>(mlp.model->params().specs.size()));
    initialize(params, 1);
    const auto other = mlp.pipeline->request(R"({"support": [[0, 3]], "query": [0.5, 1, 2]})", "line 2");
    const NoGrad off;  // as in the predictor
    const auto said = mlp.pipeline->predict(params, std::vector<Example>{*e, *other}, {});
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(std::count(said[0].begin(), said[0].end(), ','), 2) << said[0];
    EXPECT_NE(said[0], said[1]);
    EXPECT_THAT(mlp.pipeline->output(*e, said[0]),
                ::testing::AllOf(HasSubstr(R"("support":[[0,1],[1,2]])"), HasSubstr(said[0].substr(1))));
  });
}

}  // namespace
}  // namespace redco
