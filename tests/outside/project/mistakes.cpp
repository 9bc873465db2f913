// What the authors of models, pipelines and optimizers can do wrong: each setting `mistake` makes one.
#include "redco.h"

using namespace redco;

namespace mistakes {

// A network on vectors.
class Net : public Model {
 public:
  static constexpr bool kVocabulary = false;
  explicit Net(ModelConfig& c) {
    task_ = ModelTask::vector_regression;
    n_features_ = c.integer("input_size");
    mistake_ = c.text_or("mistake", "");
    problem_type_ = c.text_or("problem_type", "regression");
    num_labels_ = 1;
    c.finish();
    n_layers_ = 1;
    SpecBuilder b(params_);
    b.linear("block", n_features_, n_features_, true, 0.5);
    b.linear("out", 1, n_features_, true, 0.5);
    config_json_ = c.dump();
  }

 protected:
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    if (mistake_ == "name") return dense(p, "outt", in.features, o);
    const Tensor x = run_block(p, o, "block", in.features, [this, o](const ParamTree& own, const Tensor& h) {
      // The second run has a tape, the first one has none.
      if (mistake_ == "repeat" && o.recompute_blocks && Context::current().recording)
        return dense(own, "blok", h, o);
      return tanh(dense(own, "block", h, o));
    });
    return dense(p, "out", x, o);
  }

 private:
  std::string mistake_;
};

// An encoder-decoder model without an encoder.
class Halves : public Model {
 public:
  explicit Halves(ModelConfig& c) {
    task_ = ModelTask::seq2seq_lm;
    vocab_size_ = c.integer("vocab_size");
    decoder_start_token_id_ = pad_token_id_ = 0;
    c.finish();
    n_layers_ = 1;
    max_length_ = 32;
    SpecBuilder b(params_);
    b.embedding("embed.weight", vocab_size_, 8, 0.1);
    b.linear("lm_head", vocab_size_, 8, false, 0.1).role = Role::head;
    config_json_ = c.dump();
  }

 protected:
  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions&) const override {
    return embedding(p["embd.weight"], in.input_ids);
  }
};

struct Settings {
  std::string mistake = "none";
  void visit(SettingsVisitor& v) {
    v.field("mistake", mistake, "what is wrong")
        .one_of({"none", "counter", "generator", "label", "detached", "undefined", "no source", "no data",
                 "no evaluation"});
  }
};

// Embeddings of numbers; each should be near its neighbours.
class Embeds : public EmbeddingPipeline {
 public:
  Embeds() { SpecBuilder(params_).linear("net", 3, 2, true, 0.5); }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, "x", {2});
    b.fields["label"] = fixed_id_rows(mine, s, "label", {});
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }
  Embeddings embed(const ParamTree& p, const Batch& b, const StepContext&) const override {
    const std::string mistake = own_settings<Settings>(settings->own).mistake;
    Tensor y = tanh(dense(p, "net", b["x"]));
    if (mistake == "counter") y = y * (1 + 1e-3 * static_cast<double>(calls_++));
    if (mistake == "detached") y = stop_gradient(y);
    if (mistake == "undefined") y = matmul(y, Tensor());
    if (mistake == "generator") y = y + 0.01 * random_normal(y.shape(), random_++);
    return {{"y", y}, {"label", b["label"]}};
  }
  LossTerms loss(const ParamTree&, const Batch& all, const StepContext&) const override {
    return {{"loss", sum_all(square(sum(all["y"], {0}))) + sum_all(cross_entropy(all["y"], all["label"]))}};
  }
  std::shared_ptr<const Dataset> source(const ParamTree&, const StepContext&) override {
    const std::string mistake = own_settings<Settings>(settings->own).mistake;
    if (mistake == "no source") return nullptr;
    std::vector<Example> out(12);
    if (mistake == "no data") out.push_back(train_data->get(0));
    const bool four = mistake == "label";  // classes; there are 3 outputs
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].values["x"] = {static_cast<float>(i % 5) - 2, static_cast<float>(i % 3) - 1};
      const auto label = static_cast<i32>(i % 4);
      out[i].ids["label"] = {label == 3 && !four ? kIgnoredLabel : label};
    }
    return std::make_shared<ExampleList>(std::move(out), "numbers");
  }
  std::vector<EvalSet> evaluation() override {
    if (own_settings<Settings>(settings->own).mistake == "no evaluation") return {{nullptr, "held_out"}};
    return {};
  }

 private:
  mutable i64 calls_ = 0;
  mutable u64 random_ = 1;
  ModelParams params_;
};

// Says that it updates each element separately, but divides by the norm.
struct Normed : UpdateRule {
  bool elementwise() const override { return true; }
  Update update(const Tensor& p, const Tensor& g, const Tensors&, const UpdateContext& c) const override {
    return {p - c.learning_rate * (g / sqrt(sum_all(square(g))))};
  }
};

// The same for random numbers.
struct Noisy : UpdateRule {
  bool elementwise() const override { return true; }
  Update update(const Tensor& p, const Tensor& g, const Tensors&, const UpdateContext& c) const override {
    return {p - c.learning_rate * (g + random_normal(p.shape(), 1, p.layout()))};
  }
};

}  // namespace mistakes

REDCO_PIPELINE(mistakes::Embeds)
REDCO_MODEL("wrong_net", mistakes::Net)
REDCO_MODEL("halves", mistakes::Halves)
REDCO_OPTIMIZER("normed", mistakes::Normed)
REDCO_OPTIMIZER("noisy", mistakes::Noisy)
