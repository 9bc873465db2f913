// Federated averaging (McMahan et al. 2017). Clients keep their data. In a round, each of a few clients makes
// some steps of SGD on its examples, starting with the server's weights. The server then takes the mean of
// the clients' weights, weighted by their numbers of examples. Written for one device: an example is a client
// in a round. The clients of a round train together, with separate weights along a leading dim. redco
// distributes the clients over replicas and shards their layers.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "redco.h"

using namespace redco;

struct FedAvgSettings {
  i64 n_clients = 100, rounds_per_epoch = 20;
  double alpha = 0.3;
  i64 local_epochs = 5, local_batch_size = 10;
  double local_learning_rate = 0.1;
  void visit(SettingsVisitor& v) {
    v.field("n_clients", n_clients, "number of clients").at_least(1).at_most(kRows);
    v.field("rounds_per_epoch", rounds_per_epoch, "rounds per epoch").at_least(1).at_most(10000);
    v.field("alpha", alpha,
            "parameter of the Dirichlet distribution; with small values a client has few classes")
        .at_least(1e-3);
    v.field("local_epochs", local_epochs, "local epochs of a client in a round").at_least(1);
    v.field("local_batch_size", local_batch_size, "batch size of a client").at_least(1).at_most(kRows);
    v.field("local_learning_rate", local_learning_rate, "learning rate of a client").at_least(0);
  }
  static constexpr i64 kRows = 5000, kTest = 1000, kClasses = 10, kFeatures = 16, kHidden = 32;
};

class FedAvg : public Pipeline {
  using S = FedAvgSettings;

 public:
  FedAvg() {
    SpecBuilder b(params_);
    b.linear("net.fc1", S::kHidden, S::kFeatures, true, std::sqrt(2.0 / S::kFeatures));
    b.linear("net.fc2", S::kClasses, S::kHidden, true, std::sqrt(1.0 / S::kHidden));
  }
  const ModelParams& params() const override { return params_; }

