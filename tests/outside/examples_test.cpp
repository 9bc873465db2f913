// The documentation's examples, federated averaging and differential privacy, against direct implementations
// without redco; and the skeleton of a pipeline.
#include <cmath>

#include "autograd/grad.h"
#include "metrics/privacy.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "outside_testing.h"
#include "support/ranks.h"
#include "train/step.h"

namespace redco::test {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using ::testing::Each;

// Images of 4 x 4 pixels in three classes: a pattern for each class, and noise.
std::shared_ptr<const Dataset> small_images(i64 n) {
  std::vector<Example> out(n);
  redco::testing::Random random(7);
  const std::vector<double> patterns = random.values(3 * 16), noise = random.values(n * 16);
  for (i64 i = 0; i < n; ++i) {
    const i32 label = static_cast<i32>(i * 7 % 11 % 3);
    out[i].ids["label"] = {label};
    for (i64 k = 0; k < 16; ++k)
      out[i].values["pixel_values"].push_back(
          static_cast<float>(patterns[label * 16 + k] + 0.5 * noise[i * 16 + k]));
  }
  return std::make_shared<ExampleList>(std::move(out), "small images");
}

// The pipeline of an example and some of its steps, on this rank of a mesh.
struct Steps {
  Steps(const std::string& so, i64 rows, const std::string& own) : rows(rows), pipeline(load_pipeline(so)) {
    pipeline->train_data = small_images(503);  // not a multiple of the clients' shards
    Context& c = Context::current();
    c.random = {.seed = 3};
    PipelineSettings settings;
    settings.train.seed = 3;
    settings.train.global_batch_size = rows;
    settings.own = own;
    pipeline->settings = std::make_shared<PipelineSettings>(settings);
    params = make_params(pipeline->params(), shard_specs(pipeline->params().specs, c.mesh().mp()).layouts);
    initialize(params, 3);
    data = pipeline->source(params, {});
    StepOptions options;
    options.optimizer = SgdSettings{};
    step.emplace(*pipeline, params, options);
  }
  // Rows [first, first + n) of step s.
  Batch batch(i64 s, i64 first, i64 n) const {
    const Context& c = Context::current();
    BatchShape shape{.rows = n, .mine = shard_range(n, 1, c.mesh().dp(), c.coord().dp())};
    std::vector<Example> mine;
    for (i64 r = 0; r < n; ++r) {
      const i64 i = s * rows + first + r;
      shape.length = std::max(shape.length, data->length(i));
      if (r >= shape.mine.begin && r < shape.mine.end) mine.push_back(data->get(i));
    }
    return pipeline->collate(mine, shape);
  }
  StepOutcome run(i64 s, i64 per_micro_batch, double learning_rate) {
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (i64 first = 0; first < rows; first += per_micro_batch) {
      batches.push_back(batch(s, first, std::min(per_micro_batch, rows - first)));
      offsets.push_back(first);
    }
    return step->run(batches, offsets, s, 0, learning_rate);
  }
  std::vector<double> values() const {  // all parameters, concatenated
    std::vector<double> out;
    for (const Tensor& t : params.values())
      for (const double v : to_values(t)) out.push_back(v);
    return out;
  }

  i64 rows;
  std::unique_ptr<Pipeline> pipeline;
  ParamTree params;
  std::shared_ptr<const Dataset> data;
  std::optional<TrainStep> step;
};

struct Case {
  const char* name;
  i64 rows;
  std::string own;
  double learning_rate;
};
const Case kFedAvg{
    "fedavg", 5, R"({"n_clients": 20, "local_epochs": 2, "image_size": 4, "n_classes": 3, "hidden": 32})", 1};
const Case kDpSgd{
    "dp_sgd", 48,
    R"({"lot_size": 20, "clip": 0.7, "noise_multiplier": 0.8, "image_size": 4, "n_classes": 3})", 0.3};

class Examples : public Outside {
 protected:
  static std::string so(const Case& c) { return *dir_ / (fmt::format("so/{0}/{0}.so", c.name)); }
  // The example's own job, with the installed program.
  static Ran job(const Case& c, const std::string& workdir, const std::string& words) {
    return shell(dir_->path(),
                 fmt::format("timeout 100 prefix/bin/redco train '{}/docs/examples/{}/job.yaml' "
                             "pipeline=./{} workdir={} {}",
                             REDCO_SOURCE_DIR, c.name, fmt::format("so/{0}/{0}.so", c.name), workdir, words));
  }
  static Json last_line(const std::string& workdir, const std::string& with) {
    std::istringstream lines(slurp(*dir_ / (workdir + "/metrics.jsonl")));
    Json last;
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"" + with + "\"") != std::string::npos) last = Json::parse(line);
    return last;
  }
};

