// A language model with what a job may have besides its model: a value head of the pipeline, a frozen
// reference, a second trained model, the model without its adapters, and a frozen model with the value head
// of its training, which scores the examples. `settings:` selects it.
#include <algorithm>

#include "redco.h"

using namespace redco;

struct PartsSettings {
  bool value_head = false, reference = false, second = false, without_adapters = false, scored = false;
  bool wrong_part = false, measured = false;
  i64 head_outputs = 1;
  std::string answers = "head";
  void visit(SettingsVisitor& v) {
    v.field("value_head", value_head, "a head of the pipeline on the logits");
    v.field("reference", reference, "distance to the frozen model `reference`");
    v.field("second", second, "trains the model `second` too");
    v.field("without_adapters", without_adapters, "distance to the model without its adapters");
    v.field("scored", scored, "weights of the examples by the frozen model `reward`");
    v.field("wrong_part", wrong_part, "reads the parameters of a model that the job does not have");
    v.field("measured", measured, "measures the answers of an evaluation");
    v.field("head_outputs", head_outputs, "outputs of the value head").one_of({1, 2});
    v.field("answers", answers, "what predict() returns").one_of({"head", "texts", "prompt", "lines"});
  }
};

class Parts : public Pipeline {
  ModelParams extra_params() const override {
    ModelParams out;
    if (!own().value_head) return out;
    SpecBuilder b(out);
    b.linear("v_head", own().head_outputs, model->hidden_size(), false, 0.02);
    return out;
  }
  ModelParams extra_params_of(const std::string& name) const override {
    ModelParams out;
    if (name != "reward") return out;
    SpecBuilder b(out);
    b.linear("v_head", 1, named_model("reward").model->hidden_size(), false, 0.02);
    return out;
  }
  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    const auto data = Pipeline::source(params, ctx);
    if (!own().scored) return data;
    std::vector<Example> examples;
    for (i64 i = 0; i < data->size(); ++i) examples.push_back(data->get(i));
    const auto scores = score_examples(
        params, examples, 3, [&](const ParamTree& p, std::span<const Example> rows, const BatchShape& shape) {
          const ParamTree theirs = p.part("reward");
          const Tensor h =
              named_model("reward").model->last_hidden_state(theirs, inputs(collate(rows, shape)), {});
          return mean(linear(h, theirs["v_head.weight"]), {1, 2});
        });
    for (size_t i = 0; i < examples.size(); ++i) examples[i].values["score"] = {scores[i]};
    return std::make_shared<ExampleList>(std::move(examples), "scored");
  }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    Batch b;
    b.shape = s;
    for (const char* term : {"loss", "distance", "value", "score"}) b.weights[term] = 0;
    for (size_t r = 0; r < mine.size(); ++r) {
      const std::vector<i32>& labels = mine[r].ids.at("labels");
      rows[r].values["score"] = {mine[r].values.count("score") ? mine[r].values.at("score")[0] : 0};
      rows[r].ids["positions"] = model->positions(std::vector<i32>(s.length, 1), false);
      const auto n =
          static_cast<double>(std::count_if(labels.begin(), labels.end(), [](i32 i) { return i >= 0; }));
      for (auto& [term, weight] : b.weights) weight += n;
    }
    b.fields["input_ids"] = id_rows(mine, s, "input_ids", 0);
    b.fields["labels"] = id_rows(mine, s, "labels", -100);
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    b.fields["score"] = value_rows(rows, s, "score", {});
    return b;
  }
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const DecoderInputs in = inputs(batch);
    const Tensor logits = model->apply(params, in, ctx.apply);
    Tensor total = sum_all(cross_entropy(logits, batch["labels"]));
    LossTerms more;
    if (own().wrong_part) params.part("refrence");
    if (own().value_head) {
      const Tensor value = sum_all(square(
          add_scalar(linear(model->last_hidden_state(params, in, ctx.apply), params["v_head.weight"]), -1)));
      total = total + 0.01 * value;
      more.push_back({"value", stop_gradient(value)});
    }
    if (own().second) {
      const Tensor other = named_model("second").model->apply(params.part("second"), in, ctx.apply);
      total = total + sum_all(cross_entropy(other, batch["labels"]));
    }
    Tensor fixed;
    if (own().reference) fixed = named_model("reference").model->apply(params.part("reference"), in, {});
    if (own().without_adapters) fixed = model->apply(params.without_adapters(), in, {});
    if (fixed.defined()) {
      const Tensor distance = sum_all(square(logits - fixed));
      total = total + 0.001 * distance;
      more.push_back({"distance", stop_gradient(distance)});
    }
    if (own().scored) {
      const Tensor nll = sum(cross_entropy(logits, batch["labels"]), {1});
      total = total + sum_all(nll * batch["score"]);
      more.push_back({"score", sum_all(batch["score"])});
    }
    LossTerms out = {{"loss", total}};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    const std::string how = own().answers;
    const char* answer = how == "texts"    ? R"({"prediction": "abc"})"
                         : how == "prompt" ? R"({"prompt": "again"})"
                                           : "{\"head\":\n1}";
    if (how != "head") return std::vector<std::string>(examples.size(), answer);
    double sum = 0;
    if (own().value_head)
      for (const double v : to_values(params["v_head.weight"])) sum += v;
    return std::vector<std::string>(examples.size(), fmt::format("{{\"head\": {:.6f}}}", sum));
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return means;
  }

  bool measures_outputs() const override { return own().measured; }
  std::string output(const Example& example, const std::string& prediction) const override {
    if (own().answers != "texts") return Pipeline::output(example, prediction);
    return R"({"prediction": "abc", "reference": "xyz"})";
  }

  static DecoderInputs inputs(const Batch& batch) { return {batch["input_ids"], batch["positions"], {}}; }
  PartsSettings own() const { return own_settings<PartsSettings>(settings->own); }
};

REDCO_PIPELINE(Parts)
