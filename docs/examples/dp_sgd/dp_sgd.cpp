// Training with differential privacy, DP-SGD (Abadi et al. 2016). Each step samples every example with the
// same small probability, clips the gradient of each example, adds noise to their sum, and divides by the
// expected number of examples. Written for one device. The noise is a function of seed, step and parameter,
// so every mesh and every number of micro-batches draws the same noise once.
//
// The gradient of a linear layer's weights for one example is the outer product of the layer's input x and
// the gradient g of its output. So its squared norm is |x|^2 |g|^2 (Goodfellow 2015). The sum of clipped
// gradients is the gradient of the sum of losses, each weighted by the clipping factor of its example.
// Gradients of single examples are never stored.
#include <algorithm>
#include <cmath>
#include <random>

#include "redco.h"

using namespace redco;

constexpr i64 kRows = 5000, kTest = 1000, kClasses = 10, kFeatures = 16;

struct DpSettings {
  i64 lot_size = 100, hidden = 64;
  double clip = 1, delta = 1e-5;
  std::optional<double> noise_multiplier, epsilon;
  void visit(SettingsVisitor& v) {
    v.field("lot_size", lot_size, "expected examples of a step").at_least(1).at_most(kRows);
    v.field("hidden", hidden, "width of the hidden layers").at_least(1).at_most(1 << 16);
    v.field("clip", clip, "largest norm of an example's gradient").above(0);
    v.field("noise_multiplier", noise_multiplier, "standard deviation of the noise, in multiples of clip")
        .at_least(0);
    v.field("epsilon", epsilon, "privacy budget of the whole run, instead of noise_multiplier").above(0);
    v.field("delta", delta, "delta of the privacy budget").above(0).below(1);
  }
};

class DpSgd : public Pipeline {
 public:
  // redco calls params() first, so the settings are read here.
  const ModelParams& params() const override {
    if (!params_.specs.empty()) return params_;
    own_ = own_settings<DpSettings>(settings->own);
    SpecBuilder b(params_);
    const i64 widths[] = {kFeatures, own_.hidden, own_.hidden, kClasses};
    for (int l = 0; l < kLayers; ++l)
      b.linear(layer(l), widths[l + 1], widths[l], true, 1 / std::sqrt(static_cast<double>(widths[l])));
    return params_;
  }