TEST_F(Examples, TwentyStepsAreTheSameOnAnyMesh) {
  for (const Case& c : {kFedAvg, kDpSgd}) {
    std::vector<std::pair<double, double>> one;  // loss and gradient norm of each step
    struct Way {
      Mesh mesh;
      i64 per_micro_batch;
    };
    for (const Way& way : {Way{{1, 1}, c.rows}, Way{{1, 1}, 3}, Way{{2, 1}, c.rows}, Way{{1, 2}, c.rows}})
      on_mesh(way.mesh, [&](Context& context) {
        Steps steps(so(c), c.rows, c.own);
        for (i64 s = 0; s < 20; ++s) {
          const StepOutcome o = steps.run(s, way.per_micro_batch, c.learning_rate);
          if (context.rank() > 0) continue;
          if (static_cast<i64>(one.size()) == s) one.emplace_back(o.loss, o.grad_norm);
          // Sums in another order differ by 1e-7 each. Over twenty steps with gradients of about 1e3 numbers
          // that is at most 1e-5 of the loss. Noise drawn twice, or a lost client, changes the first digits.
          EXPECT_NEAR(o.loss, one[s].first, 1e-4 * one[s].first) << c.name << " step " << s;
          EXPECT_NEAR(o.grad_norm, one[s].second, 1e-4 * one[s].second) << c.name << " step " << s;
        }
      });
    ASSERT_EQ(one.size(), 20u);
    EXPECT_LT(one.back().first, one.front().first) << c.name;
  }
}

// Two layers in fp64, with gradient descent on the mean cross-entropy of some rows.
struct Net {
  std::vector<double> w1, b1, w2, b2;  // [32, 16], [32], [3, 32], [3]
  static constexpr int kIn = 16, kHidden = 32, kOut = 3;
  void learn(const double* x, const std::vector<i32>& y, double rate) {  // y < 0: padding row
    Net g = *this;
    for (auto* v : {&g.w1, &g.b1, &g.w2, &g.b2}) std::fill(v->begin(), v->end(), 0);
    double n = 0;
    for (size_t r = 0; r < y.size(); ++r, x += kIn) {
      if (y[r] < 0) continue;
      ++n;
      double h[kHidden], dh[kHidden] = {}, o[kOut], total = 0;
      for (int j = 0; j < kHidden; ++j) {
        h[j] = b1[j];
        for (int i = 0; i < kIn; ++i) h[j] += w1[j * kIn + i] * x[i];
        h[j] = std::max(h[j], 0.0);
      }
      for (int k = 0; k < kOut; ++k) {
        o[k] = b2[k];
        for (int j = 0; j < kHidden; ++j) o[k] += w2[k * kHidden + j] * h[j];
        total += o[k] = std::exp(o[k]);
      }
      for (int k = 0; k < kOut; ++k) {
        const double d = o[k] / total - (k == y[r]);
        g.b2[k] += d;
        for (int j = 0; j < kHidden; ++j) {
          g.w2[k * kHidden + j] += d * h[j];
          dh[j] += d * w2[k * kHidden + j];
        }
      }
      for (int j = 0; j < kHidden; ++j) {
        if (h[j] == 0) continue;
        g.b1[j] += dh[j];
        for (int i = 0; i < kIn; ++i) g.w1[j * kIn + i] += dh[j] * x[i];
      }
    }
    if (n == 0) return;
    add(g, -rate / n);
  }
  void add(const Net& o, double times) {
    const std::vector<double>* from[] = {&o.w1, &o.b1, &o.w2, &o.b2};
    std::vector<double>* to[] = {&w1, &b1, &w2, &b2};
    for (int p = 0; p < 4; ++p)
      for (size_t i = 0; i < to[p]->size(); ++i) (*to[p])[i] += times * (*from[p])[i];
  }
};

