// Training on labelled images with differential privacy, DP-SGD (Abadi et al. 2016). Each step samples every
// example with the same small probability, clips the gradient of each example, adds noise to their sum, and
// divides by the expected number of examples. Written for one device. The noise is a function of seed, step
// and parameter, so every mesh and every number of micro-batches draws the same noise once.
//
// The gradient of a linear layer's weights for one example is the outer product of the layer's input x and
// the gradient g of its output. So its squared norm is |x|^2 |g|^2 (Goodfellow 2015). The sum of clipped
// gradients is the gradient of the sum of losses, each weighted by the clipping factor of its example.
// Gradients of single examples are never stored.
#include <algorithm>
#include <cmath>

#include "redco.h"

using namespace redco;

struct DpSettings {
  i64 image_size = 28, n_classes = 10, lot_size = 100, hidden = 64;
  double clip = 1, delta = 1e-5;
  std::optional<double> noise_multiplier, epsilon;
  void visit(SettingsVisitor& v) {
    v.field("image_size", image_size, "height and width of the grey images").at_least(1).at_most(1024);
    v.field("n_classes", n_classes, "number of classes").at_least(2).at_most(10000);
    v.field("lot_size", lot_size, "expected examples of a step").at_least(1);
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
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    return read_images(request, settings->data, {1, options().image_size, options().image_size},
                       options().n_classes);
  }
  const ModelParams& params() const override {
    if (!params_.specs.empty()) return params_;
    SpecBuilder b(params_);
    const i64 widths[] = {pixels(), options().hidden, options().hidden, options().n_classes};
    for (int l = 0; l < kLayers; ++l)
      b.linear(layer(l), widths[l + 1], widths[l], true, 1 / std::sqrt(static_cast<double>(widths[l])));
    return params_;
  }

