// new pipeline: fits a function with the pipeline's own network and examples.
#include "skeleton.h"

namespace redco::cli {
namespace {

constexpr const char* kPipelineSource =
    R"text(// @NAME@: fits y = sin(x). Replace the data, the parameters and the loss by your own.
//
// This code does not depend on ranks: redco splits the rows of a batch over replicas, and layers over model shards.
#include <cmath>

#include "redco.h"

// A separate namespace: redco has types such as DataSettings too.
namespace @NAME@_pipeline {

using namespace redco;

// The job's `settings:` section. An unknown key or a value out of range is an error that names its place.
struct @CLASS@Settings {
  i64 n_examples = 1024;
  double noise = 0.1;
  void visit(SettingsVisitor& v) {
    v.field("n_examples", n_examples, "points to learn from").at_least(1).at_most(1 << 20);
    v.field("noise", noise, "standard deviation of the noise on y").at_least(0);
  }
};

class @CLASS@Pipeline : public Pipeline {
 public:
  // The pipeline's own parameters. To train the job's model, remove params() and call model->apply(params, ...)
  // in loss().
  @CLASS@Pipeline() {
    SpecBuilder b(params_);
    b.linear("net.fc1", kHidden, 1, true, 2);
    b.linear("net.fc2", 1, kHidden, true, 1 / std::sqrt(static_cast<double>(kHidden)));
  }
  const ModelParams& params() const override { return params_; }

  // 1. Turns this replica's examples into tensors of the whole micro-batch. weights: the divisor of each loss term.
  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    Batch b;
    b.shape = shape;
    b.fields["x"] = value_rows(mine, shape, "x", {1});  // [rows, 1]
    b.fields["y"] = value_rows(mine, shape, "y", {1});
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }

  // 2. The loss of a batch: a sum, not a mean. Training minimizes the first term.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext&) const override {
    return {{"loss", sum_all(square(forward(params, batch["x"]) - batch["y"]))}};
  }

  // 3. The prediction for each example: a JSON object.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const Batch b = collate(examples, {.rows = n, .mine = {0, n}});
    std::vector<std::string> out;
    for (const double y : to_values(forward(params, b["x"]))) out.push_back(fmt::format("{{\"prediction\": {}}}", y));
    return out;
  }

  // The examples of an epoch and of an evaluation. Remove both to train on text files: redco then reads and
  // tokenizes data.train and data.eval (pipeline/lm_dataset.h).
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext&) override {
    const auto own = own_settings<@CLASS@Settings>(settings->own);
    return points(own.n_examples, own.noise, "train");
  }
  std::vector<EvalSet> evaluation() override { return {{points(256, 0, "eval")}}; }

 private:
  static constexpr i64 kHidden = 64;

  static Tensor forward(const ParamTree& p, const Tensor& x) {
    return dense(p, "net.fc2", tanh(dense(p, "net.fc1", x)));
  }

  // Random points from train.seed, the step and `name`: the same on every rank.
  static std::shared_ptr<const Dataset> points(i64 n, double noise, const std::string& name) {
    const std::vector<double> u = to_values(random_uniform({n}, Context::current().key("x of " + name)));
    const std::vector<double> e = to_values(random_normal({n}, Context::current().key("noise of " + name)));
    std::vector<Example> out(n);
    for (i64 i = 0; i < n; ++i) {
      const double x = 6 * u[i] - 3;
      out[i].ordinal = i;
      out[i].values["x"] = {static_cast<float>(x)};
      out[i].values["y"] = {static_cast<float>(std::sin(x) + noise * e[i])};
    }
    // The second argument identifies the data: a resumed run must have the same.
    return std::make_shared<ExampleList>(std::move(out), fmt::format("sine, {} {} points", n, name));
  }

  ModelParams params_;
};

}  // namespace @NAME@_pipeline

REDCO_PIPELINE(@NAME@_pipeline::@CLASS@Pipeline)
)text";

constexpr const char* kPipelineJob = R"text(# redco train job.yaml
pipeline: ./build/@NAME@.so
workdir: runs/@NAME@
train: {global_batch_size: 32, n_epochs: 20, learning_rate: 5.0e-3}
eval: {every_n_epochs: 5}
settings: {n_examples: 1024, noise: 0.1}
)text";

constexpr const char* kPipelineReadme = R"text(# @NAME@
A pipeline for redco in [`@NAME@.cpp`](@NAME@.cpp): `collate`, `loss` and `predict`, written for one device.

    cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=PREFIX     # PREFIX: where redco is installed
    cmake --build build
    redco train job.yaml
    redco train job.yaml parallel.n_ranks=2 workdir=runs/two                              # two replicas
    redco train job.yaml parallel.n_ranks=2 parallel.n_model_shards=2 workdir=runs/cut    # two model shards

The header `pipeline/pipeline.h` of redco documents all functions of a pipeline. Build again after an upgrade of redco.
)text";

}  // namespace

Skeleton pipeline_skeleton() {
  return {.kind = "pipeline",
          .example = "z_loss",
          .files = {{"@NAME@.cpp", kPipelineSource},
                    {"CMakeLists.txt", skeleton_cmake("pipeline")},
                    {"job.yaml", kPipelineJob},
                    {"README.md", kPipelineReadme}}};
}

}  // namespace redco::cli