  // The value of the term is the loss of the clients. Its gradient is the server's weights minus the mean of
  // the clients. With train.optimizer sgd and train.learning_rate 1 the server's weights become that mean.
  // With momentum it is FedAvgM (Hsu et al. 2019), with adamw FedAdam (Reddi et al. 2021).
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    if (!ctx.apply.train) {
      const Tensor logits = forward(p, b["x"]);  // [clients, rows, classes]
      const Tensor best = reshape(max_last(logits), b["y"].shape());
      const Tensor right = compare(Binary::eq, pick(logits, b["y"]), best) * label_mask(b["y"], DType::f32);
      return {{"loss", sum_all(cross_entropy(logits, b["y"]))}, {"accuracy", sum_all(right)}};
    }
    std::vector<Tensor> own;  // [clients, out, in] and [clients, 1, out], initially the server's
    for (const Tensor& w : p.values()) {
      Shape each = w.visible() == 2 ? Shape{1, w.size(0), w.size(1)} : Shape{1, 1, w.size(0)};
      const Tensor one = reshape(stop_gradient(w), each);
      each[0] = b.shape.rows;
      own.push_back(one + zeros(each, DType::f32, batch_layout()));
    }
    Tensor seen = zeros({});  // sum of the losses of the clients' batches
    for (i64 row = 0; row < b["y"].size(1); row += own_.local_batch_size) {
      const Tensor x = narrow(b["x"], 1, row, own_.local_batch_size);  // [clients, batch, features]
      const Tensor y = narrow(b["y"], 1, row, own_.local_batch_size);  // [clients, batch], padding is -1
      for (Tensor& w : own) w = w.watched();
      const Tensor nll = cross_entropy(forward(p.with_values(own), x), y);
      const Tensor n = sum(label_mask(y, DType::f32), {1}, true);  // 0 for a client without further batches
      const std::vector<Tensor> g = grad(sum_all(nll / maximum(n, ones_like(n))), own);
      const NoGrad off;
      for (size_t i = 0; i < own.size(); ++i) own[i] = own[i] - own_.local_learning_rate * g[i];
      seen = seen + sum_all(nll);
    }
    Tensor pull = zeros({});
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor& w = p.values()[i];
      const Tensor n = reshape(b["n"], {b.shape.rows, 1, 1});
      const Tensor back = sum(n * own[i], {0});  // over all clients, weighted by their numbers of examples
      pull = pull + sum_all(w * stop_gradient(sum_all(b["n"]) * w - reshape(back, w.shape())));
    }
    const Tensor value = stop_gradient(seen * (1.0 / static_cast<double>(own_.local_epochs)) - pull);
    return {{"loss", value + pull}};
  }

  // One row per client: its examples in their order, padded to whole batches, and their number. A test
  // example is a client with one example.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.begin(), mine.end());
    Batch b;
    b.shape = s;
    b.weights["loss"] = b.weights["accuracy"] = 0;
    for (Example& e : rows) {
      std::vector<float>& x = e.values["x"];
      for (const i32 row : e.ids.at("rows")) {
        e.ids["y"].push_back(row < 0 ? -1 : labels_[row]);
        const auto from = features_.begin() + std::max(row, 0) * S::kFeatures;
        x.insert(x.end(), from, from + S::kFeatures);
      }
      x.resize(s.length * S::kFeatures);
      for (auto& [name, weight] : b.weights) weight += e.values.at("n")[0];
    }
    b.fields["x"] = value_rows(rows, s, "x", {s.length, S::kFeatures});
    b.fields["y"] = id_rows(rows, s, "y", -1);
    b.fields["n"] = value_rows(rows, b.shape, "n", {1});
    return b;
  }

  // The rounds of an epoch in order. The clients of each round are drawn without replacement.
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext& ctx) override {
    make_data();
    const i64 chosen = settings->train.global_batch_size.value_or(1);
    if (chosen > own_.n_clients)
      throw UsageError(
          "[fedavg] train.global_batch_size is {}, but settings.n_clients is {}; use at most n_clients",
          chosen, own_.n_clients);
    std::mt19937_64 random(Context::current().key("rounds"));
    std::vector<Example> out;
    std::vector<i64> clients(own_.n_clients);
    for (i64 round = 0; round < own_.rounds_per_epoch; ++round) {
      std::iota(clients.begin(), clients.end(), 0);
      std::shuffle(clients.begin(), clients.end(), random);
      for (i64 k = 0; k < chosen; ++k) out.push_back(client(clients[k], own_.local_epochs, random));
    }
    for (size_t i = 0; i < out.size(); ++i) out[i].ordinal = ctx.epoch * static_cast<i64>(out.size()) + i;
    return std::make_shared<Rounds>(std::move(out), fingerprint());
  }
  std::vector<EvalSet> evaluation() override {
    make_data();
    std::vector<Example> out(S::kTest);
    for (i64 i = 0; i < S::kTest; ++i) {
      out[i].ordinal = i;
      out[i].ids["rows"] = {static_cast<i32>(S::kRows + i)};
      out[i].values["n"] = {1};
    }
    return {{std::make_shared<ExampleList>(std::move(out), fingerprint())}};
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return means;
  }

  std::vector<std::string> predict(const ParamTree& p, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const Batch b = collate(examples, {.rows = n, .mine = {0, n}, .length = 1});
    const std::vector<double> logits = to_values(forward(p, b["x"]));  // [n, 1, classes]
    std::vector<std::string> out;
    for (i64 i = 0; i < n; ++i) {
      const auto row = logits.begin() + i * S::kClasses;
      out.push_back(fmt::format("{{\"prediction\": {}, \"label\": {}}}",
                                std::max_element(row, row + S::kClasses) - row,
                                labels_[examples[i].ids.at("rows")[0]]));
    }
    return out;
  }

 private:
  struct Rounds : ExampleList {
    using ExampleList::ExampleList;
    bool ordered() const override { return true; }
  };

  // Weights [out, in] and biases [out], or those of each client; x [clients, rows, features].
  static Tensor forward(const ParamTree& p, const Tensor& x) {
    const Tensor h = relu(linear(x, p["net.fc1.weight"]) + p["net.fc1.bias"]);
    return linear(h, p["net.fc2.weight"]) + p["net.fc2.bias"];
  }

  // The rows of client k, shuffled for each local epoch. The last batch is padded with -1.
  Example client(i64 k, i64 passes, std::mt19937_64& random) const {
    Example e;
    std::vector<i32> rows = rows_of_[k];
    for (i64 pass = 0; pass < passes; ++pass) {
      std::shuffle(rows.begin(), rows.end(), random);
      std::vector<i32>& seen = e.ids["rows"];
      seen.insert(seen.end(), rows.begin(), rows.end());
      const size_t batch = static_cast<size_t>(own_.local_batch_size);
      seen.resize((seen.size() + batch - 1) / batch * batch, -1);
    }
    e.values["n"] = {static_cast<float>(rows.size())};
    return e;
  }

  // Ten Gaussian clouds, and the clients' shares of each by a Dirichlet distribution, all from train.seed.
  void make_data() {
    if (!labels_.empty()) return;
    own_ = own_settings<FedAvgSettings>(settings->own);
    std::mt19937_64 random(static_cast<u64>(settings->train.seed));
    std::normal_distribution<float> normal;
    std::vector<float> centers(S::kClasses * S::kFeatures);
    for (float& c : centers) c = 0.9f * normal(random);
    for (i64 i = 0; i < S::kRows + S::kTest; ++i) {
      labels_.push_back(static_cast<i32>(random() % S::kClasses));
      for (i64 f = 0; f < S::kFeatures; ++f)
        features_.push_back(centers[labels_.back() * S::kFeatures + f] + normal(random));
    }
    rows_of_.resize(own_.n_clients);
    std::gamma_distribution<double> gamma(own_.alpha);
    for (i32 label = 0; label < S::kClasses; ++label) {
      std::vector<double> share(own_.n_clients);
      for (double& s : share) s = std::max(gamma(random), 1e-300);
      std::discrete_distribution<i64> owner(share.begin(), share.end());
      for (i32 i = 0; i < S::kRows; ++i)
        if (labels_[i] == label) rows_of_[owner(random)].push_back(i);
    }
  }
  std::string fingerprint() const { return "clouds " + settings->own; }

  FedAvgSettings own_;
  ModelParams params_;
  std::vector<i32> labels_;      // training rows, then test rows
  std::vector<float> features_;  // [rows, features]
  std::vector<std::vector<i32>> rows_of_;
};

REDCO_PIPELINE(FedAvg)