  // The value of the term is the loss of the examples. Its gradient is the private gradient.
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    std::vector<Tensor> in, out;  // of each layer
    const Tensor logits = forward(p, b["x"], &in, &out);
    const Tensor nll = cross_entropy(logits, b["y"]);  // [rows], 0 for rows without an example
    if (!ctx.apply.train) return {{"loss", sum_all(nll)}, {"accuracy", count_right(logits, b["y"])}};
    const std::vector<Tensor> g = grad(sum_all(nll), out, {.retain = true});
    Tensor squares = zeros({b.shape.rows}, DType::f32, batch_layout());
    for (int l = 0; l < kLayers; ++l)  // and 1 for the bias, whose gradient is g
      squares = squares + sum(square(g[l]), {1}) * add_scalar(sum(square(in[l]), {1}), 1);
    const Tensor norm = stop_gradient(sqrt(add_scalar(squares, 1e-12)));
    const Tensor kept = minimum(ones_like(norm), full({}, options().clip) / norm);
    Tensor wanted = sum_all(kept * nll);
    // A micro-batch adds the noise of the step in proportion to its rows. All micro-batches together add it
    // once.
    const double share = static_cast<double>(b.shape.rows) / static_cast<double>(rows_of_step());
    for (size_t i = 0; i < p.size(); ++i) {
      const Tensor& w = p.values()[i];
      const u64 key = Context::current().key("noise of " + p.specs()[i].name);
      wanted = wanted + sum_all(w * random_normal(w.shape(), key, w.layout())) *
                            (share * noise_.value_or(0) * options().clip);
    }
    steps_ = ctx.step + 1;
    return {{"loss", stop_gradient(sum_all(nll) - wanted) + wanted}};
  }

  // A row of a lot is a training image (ids["row"]), or none (-1). All rows of a step together have the
  // weight of the expected examples.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.begin(), mine.end());
    Batch b;
    b.shape = s;
    b.weights["loss"] = b.weights["accuracy"] = 0;
    for (Example& e : rows) {
      const bool in_lot = e.ids.count("row") > 0;
      if (in_lot && e.ids.at("row")[0] >= 0) e = train_data->get(e.ids.at("row")[0]);
      e.values["pixel_values"].resize(pixels());
      e.ids["label"].resize(1, kIgnoredLabel);
      for (auto& [name, weight] : b.weights) weight += in_lot ? weight_of_row() : 1;
    }
    b.fields["x"] = value_rows(rows, s, "pixel_values", {pixels()});
    b.fields["y"] = reshape(id_rows(rows, {s.rows, s.mine, 1}, "label", kIgnoredLabel), {s.rows});
    return b;
  }

  // The lots of an epoch in order, one per step. A lot contains each example with probability sample_rate().
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext&) override {
    find_noise();
    const i64 lots = lots_of_epoch(), rows = rows_of_step();
    std::vector<Example> out;
    const auto add = [&](i32 row) { out.emplace_back().ids["row"] = {row}; };
    for (i64 lot = 0; lot < lots; ++lot) {
      const u64 key = Context::current().key(fmt::format("lot {}", lot));
      const std::vector<double> u = to_values(random_uniform({train_data->size()}, key, {}));
      for (i64 i = 0; i < train_data->size(); ++i)
        if (u[i] < sample_rate()) add(static_cast<i32>(i));
      if (static_cast<i64>(out.size()) > (lot + 1) * rows)
        throw UsageError("[dp_sgd] a step has {} examples, but train.global_batch_size is {}; increase it",
                         static_cast<i64>(out.size()) - lot * rows, rows);
      while (static_cast<i64>(out.size()) < (lot + 1) * rows) add(-1);
    }
    return ordered_examples(std::move(out), train_data->fingerprint() + settings->own);
  }

  // The privacy budget spent so far, logged with the losses and the results of evaluations.
  std::map<std::string, double> notes() const override {
    return {{"epsilon", privacy_epsilon({sample_rate(), noise_.value()}, steps_, options().delta)}};
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    std::map<std::string, double> all = means;
    if (steps_ > 0) all.merge(notes());
    return all;
  }

  std::vector<std::string> predict(const ParamTree& p, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const Batch b = collate(examples, {.rows = n, .mine = {0, n}});
    return class_answers(forward(p, b["x"], nullptr, nullptr), examples);
  }

 private:
  static constexpr int kLayers = 3;
  static std::string layer(int l) { return fmt::format("net.fc{}", l + 1); }

  // x [rows, pixels] -> logits [rows, classes], and the input and output of each layer.
  static Tensor forward(const ParamTree& p, Tensor x, std::vector<Tensor>* in, std::vector<Tensor>* out) {
    for (int l = 0; l < kLayers; ++l) {
      if (in) in->push_back(stop_gradient(x));
      const Tensor y = dense(p, layer(l), x);
      if (out) out->push_back(y);
      x = l + 1 < kLayers ? tanh(y) : y;
    }
    return x;
  }

  const DpSettings& options() const {
    if (!own_) own_ = own_settings<DpSettings>(settings->own);
    return *own_;
  }
  i64 pixels() const { return options().image_size * options().image_size; }
  double lot() const { return static_cast<double>(options().lot_size); }
  double sample_rate() const { return lot() / static_cast<double>(train_data->size()); }
  i64 lots_of_epoch() const { return (train_data->size() + options().lot_size - 1) / options().lot_size; }
  i64 rows_of_step() const { return settings->train.global_batch_size.value_or(0); }
  double weight_of_row() const { return lot() / static_cast<double>(rows_of_step()); }

  // The noise that follows from the settings.
  void find_noise() {
    if (noise_) return;
    if (!train_data || train_data->size() < options().lot_size)
      throw UsageError("[dp_sgd] data.train has {} images; expected at least settings.lot_size, {}",
                       train_data ? train_data->size() : 0, options().lot_size);
    const double most = lot() + 6 * std::sqrt(lot());
    if (static_cast<double>(rows_of_step()) < most)
      throw UsageError(
          "[dp_sgd] train.global_batch_size is {}, but settings.lot_size {} needs at least {:.0f}",
          rows_of_step(), options().lot_size, std::ceil(most));
    if (options().noise_multiplier.has_value() == options().epsilon.has_value())
      throw UsageError("[dp_sgd] set exactly one of settings.noise_multiplier and settings.epsilon");
    const PipelineTrainSettings& t = settings->train;
    const i64 steps = std::min(t.max_steps.value_or(1 << 30),
                               t.n_epochs.value_or(t.max_steps ? 1 << 20 : 1) * lots_of_epoch());
    noise_ = options().noise_multiplier
                 ? *options().noise_multiplier
                 : noise_for_epsilon(sample_rate(), steps, *options().epsilon, options().delta);
  }

  mutable ModelParams params_;
  mutable std::optional<DpSettings> own_;
  std::optional<double> noise_;  // standard deviation, in multiples of clip
  mutable i64 steps_ = 0;        // made so far
};

REDCO_PIPELINE(DpSgd)