  // The value of the term is the loss of the examples. Its gradient is the private gradient.
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    std::vector<Tensor> in, out;  // of each layer
    const Tensor logits = forward(p, b["x"], &in, &out);
    const Tensor nll = cross_entropy(logits, b["y"]);  // [rows], 0 for rows without an example
    if (!ctx.apply.train) {
      const Tensor best = reshape(max_last(logits), b["y"].shape());
      return {{"loss", sum_all(nll)}, {"accuracy", sum_all(compare(Binary::eq, pick(logits, b["y"]), best))}};
    }
    const std::vector<Tensor> g = grad(sum_all(nll), out, {.retain = true});
    Tensor squares = zeros({b.shape.rows}, DType::f32, batch_layout());
    for (int l = 0; l < kLayers; ++l)  // and 1 for the bias, whose gradient is g
      squares = squares + sum(square(g[l]), {1}) * add_scalar(sum(square(in[l]), {1}), 1);
    const Tensor norm = stop_gradient(sqrt(add_scalar(squares, 1e-12)));
    const Tensor kept = minimum(ones_like(norm), full({}, own_.clip) / norm);
    Tensor wanted = sum_all(kept * nll);
    // A micro-batch adds the noise of the step in proportion to its rows. All micro-batches together add it
    // once.
    const double share = static_cast<double>(b.shape.rows) / static_cast<double>(rows_of_step());
    for (size_t i = 0; i < p.size(); ++i) {
      const Tensor& w = p.values()[i];
      const u64 key = Context::current().key("noise of " + p.specs()[i].name);
      wanted = wanted + sum_all(w * random_normal(w.shape(), key, w.layout())) * (share * noise_ * own_.clip);
    }
    steps_ = ctx.step + 1;
    return {{"loss", stop_gradient(sum_all(nll) - wanted) + wanted}};
  }

  // All rows of a step together, also those without an example, have the weight of the expected examples.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, "x", {kFeatures});
    b.fields["y"] = reshape(id_rows(mine, {s.rows, s.mine, 1}, "y", -1), {s.rows});
    b.weights["loss"] = 0;
    for (const Example& e : mine) b.weights["loss"] += e.values.at("weight")[0];
    b.weights["accuracy"] = static_cast<double>(mine.size());
    return b;
  }

  // The lots of an epoch in order, one per step. A lot contains each example with probability sample_rate().
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext& ctx) override {
    make_data();
    const i64 lots = lots_of_epoch(), rows = rows_of_step();
    Example none = data_[0];
    none.ids["y"] = {-1};
    none.values["x"].assign(kFeatures, 0.f);
    none.values["weight"] = {static_cast<float>(own_.lot_size) / static_cast<float>(rows)};
    std::vector<Example> out;
    for (i64 lot = 0; lot < lots; ++lot) {
      const std::vector<double> u =
          to_values(random_uniform({kRows}, Context::current().key(fmt::format("lot {}", lot))));
      for (i64 i = 0; i < kRows; ++i) {
        if (u[i] >= sample_rate()) continue;
        out.push_back(data_[i]);
        out.back().values["weight"] = none.values["weight"];
      }
      if (static_cast<i64>(out.size()) > (lot + 1) * rows)
        throw UsageError("[dp_sgd] a step has {} examples, but train.global_batch_size is {}; increase it",
                         static_cast<i64>(out.size()) - lot * rows, rows);
      out.resize((lot + 1) * rows, none);
    }
    for (size_t i = 0; i < out.size(); ++i) out[i].ordinal = ctx.epoch * lots * rows + static_cast<i64>(i);
    return std::make_shared<Lots>(std::move(out), fingerprint());
  }
  std::vector<EvalSet> evaluation() override {
    make_data();
    return {{std::make_shared<ExampleList>(std::vector<Example>(data_.begin() + kRows, data_.end()),
                                           fingerprint())}};
  }

  // The privacy budget spent so far, logged with the losses and the results of evaluations.
  std::map<std::string, double> notes() const override {
    return {{"epsilon", privacy_epsilon({sample_rate(), noise_}, steps_, own_.delta)}};
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    std::map<std::string, double> all = means;
    if (steps_ > 0) all.merge(notes());
    return all;
  }

  std::vector<std::string> predict(const ParamTree& p, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const std::vector<double> logits =
        to_values(forward(p, collate(examples, {.rows = n, .mine = {0, n}})["x"], nullptr, nullptr));
    std::vector<std::string> out;
    for (i64 i = 0; i < n; ++i) {
      const auto row = logits.begin() + i * kClasses;
      out.push_back(fmt::format("{{\"prediction\": {}, \"label\": {}}}",
                                std::max_element(row, row + kClasses) - row, examples[i].ids.at("y")[0]));
    }
    return out;
  }

 private:
  struct Lots : ExampleList {
    using ExampleList::ExampleList;
    bool ordered() const override { return true; }
  };
  static constexpr int kLayers = 3;
  static std::string layer(int l) { return fmt::format("net.fc{}", l + 1); }

  // x [rows, features] -> logits [rows, classes], and the input and output of each layer.
  static Tensor forward(const ParamTree& p, Tensor x, std::vector<Tensor>* in, std::vector<Tensor>* out) {
    for (int l = 0; l < kLayers; ++l) {
      if (in) in->push_back(stop_gradient(x));
      const Tensor y = dense(p, layer(l), x);
      if (out) out->push_back(y);
      x = l + 1 < kLayers ? tanh(y) : y;
    }
    return x;
  }

  double sample_rate() const { return static_cast<double>(own_.lot_size) / kRows; }
  i64 lots_of_epoch() const { return (kRows + own_.lot_size - 1) / own_.lot_size; }
  i64 rows_of_step() const { return settings->train.global_batch_size.value_or(0); }

  // Ten Gaussian clouds from train.seed, and the noise that follows from the settings.
  void make_data() {
    if (!data_.empty()) return;
    const double most = static_cast<double>(own_.lot_size) + 6 * std::sqrt(own_.lot_size);
    if (static_cast<double>(rows_of_step()) < most)
      throw UsageError(
          "[dp_sgd] train.global_batch_size is {}, but settings.lot_size {} needs at least {:.0f}",
          rows_of_step(), own_.lot_size, std::ceil(most));
    if (own_.noise_multiplier.has_value() == own_.epsilon.has_value())
      throw UsageError("[dp_sgd] set exactly one of settings.noise_multiplier and settings.epsilon");
    const TrainSettings& t = settings->train;
    const i64 steps = std::min(t.max_steps.value_or(1 << 30),
                               t.n_epochs.value_or(t.max_steps ? 1 << 20 : 1) * lots_of_epoch());
    noise_ = own_.noise_multiplier ? *own_.noise_multiplier
                                   : noise_for_epsilon(sample_rate(), steps, *own_.epsilon, own_.delta);
    std::mt19937_64 random(static_cast<u64>(t.seed));
    std::normal_distribution<float> normal;
    std::vector<float> centers(kClasses * kFeatures);
    for (float& c : centers) c = 0.9f * normal(random);
    data_.resize(kRows + kTest);
    for (Example& e : data_) {
      e.ids["y"] = {static_cast<i32>(random() % kClasses)};
      for (i64 f = 0; f < kFeatures; ++f)
        e.values["x"].push_back(centers[e.ids["y"][0] * kFeatures + f] + normal(random));
      e.values["weight"] = {1};
    }
  }
  std::string fingerprint() const { return "clouds " + settings->own; }

  mutable ModelParams params_;
  mutable DpSettings own_;
  double noise_ = 0;           // standard deviation, in multiples of clip
  std::vector<Example> data_;  // training examples, then test examples
  mutable i64 steps_ = 0;      // made so far
};

REDCO_PIPELINE(DpSgd)