TEST_F(Examples, ARoundIsTheWeightedMeanOfSeparatelyTrainedClients) {
  on_one_rank([&](Context&) {
    Steps steps(so(kFedAvg), kFedAvg.rows, kFedAvg.own);
    const auto net = [&] {
      const auto& v = steps.params.values();
      return Net{to_values(steps.params["net.fc1.weight"]), to_values(steps.params["net.fc1.bias"]),
                 to_values(v[2]), to_values(v[3])};
    };
    const Net server = net();
    const Batch b = steps.batch(0, 0, kFedAvg.rows);
    const std::vector<double> x = to_values(b["x"]), n = to_values(b["n"]);
    const std::vector<i32> y = to_ids(b["y"]);
    const i64 length = b["y"].size(1);
    Net mean = server;
    for (auto* v : {&mean.w1, &mean.b1, &mean.w2, &mean.b2}) std::fill(v->begin(), v->end(), 0);
    double all = 0;
    EXPECT_NE(*std::ranges::min_element(n), *std::ranges::max_element(n));  // so the weights matter
    for (i64 c = 0; c < kFedAvg.rows; ++c) {
      Net own = server;
      for (i64 at = 0; at < length; at += 10)
        own.learn(&x[(c * length + at) * Net::kIn],
                  {y.begin() + c * length + at, y.begin() + c * length + at + 10}, 0.1);
      // Its number of rows is that of its labels, over two passes.
      EXPECT_EQ(2 * n[c],
                length - std::count(y.begin() + c * length, y.begin() + (c + 1) * length, kIgnoredLabel));
      mean.add(own, n[c]);
      all += n[c];
    }
    steps.run(0, kFedAvg.rows, 1);
    const Net after = net();
    const std::pair<const std::vector<double>*, const std::vector<double>*> pairs[] = {
        {&after.w1, &mean.w1}, {&after.b1, &mean.b1}, {&after.w2, &mean.w2}, {&after.b2, &mean.b2}};
    // Some 50 fp32 steps of 0.1 by gradients of about 1: 50 x 0.1 x 6e-8, and the server's own rounding.
    for (const auto& [got, sum] : pairs)
      for (size_t i = 0; i < got->size(); ++i) EXPECT_NEAR((*got)[i], (*sum)[i] / all, 3e-6);
  });
}

// What a step of learning rate 1 takes off the parameters.
std::vector<double> taken(Steps& steps, i64 per_micro_batch) {
  std::vector<double> before = steps.values();
  steps.run(0, per_micro_batch, 1);
  const std::vector<double> after = steps.values();
  for (size_t i = 0; i < before.size(); ++i) before[i] -= after[i];
  return before;
}

std::string dp_settings(double clip, double noise) {
  return fmt::format(
      R"({{"lot_size": 20, "image_size": 4, "n_classes": 3, "clip": {}, "noise_multiplier": {}}})", clip,
      noise);
}

TEST_F(Examples, ClippedGradientsEqualALoopOverExamples) {
  on_one_rank([&](Context&) {
    for (const double clip : {1e6, 0.7}) {
      Steps steps(so(kDpSgd), kDpSgd.rows, dp_settings(clip, 0));
      std::vector<double> wanted(steps.values().size());
      int n = 0, clipped = 0;
      for (i64 r = 0; r < kDpSgd.rows; ++r) {
        const Batch one = steps.batch(0, r, 1);
        if (to_ids(one["y"])[0] < 0) continue;
        ++n;
        const ParamTree p = steps.params.watched();  // gradients of single examples
        std::vector<double> g;
        for (const Tensor& t : grad(steps.pipeline->loss(p, one, {})[0].sum, p.values()))
          for (const double v : to_values(t)) g.push_back(v);
        double squares = 0;
        for (const double v : g) squares += v * v;
        const double factor = std::min(1.0, clip / std::sqrt(squares));
        clipped += factor < 1;
        for (size_t i = 0; i < g.size(); ++i) wanted[i] += factor * g[i] / 20;
      }
      EXPECT_TRUE(n >= 10 && n <= 32) << n;  // Poisson sampling: 20 +- 4.5
      EXPECT_EQ(clipped > 0, clip < 1) << clipped;
      const std::vector<double> got = taken(steps, 5);
      // fp32: the parameters are about 1, so updates are rounded to 6e-8.
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6) << i;
    }
  });
}

