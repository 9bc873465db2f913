// Users' pipelines (tests/outside/project): one differentiates gradients, the other has two losses and its
// own examples.
#include <cmath>
#include <csignal>

#include "autograd/grad.h"
#include "comm/group.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "outside_testing.h"
#include "pipeline/pipeline.h"

namespace redco::test {
namespace {

// A sum of n fp32 numbers in another order differs by about sqrt(n) x 6e-8; the longest sums here have 6
// points x 32 units. AdamW's update has the relative difference of the gradient, ten steps add up, and a step
// of 3e-3 changes a loss by a few per cent: about 1e-6 of the loss (measured: 1.1e-6). A gradient that is
// lost or counted twice on a rank changes the third digit.
constexpr double kRounding = 1e-5;

TEST_F(Outside, AlgorithmsRunUnchangedOnAnyMesh) {
  for (const std::string name : {"maml", "actor_critic"}) {
    good(name, name + "-1x1", mesh(1, 1));
    const auto one = losses(name + "-1x1");
    ASSERT_EQ(one.count({10, "grad_norm"}), 1u);
    ASSERT_EQ(one.count({10, name == "maml" ? "eval_loss" : "actor"}), 1u);
    const std::map<std::string, std::string> others = {
        {"2x1", mesh(2, 1)},
        {"1x2", mesh(1, 2)},
        {"2x2", mesh(2, 2)},
        {"accumulated", mesh(1, 1) + " train.per_device_batch_size=3"}};
    for (const auto& [what, words] : others) {
      good(name, name + "-" + what, words);
      const auto other = losses(name + "-" + what);
      ASSERT_EQ(other.size(), one.size()) << name << " " << what;
      for (const auto& [key, value] : one)
        EXPECT_NEAR(other.at(key), value, kRounding * std::abs(value))
            << name << " " << what << ", step " << key.first << ", " << key.second;
    }
  }
  // The actor learns in steps 0, 2, 4, 6, 8; AdamW has no state for target networks.
  const Json state = Json::parse(slurp(*dir_ / "actor_critic-1x1/checkpoints/last/training/state.json"));
  EXPECT_EQ(state["group_steps"], Json({{"actor", 5}, {"critic", 10}}));
  EXPECT_EQ(state["optimizer_steps"], 10);
}

// Seven steps end inside an epoch of both pipelines: the actor's transitions come from earlier parameters.
TEST_F(Outside, AResumedRunEqualsAnUninterruptedRun) {
  for (const std::string name : {"maml", "actor_critic"}) {
    for (const auto& [what, words] :
         std::map<std::string, std::string>{{"one", mesh(1, 1)}, {"four", mesh(2, 2)}}) {
      const std::string straight = name + "-straight-" + what, resumed = name + "-resumed-" + what;
      good(name, straight, words);
      good(name, resumed, words + " train.max_steps=7");
      good(name, resumed, words);
      for (const std::string file :
           {"model.safetensors", "training/optimizer.safetensors", "training/state.json"})
        EXPECT_TRUE(slurp(*dir_ / (straight + "/checkpoints/last/" + file)) ==
                    slurp(*dir_ / (resumed + "/checkpoints/last/" + file)))
            << name << " on " << what << ": " << file;
      auto a = losses(straight), b = losses(resumed);
      b.erase({7, "eval_loss"});  // the first part's last evaluation
      EXPECT_EQ(a, b) << name << " on " << what;
    }
  }
}

// The linear layers must be sharded (column-parallel and row-parallel in turn), or equal results on meshes
// would prove nothing.
TEST_F(Outside, OwnLinearLayersAreShardedByTheRules) {
  const auto cut = [&](const std::string& name) {
    std::map<std::string, int> dims;
    const auto pipeline = load_pipeline(*dir_ / ("so/" + name + ".so"));
    const auto& specs = pipeline->params().specs;
    const ShardedSpecs s = shard_specs(specs, 2);
    for (std::size_t i = 0; i < specs.size(); ++i) dims[specs[i].name] = s.sharding.rules[i].dim;
    return dims;
  };
  auto dims = cut("maml");
  EXPECT_EQ(dims.at("net.fc1.weight"), 0);
  EXPECT_EQ(dims.at("net.fc2.weight"), 1);
  EXPECT_EQ(dims.at("net.fc3.weight"), 0);
  EXPECT_EQ(dims.at("net.fc4.weight"), 1);
  dims = cut("actor_critic");
  for (const std::string net : {"actor", "critic", "target.actor", "target.critic"}) {
    EXPECT_EQ(dims.at(net + ".fc1.weight"), 0);
    EXPECT_EQ(dims.at(net + ".fc2.weight"), 1);
  }
}

// The loss contains a gradient, so its gradient g contains second derivatives. The derivative of the loss
// along g is |g|^2. With a first-order gradient g' it would not be |g'|^2.
TEST_F(Outside, TheLossAfterAnInnerStepHasAnExactGradient) {
  kernels::set_threads(1);
  Context context({1, 1}, make_self_group());
  const Context::Use use(context);
  const auto pipeline = load_pipeline(*dir_ / "so/maml.so");
  ParamTree params = make_params(pipeline->params(), shard_specs(pipeline->params().specs, 1).layouts);
  initialize(params, 3);
  const auto data = pipeline->source(params, {});
  std::vector<Example> rows;
  for (i64 i = 0; i < data->size(); ++i) rows.push_back(data->get(i));
  const Batch batch = pipeline->collate(rows, {.rows = data->size(), .mine = {0, data->size()}});
  const ParamTree p = params.watched();
  const std::vector<Tensor> g = grad(pipeline->loss(p, batch, {})[0].sum, p.values());
  double squares = 0;
  for (const Tensor& t : g)
    for (const double v : to_values(t)) squares += v * v;
  // A central difference with step 1e-2: its error is of third order, and rounding is 1e-7 / 1e-2 of the
  // loss.
  const double h = 5e-3 / std::sqrt(squares);
  double change = 0;
  for (const double sign : {1.0, -1.0}) {
    std::vector<Tensor> moved;
    for (std::size_t i = 0; i < g.size(); ++i) {
      std::vector<double> v = to_values(params.values()[i]);
      const std::vector<double> d = to_values(g[i]);
      std::vector<float> to(v.size());
      for (std::size_t k = 0; k < v.size(); ++k) to[k] = static_cast<float>(v[k] + sign * h * d[k]);
      moved.push_back(from_values(g[i].shape(), std::span<const float>(to)));
    }
    change += sign * item(pipeline->loss(params.with_values(moved), batch, {})[0].sum);
  }
  EXPECT_NEAR(change / (2 * h), squares, 2e-3 * squares);
}

TEST_F(Outside, FilesThatAreNotPipelinesAreRefused) {
  spill(*dir_ / "text.so", "no shared object\n");
  spill(*dir_ / "part.so", slurp(*dir_ / "so/fails.so").substr(0, 20000));
  const std::map<std::string, std::string> why = {
      {"./so/other_version.so",
       "was built against other headers than this redco: it has the interface 0123456789abcdef, libstdc++ "
       "12, this redco has "},
      {"./so/no_pipeline.so", "is not a pipeline. Add REDCO_PIPELINE(Class) to its source"},
      {"./so/unlinked.so",
       "undefined symbol: _ZN5redco4goneEi. Expected a Python file (.py), or a shared object built with this version"},
      {"./nowhere.so", "./nowhere.so does not exist"},
      {"./text.so", "./text.so can't be loaded: "},
      {"./part.so", "./part.so is incomplete: 20000 of "},
      {"./so", "can't be loaded: "}};
  for (const auto& [path, words] : why) {
    const std::string ranks = path == "./so/other_version.so" ? "2" : "1";
    const Ran r = train(path, "refused", "train.global_batch_size=4 parallel.n_ranks=" + ranks);
    EXPECT_EQ(r.code, 2) << path << r.said;
    EXPECT_THAT(r.said, HasSubstr("error: [pipeline] "));
    EXPECT_THAT(r.said, HasSubstr(words));
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
  }
}

TEST_F(Outside, MistakesInAPipelineAreNamed) {
  struct Case {
    std::string how;
    int ranks, code;
    std::string words;
  };
  const Case cases[] = {
      {"made", 2, 2, "[pipeline] the constructor failed: not today"},
      {"exception", 2, 2, "rank 1: [pipeline] loss() failed: the loss went wrong"},
      {"number", 2, 2, "rank 1: [pipeline] loss() failed with an exception that is not a std::exception"},
      {"no term", 1, 2, "[pipeline] loss() returned no term"},
      {"term", 1, 2, "[pipeline] loss() returned no term 'loss', which the parameter group 'all' minimizes"},
      {"twice", 1, 2, "[pipeline] fc1.weight is in two parameter groups, 'all' and 'again'"},
      {"empty", 1, 2, "[pipeline] the parameter group 'again' has no parameters"},
      {"no groups", 1, 2, "[pipeline] groups() has only moving averages"},
      {"period", 1, 2, "[pipeline] parameter group 'all' has a period of 0; expected 1 or more"},
      {"follows", 1, 2, "[pipeline] fc2.weight follows 'fc3.weight', which is not a parameter"},
      {"shape", 1, 2, "[pipeline] fc2.weight (2, 2) follows fc1.weight (3, 2)"},
      {"grows", 1, 2,
       "[pipeline] source() returned 9 examples for epoch 1 and 8 before; expected the same number"},
      {"nothing", 1, 3, "[data] the training data have no examples"},
      {"state", 2, 2, "[pipeline] state() returned no JSON: {"},
      {"field", 1, 2,
       "[pipeline] loss() failed: the batch has no field 'xx'; its fields are x; did you mean 'x'? "
       "(fails.cpp:"},
      {"parameter", 1, 2,
       "[pipeline] loss() failed: no parameter is named 'fc1.wieght'; did you mean 'fc1.weight'?"},
      {"example", 1, 2, "[pipeline] collate() failed: an example has no field 'y'; it has x"},
      {"matrix", 1, 2, "[pipeline] loss() failed: [linear] "},
      {"vector", 1, 2, "expected a number of one element. sum_all() adds up a tensor"},
      {"tokenizer", 1, 2, "[model] this pipeline needs a tokenizer. Set model.tokenizer"},
      {"model", 1, 2, "[model] this pipeline needs a model. Set model.path, model.preset or model.arch"},
      {"extra", 1, 2,
       "the parameter fc1.weight is declared twice. A parameter of the pipeline needs a name that no other one of "
       "the pipeline or of the model has"},
      {"weights", 2, 2,
       "[pipeline] collate() failed: it returned weights of other terms on other replicas: loss and lost. The "
       "pipeline is ./so/fails.so ("},
      {"more terms", 1, 2, "[pipeline] collate() returned no weight for the term 'more'"},
      {"same terms", 1, 2, "[pipeline] loss() failed: it returned two terms of the name 'loss'"},
      {"not a weight", 1, 2, "the weight of the term 'loss' is nan; expected 0 or a positive number"},
      {"negative", 2, 2, "the weight of the term 'loss' is -1; expected 0 or a positive number"},
      {"no shape", 1, 2,
       "[pipeline] collate() failed: it returned a batch of 0 rows and length 0; expected the"},
      {"no value", 1, 2, "[pipeline] collate() failed: the field 'z' has no value"},
      {"crash", 1, 128 + SIGSEGV,
       "[pipeline] loss() failed by SIGSEGV: it uses memory that it does not own, such as a null pointer"},
      {"crash", 2, 5, "[pipeline] loss() failed by SIGSEGV"},
      {"not a number", 1, 6, "[train] step 1: the loss or gradient is not finite (loss nan"},
      {"source", 2, 2,
       "[pipeline] source() returned other data on rank 1 than on rank 0: 9 examples (rows); 8 examples (rows)"},
      {"order", 1, 2, "the order of an ExampleList has the number 8; expected 0 to 7"},
      {"notes", 1, 2, "[pipeline] notes() has a value 'loss', a name that metrics.jsonl has already"},
      {"no has", 1, 2, "[pipeline] parameter group 'all' has no function `has`"},
      {"rate", 1, 2, "[pipeline] the parameter group 'all' has the learning rate nan in step 1"},
      {"itself", 1, 2, "[pipeline] fc2.weight follows fc2.weight, which is in the same group 'again'"},
      {"sizes", 1, 2, "the parameter head is declared with the shape (-1, 2); expected positive sizes"},
      {"rank", 2, 2,
       "step 1: loss() computed differently on ranks of one replica: another value of a term (rank 0: loss "},
  };
  for (const Case& c : cases) {
    std::filesystem::remove_all(*dir_ / "failed");
    setenv("OUTSIDE_FAILS", c.how.c_str(), 1);
    const Ran r = train("./so/fails.so", "failed",
                        "train.global_batch_size=4 parallel.n_ranks=" + std::to_string(c.ranks) +
                            (c.how == "rank" ? " parallel.n_model_shards=2" : ""));
    EXPECT_EQ(r.code, c.code) << c.how << "\n" << r.said;
    EXPECT_THAT(r.said, HasSubstr(c.words)) << c.how;
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << c.how << "\n" << r.said;
  }
  unsetenv("OUTSIDE_FAILS");
}

// Users' builds need fmt besides redco, for the messages in headers, and nothing else.
TEST_F(Outside, NoDependencyButFmtReachesUsers) {
  const std::string lib = std::filesystem::exists(*dir_ / "prefix/lib/cmake/redco")
                              ? "prefix/lib"
                              : "prefix/" + cached("CMAKE_INSTALL_LIBDIR");
  const std::string targets = slurp(*dir_ / (lib + "/cmake/redco/redcoTargets.cmake"));
  EXPECT_THAT(targets, HasSubstr("INTERFACE_LINK_LIBRARIES \"fmt::fmt\""));
  EXPECT_THAT(targets, HasSubstr("INTERFACE_INCLUDE_DIRECTORIES \"${_IMPORT_PREFIX}/include/redco\""));
  EXPECT_EQ(targets.find(std::string(REDCO_SOURCE_DIR) + "/"), std::string::npos)
      << "a path of this machine is installed";
}

}  // namespace
}  // namespace redco::test
