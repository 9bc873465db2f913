// Model-agnostic meta-learning (Finn et al. 2017) on sine curves: it learns parameters from which one SGD
// step on a few points of a new curve fits that curve. The loss is computed after that step, so it contains a
// gradient, which training differentiates again. The code is for one device; the tasks of a batch are split
// over replicas, and each layer over model shards.
#include <cmath>

#include "redco.h"

using namespace redco;

class Maml : public Pipeline {
 public:
  Maml() {
    SpecBuilder b(params_);
    const i64 widths[] = {1, 32, 32, 32, 1};
    for (int l = 0; l < 4; ++l)
      b.linear(layer(l), widths[l + 1], widths[l], true, 1.2 / std::sqrt(static_cast<double>(widths[l])));
  }
  const ModelParams& params() const override { return params_; }

  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext&) override {
    return curves(20, "curves");
  }
  std::vector<EvalSet> evaluation() override { return {{curves(5, "held-out curves")}}; }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    for (const char* field : {"support_x", "support_y", "query_x", "query_y"})
      b.fields[field] = value_rows(mine, s, field, {kPoints, 1});
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext&) const override {
    // Each task has its own weights: the shared ones plus a difference. The inner gradient is with respect to
    // the difference.
    std::vector<Tensor> deltas, own;
    for (const Tensor& w : params.values()) {
      const Shape one = w.visible() == 2 ? Shape{1, w.size(0), w.size(1)} : Shape{1, 1, w.size(0)};
      Shape each = one;
      each[0] = batch.shape.rows;
      deltas.push_back(zeros(each, DType::f32, batch_layout()).watched());
      own.push_back(reshape(w, one) + deltas.back());
    }
    const Tensor support = error(params.with_values(own), batch["support_x"], batch["support_y"]);
    const std::vector<Tensor> g = grad(support, deltas, {.create_graph = true});
    for (size_t i = 0; i < own.size(); ++i) own[i] = own[i] - kInnerRate * g[i];
    return {{"loss", error(params.with_values(own), batch["query_x"], batch["query_y"])}};
  }

 private:
  static constexpr i64 kPoints = 6;
  static constexpr double kInnerRate = 0.05;
  static std::string layer(int l) { return fmt::format("net.fc{}", l + 1); }

  // Sum over tasks of the mean squared error. Weights are [tasks, out, in], biases [tasks, 1, out], x and y
  // [tasks, points, 1].
  static Tensor error(const ParamTree& p, Tensor x, const Tensor& y) {
    for (int l = 0; l < 4; ++l) {
      x = linear(x, p[layer(l) + ".weight"]) + p[layer(l) + ".bias"];
      if (l < 3) x = tanh(x);
    }
    return sum_all(square(x - y)) * (1.0 / kPoints);
  }

  // y = a sin(x + b): amplitude, phase and points by (seed, epoch, `name`, curve), the same on every mesh.
  static std::shared_ptr<const Dataset> curves(i64 n, const std::string& name) {
    const i64 columns = 2 + 2 * kPoints;
    const std::vector<double> u = to_values(random_uniform({n, columns}, Context::current().key(name)));
    std::vector<Example> out(n);
    for (i64 i = 0; i < n; ++i) {
      const double* r = &u[i * columns];
      const double amplitude = 0.5 + r[0], phase = M_PI * r[1];
      out[i].ordinal = i;
      for (i64 k = 0; k < 2 * kPoints; ++k) {
        const std::string set = k < kPoints ? "support" : "query";
        const double x = 4 * r[2 + k] - 2;
        out[i].values[set + "_x"].push_back(static_cast<float>(x));
        out[i].values[set + "_y"].push_back(static_cast<float>(amplitude * std::sin(x + phase)));
      }
    }
    return std::make_shared<ExampleList>(std::move(out), fmt::format("{} {} x {}", name, n, kPoints));
  }

  ModelParams params_;
};

REDCO_PIPELINE(Maml)