TEST_F(Examples, NoiseDoesNotDependOnTheMicroBatches) {
  on_one_rank([&](Context&) {
    Steps quiet(so(kDpSgd), kDpSgd.rows, dp_settings(0.7, 0)),
        noisy(so(kDpSgd), kDpSgd.rows, dp_settings(0.7, 3)),
        again(so(kDpSgd), kDpSgd.rows, dp_settings(0.7, 3));
    const std::vector<double> a = taken(quiet, 48), b = taken(noisy, 48), c = taken(again, 7);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      sum += b[i] - a[i];
      squares += (b[i] - a[i]) * (b[i] - a[i]);
      EXPECT_NEAR(c[i], b[i], 1e-6);
    }
    const auto n = static_cast<double>(a.size());
    const double deviation = 3 * 0.7 / 20;
    EXPECT_NEAR(sum / n, 0, 4 * deviation / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), deviation, 4 * deviation / std::sqrt(2 * n));
  });
}

TEST_F(Examples, JobsLearnAndReportTheirEpsilon) {
  const Ran fed = job(kFedAvg, "fed", "train.max_steps=40 settings.local_epochs=2");
  ASSERT_EQ(fed.code, 0) << fed.said;
  EXPECT_GT(last_line("fed", "eval_accuracy")["eval_accuracy"], 0.8);
  const Ran dp = job(kDpSgd, "dp", "train.n_epochs=4 eval.n_outputs=2");
  ASSERT_EQ(dp.code, 0) << dp.said;
  const Json last = last_line("dp", "eval_accuracy");
  EXPECT_THAT(slurp(*dir_ / "dp/eval_outputs/step-00000080.jsonl"), HasSubstr("{\"id\":0,\"prediction\":"));
  EXPECT_GT(last["eval_accuracy"], 0.8);
  // At the end epsilon reaches the setting, up to 1e-4 of the noise multiplier.
  EXPECT_LE(last["eval_epsilon"], 8);
  EXPECT_GT(last["eval_epsilon"], 7.99);
  EXPECT_NEAR(last_line("dp", "epsilon")["epsilon"].get<double>(), last["eval_epsilon"].get<double>(), 1e-12);
}

TEST_F(Examples, MistakesInTheirSettingsAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"settings.lot_sizes=3", "unknown key settings.lot_sizes; did you mean settings.lot_size?"},
      {"settings.clip=0", "clip: expected a number > 0"},
      {"train.global_batch_size=120", "[dp_sgd] train.global_batch_size is 120"},
      {"settings.noise_multiplier=1",
       "[dp_sgd] set exactly one of settings.noise_multiplier and settings.epsilon"},
      {"data.train=[]", "[dp_sgd] data.train has 0 images"},
      {"settings.n_classes=9", "[data] data.label_names has 10 classes, but the pipeline has 9"}};
  for (const auto& [words, what] : cases) {
    const Ran r = job(kDpSgd, "wrong", words);
    EXPECT_EQ(r.code, 2) << words << r.said;
    EXPECT_THAT(r.said, HasSubstr(what)) << words;
  }
}

TEST_F(Examples, SgdResumesFromItsMomentumOnly) {
  const std::string more = "settings.local_epochs=1 ", words = more + "train.momentum=0.5 ";
  const Ran straight = job(kFedAvg, "straight", words + "train.max_steps=9");
  ASSERT_EQ(straight.code, 0) << straight.said;
  for (const char* steps : {"train.max_steps=5", "train.max_steps=9"}) {
    const Ran r = job(kFedAvg, "resumed", words + steps);
    ASSERT_EQ(r.code, 0) << r.said;
  }
  for (const std::string file :
       {"model.safetensors", "training/optimizer.safetensors", "training/state.json"})
    EXPECT_TRUE(slurp(*dir_ / ("straight/checkpoints/last/" + file)) ==
                slurp(*dir_ / ("resumed/checkpoints/last/" + file)))
        << file;
  EXPECT_THAT(slurp(*dir_ / "straight/checkpoints/last/training/optimizer.safetensors"),
              HasSubstr("\"momentum_buffer/net.fc1.weight\""));
  const std::pair<std::string, std::string> others[] = {
      {"train.momentum=0", "train.optimizer=sgd with momentum, but this job has sgd."},
      {"train.optimizer=adamw train.momentum=0", "train.optimizer was sgd, is adamw"}};
  for (const auto& [optimizer, what] : others) {
    const Ran r = job(kFedAvg, "resumed", more + "train.max_steps=12 " + optimizer);
    EXPECT_EQ(r.code, 2) << r.said;
    EXPECT_THAT(r.said, HasSubstr(what));
  }
}

