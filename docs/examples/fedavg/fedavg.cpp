// Federated averaging (McMahan et al. 2017) on labelled images. Clients keep their data. In a round, each of
// a few clients makes some steps of SGD on its images, starting with the server's weights. The server then
// takes the mean of the clients' weights, weighted by their numbers of images. Written for one device: an
// example is a client in a round. The clients of a round train together, with separate weights along a
// leading dim. redco distributes the clients over replicas and shards their layers.
#include <cmath>

#include "clients.h"

struct FedAvgSettings {
  ClientSettings clients;
  i64 image_size = 28, n_classes = 10, hidden = 64, rounds_per_epoch = 20;
  double local_learning_rate = 0.1;
  void visit(SettingsVisitor& v) {
    clients.visit(v);
    v.field("image_size", image_size, "height and width of the grey images").at_least(1).at_most(1024);
    v.field("n_classes", n_classes, "number of classes").at_least(2).at_most(10000);
    v.field("hidden", hidden, "width of the hidden layer").at_least(1).at_most(1 << 16);
    v.field("rounds_per_epoch", rounds_per_epoch, "rounds per epoch").at_least(1).at_most(10000);
    v.field("local_learning_rate", local_learning_rate, "learning rate of a client").at_least(0);
  }
};

class FedAvg : public Pipeline {
 public:
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    return read_images(request, settings->data, {1, options().image_size, options().image_size},
                       options().n_classes);
  }
  const ModelParams& params() const override {
    if (!params_.specs.empty()) return params_;
    SpecBuilder b(params_);
    b.linear("net.fc1", options().hidden, pixels(), true, std::sqrt(2.0 / static_cast<double>(pixels())));
    b.linear("net.fc2", options().n_classes, options().hidden, true,
             std::sqrt(1.0 / static_cast<double>(options().hidden)));
    return params_;
  }

  // The value of the term is the loss of the clients. Its gradient is the server's weights minus the mean of
  // the clients. With train.optimizer sgd and train.learning_rate 1 the server's weights become that mean.
  // With momentum it is FedAvgM (Hsu et al. 2019), with adamw FedAdam (Reddi et al. 2021).
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    if (!ctx.apply.train) {
      const Tensor logits = forward(p, b["x"]);  // [clients, rows, classes]
      return {{"loss", sum_all(cross_entropy(logits, b["y"]))}, {"accuracy", count_right(logits, b["y"])}};
    }
    std::vector<Tensor> own;  // [clients, out, in] and [clients, 1, out], initially the server's
    for (const Tensor& w : p.values()) {
      Shape each = w.visible() == 2 ? Shape{1, w.size(0), w.size(1)} : Shape{1, 1, w.size(0)};
      const Tensor one = reshape(stop_gradient(w), each);
      each[0] = b.shape.rows;
      own.push_back(one + zeros(each, DType::f32, batch_layout()));
    }
    Tensor seen = zeros({});  // sum of the losses of the clients' batches
    for (i64 row = 0; row < b["y"].size(1); row += options().clients.batch_size) {
      const Tensor x = narrow(b["x"], 1, row, options().clients.batch_size);  // [clients, batch, pixels]
      const Tensor y =
          narrow(b["y"], 1, row, options().clients.batch_size);  // [clients, batch], padding is kIgnoredLabel
      for (Tensor& w : own) w = w.watched();
      const Tensor nll = cross_entropy(forward(p.with_values(own), x), y);
      const Tensor n = sum(label_mask(y, DType::f32), {1}, true);  // 0 for a client without further batches
      const std::vector<Tensor> g = grad(sum_all(nll / maximum(n, ones_like(n))), own);
      const NoGrad off;
      for (size_t i = 0; i < own.size(); ++i) own[i] = own[i] - options().local_learning_rate * g[i];
      seen = seen + sum_all(nll);
    }
    Tensor pull = zeros({});
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor& w = p.values()[i];
      const Tensor n = reshape(b["n"], {b.shape.rows, 1, 1});
      const Tensor back = sum(n * own[i], {0});  // over all clients, weighted by their numbers of images
      pull = pull + sum_all(w * stop_gradient(sum_all(b["n"]) * w - reshape(back, w.shape())));
    }
    const Tensor value =
        stop_gradient(seen * (1.0 / static_cast<double>(options().clients.local_epochs)) - pull);
    return {{"loss", value + pull}};
  }

  // One row per client: its images in their order, padded to whole batches, and their number. An image of an
  // evaluation is a client with one image.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    Batch b;
    b.shape = s;
    b.weights["loss"] = b.weights["accuracy"] = 0;
    for (size_t c = 0; c < mine.size(); ++c) {
      const bool client = mine[c].ids.count("rows") > 0;
      rows[c] = client ? with_images(mine[c], *train_data, pixels()) : mine[c];
      rows[c].values["pixel_values"].resize(s.length * pixels());
      rows[c].values["n"] = {client ? mine[c].values.at("n")[0] : 1.f};
      for (auto& [name, weight] : b.weights) weight += rows[c].values["n"][0];
    }
    b.fields["x"] = value_rows(rows, s, "pixel_values", {s.length, pixels()});
    b.fields["y"] = id_rows(rows, s, "label", kIgnoredLabel);
    b.fields["n"] = value_rows(rows, s, "n", {1});
    return b;
  }

  // The rounds of an epoch in order. The clients of each round are drawn without replacement.
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext& ctx) override {
    if (!train_data) throw UsageError("[fedavg] data.train is missing. Set it to labelled images");
    if (!clients_) clients_.emplace(options().clients, *train_data, static_cast<u64>(settings->train.seed));
    std::vector<Example> out;
    for (i64 r = 0; r < options().rounds_per_epoch; ++r)
      for (Example& e : clients_->round(ctx.epoch * options().rounds_per_epoch + r,
                                        settings->train.global_batch_size.value_or(1)))
        out.push_back(std::move(e));
    return ordered_examples(std::move(out), train_data->fingerprint() + settings->own);
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return means;
  }

  std::vector<std::string> predict(const ParamTree& p, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const Batch b = collate(examples, {.rows = n, .mine = {0, n}, .length = 1});
    return class_answers(forward(p, b["x"]), examples);  // [n, 1, classes]
  }

 private:
  const FedAvgSettings& options() const {
    if (!own_) own_ = own_settings<FedAvgSettings>(settings->own);
    return *own_;
  }
  i64 pixels() const { return options().image_size * options().image_size; }

  // Weights [out, in] and biases [out], or those of each client; x [clients, rows, pixels].
  static Tensor forward(const ParamTree& p, const Tensor& x) {
    const Tensor h = relu(linear(x, p["net.fc1.weight"]) + p["net.fc1.bias"]);
    return linear(h, p["net.fc2.weight"]) + p["net.fc2.bias"];
  }

  mutable ModelParams params_;
  mutable std::optional<FedAvgSettings> own_;
  std::optional<Clients> clients_;
};

REDCO_PIPELINE(FedAvg)