// Pairs of IDX files, as those of MNIST: images of 5 x 5 pixels whose brightest column is the class.
void write_idx(const std::string& images, const std::string& labels, i64 n, u64 seed) {
  const auto header = [](i64 dims, std::initializer_list<i64> sizes) {
    std::string out = {0, 0, 8, static_cast<char>(dims)};
    for (const i64 size : sizes)
      for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 255);
    return out;
  };
  std::string pixels = header(3, {n, 5, 5}), classes = header(1, {n});
  const std::vector<double> noise = redco::testing::Random(seed).values(n * 25);
  for (i64 i = 0; i < n; ++i) {
    const i64 label = (i + static_cast<i64>(seed)) % 5;
    classes += static_cast<char>(label);
    for (i64 k = 0; k < 25; ++k)
      pixels += static_cast<char>(static_cast<int>(std::clamp(60 + 30 * noise[i * 25 + k], 0., 130.)) +
                                  (k % 5 == label ? 100 : 0));
  }
  spill(images, pixels);
  spill(labels, classes);
}

TEST_F(Examples, JobsOnIdxFilesAreTheSameOnAnyMesh) {
  write_idx(*dir_ / "train-images", *dir_ / "train-labels", 400, 1);
  write_idx(*dir_ / "test-images", *dir_ / "test-labels", 100, 2);
  const std::string
      data =
          "data='{train: [train-images, train-labels], eval: [test-images, test-labels], label_names: []}' train.logging_steps=1 ",
      shape = "settings.image_size=5 settings.n_classes=5 ";
  const std::pair<Case, std::string> jobs[] = {
      {kFedAvg, data + shape + "settings.n_clients=30 train.max_steps=20 "},
      {kDpSgd, data + shape + "settings.lot_size=50 train.global_batch_size=100 train.n_epochs=6 "}};
  for (const auto& [c, words] : jobs) {
    const std::string name = std::string("idx-") + c.name;
    for (const auto& [what, where] :
         std::map<std::string, std::string>{{"1x1", mesh(1, 1)}, {"2x1", mesh(2, 1)}, {"1x2", mesh(1, 2)}}) {
      const Ran r = job(c, name + what, words + where);
      ASSERT_EQ(r.code, 0) << r.said;
      const auto one = losses(name + "1x1"), now = losses(name + what);
      ASSERT_EQ(one.size(), now.size());
      // Sums in another order differ by 1e-7 each, and the differences grow with the steps.
      for (const auto& [key, value] : one)
        EXPECT_NEAR(now.at(key), value, 1e-3 * std::abs(value)) << name << what << " step " << key.first;
    }
    EXPECT_GT(last_line(name + "1x1", "eval_accuracy")["eval_accuracy"], 0.7) << name;
  }
  const Ran size = job(kFedAvg, "wrong", data + "settings.image_size=6 settings.n_classes=5");
  EXPECT_EQ(size.code, 3) << size.said;
  EXPECT_THAT(size.said, HasSubstr("train-images: image 0"));
  const Ran label = job(kFedAvg, "wrong", data + "settings.image_size=5 settings.n_classes=4");
  EXPECT_EQ(label.code, 3) << label.said;
  EXPECT_THAT(label.said, HasSubstr("train-labels: label 3"));
}

// Another loss on a built-in model and its data, as docs/add_a_pipeline.md runs it.
TEST_F(Examples, TheZLossAddsItsTermAndTrains) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("line {} of a text that is no longer than it must be\n", i);
  spill(*dir_ / "text.txt", text);
  for (const std::string pipeline : {"lm", "./so/zloss/zloss.so"}) {
    const Ran r =
        shell(dir_->path(), std::string("timeout 100 prefix/bin/redco train '") + REDCO_SOURCE_DIR +
                                "/configs/lm/quickstart.yaml' pipeline=" + pipeline +
                                " data='{train: text.txt, eval: text.txt, max_length: 64}' workdir=" +
                                (pipeline == "lm" ? "plain" : "zloss") +
                                " parallel.n_model_shards=1 parallel.threads_per_rank=1 train.max_steps=3 "
                                "train.logging_steps=1 eval.generation.max_new_tokens=4 eval.n_outputs=1");
    ASSERT_EQ(r.code, 0) << r.said;
  }
  // The term is 1e-4 log(Z)^2. At the initial weights the logits have a standard deviation of about 0.25, so
  // log(Z) is log 257 plus 0.03: 1 % of the term.
  auto plain = losses("plain"), z = losses("zloss");
  const double term = 1e-4 * std::log(257) * std::log(257);
  EXPECT_NEAR((z[{1, "loss"}] - plain[{1, "loss"}]), term, 0.02 * term);
  EXPECT_LT((z[{3, "eval_loss"}]), (z[{1, "loss"}] - 0.5));
  EXPECT_THAT(slurp(*dir_ / "zloss/eval_outputs/step-00000003.jsonl"), HasSubstr("\"finish_reason\""));
}

// SetUpTestSuite has written and built it. Its classes have the names of redco's own, such as DataSettings.
TEST_F(Examples, TheSkeletonTrainsUnchanged) {
  const std::string job = slurp(*dir_ / "data/job.yaml");
  EXPECT_THAT(job, HasSubstr("pipeline: ./build/data.so\n"));
  const Ran r = shell(dir_->path(),
                      "timeout 100 prefix/bin/redco train data/job.yaml "
                      "pipeline=./so/skeleton/data.so");
  ASSERT_EQ(r.code, 0) << r.said;
  // sin(x) has a variance of 0.5 here, and the best line has an error of 0.2.
  EXPECT_LT(last_line("runs/data", "eval_loss")["eval_loss"], 0.05);
}

// With the installed package redco, and without the build folder.
TEST_F(Examples, TheSkeletonInPythonTrainsUnchanged) {
  if (shell(dir_->path(), "find prefix -name libredco_python.so | grep -q .").code != 0)
    GTEST_SKIP() << "redco was built without Python";
  const Ran written = shell(dir_->path(), "prefix/bin/redco new pipeline sine");
  ASSERT_EQ(written.code, 0) << written.said;
  const Ran r = shell(*dir_ / "sine", "timeout 100 ../prefix/bin/redco train job.yaml parallel.n_ranks=2");
  ASSERT_EQ(r.code, 0) << r.said;
  EXPECT_LT(last_line("sine/runs/sine", "eval_loss")["eval_loss"], 0.05);
}

TEST_F(Examples, NewPipelinesOverwriteNothingAndHaveValidNames) {
  const std::string before = slurp(*dir_ / "data/data.cpp");
  EXPECT_THAT(before, HasSubstr("class DataPipeline : public Pipeline"));
  EXPECT_THAT(before, Not(HasSubstr("@")));
  const Ran again = shell(dir_->path(), "prefix/bin/redco new pipeline data --cpp");
  EXPECT_EQ(again.code, 2) << again.said;
  EXPECT_THAT(again.said, HasSubstr("data exists; use another name, or another folder with --to"));
  const std::vector<std::string> bad = {
      "''", "A", "1a", "_a", "a-b", "../a", "a.b", "'a b'", std::string(65, 'a')};
  for (const std::string& name : bad) {
    const Ran r = shell(dir_->path(), "prefix/bin/redco new pipeline --cpp " + name);
    EXPECT_EQ(r.code, 2) << name;
    EXPECT_THAT(r.said, HasSubstr("is not a pipeline name")) << name;
  }
  const Ran elsewhere =
      shell(dir_->path(), "prefix/bin/redco new pipeline other_1 --cpp --to some/where && ls some/where");
  EXPECT_EQ(elsewhere.code, 0);
  for (const char* file : {"other_1.cpp", "CMakeLists.txt", "job.yaml", "README.md"})
    EXPECT_THAT(elsewhere.said, HasSubstr(file));
  EXPECT_THAT(slurp(*dir_ / "some/where/other_1.cpp"), HasSubstr("class Other1Pipeline : public Pipeline"));
}

}  // namespace
}  // namespace redco::test
