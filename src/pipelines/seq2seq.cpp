// Text to text: translation, summarization.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipeline/pair_dataset.h"
#include "pipelines/generation_metrics.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class TextToText : public Pipeline {
 public:
  // Examples of pipeline/pair_dataset.h. source and its mask [B, S]; the decoder's input, positions and
  // labels [B, T].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    BatchShape target = s;
    target.length = s.target_length;
    std::vector<Example> rows(mine.size());
    const std::vector<i32> ones(static_cast<size_t>(target.length), 1);
    double targets = 0;
    for (size_t r = 0; r < mine.size(); ++r) {
      const std::vector<i32>& labels = mine[r].ids.at("labels");
      targets += static_cast<double>(labels.size());
      rows[r].ids["mask"].assign(mine[r].ids.at("source").size(), 1);
      rows[r].ids["decoder_input"] = model->decoder_input_ids(labels);
      rows[r].ids["positions"] = model->positions(ones, false);
    }
    Batch b;
    b.shape = s;
    b.fields["source"] = id_rows(mine, s, "source", 0);
    b.fields["mask"] = id_rows(rows, s, "mask", 0);
    b.fields["decoder_input"] = id_rows(rows, target, "decoder_input", 0);  // only padding attends to padding
    b.fields["positions"] = id_rows(rows, target, "positions", 0);
    b.fields["labels"] = id_rows(mine, target, "labels", kIgnored);
    b.weights["loss"] = targets;
    return b;
  }

  // Teacher forcing: the decoder's input is the target, shifted by one.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    EncoderInputs source;
    source.input_ids = batch["source"];
    source.key_mask = batch["mask"];
    DecoderInputs target{batch["decoder_input"], batch["positions"], {}};
    target.memory = model->encode(params, source, ctx.apply);
    target.memory_mask = batch["mask"];
    const Tensor logits = model->apply(params, target, ctx.apply);
    Scope s("cross-entropy");
    const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
    return {{"loss", sum_all(cross_entropy(logits, batch["labels"], smoothing))}};
  }
  std::string unit() const override { return "tokens"; }

  // Example.ids["source"] -> {"prediction": text, "ids": [...], ...}: see predict_text().
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(
        *model, *tokenizer, params, examples, settings->generation, ctx,
        [&](std::span<const i64> which) { return encode_text(*model, params, examples, which, "source"); });
  }
  bool predicts_any_number() const override { return true; }

  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::seq2seq_lm)
      throw UsageError(
          "[pipeline] pipeline: seq2seq needs an encoder-decoder model (t5, bart), but {} is a {} model",
          model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& r) override {
    return make_pair_dataset({r.files, r.evaluation, settings->data.skip_bad, r.cache, model->vocab_size()},
                             [&] {
                               PairSettings s = pair_settings();
                               s.format = pair_format(settings->data, r.files);
                               return PairLines(*tokenizer, std::move(s));
                             });
  }

  // {"source" (renamed by data.fields), "prompt" or "text": the source text}
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    PairSettings own = pair_settings();  // checks that there is a tokenizer
    const PairLines lines(*tokenizer, std::move(own));
    Example e;
    try {
      e.text = lines.source_of(json);
      e.ids["source"] = lines.source_ids(e.text);
    } catch (const ContentsError& error) {
      throw ContentsError("{}: {}", where, error.what());
    }
    return e;
  }

  // {"id", "source": text, "prediction", ..., "reference"}
  std::string output(const Example& example, const std::string& prediction) const override {
    using Json = nlohmann::ordered_json;
    const Json answer = Json::parse(Pipeline::output(example, prediction));
    Json j = {{"id", answer.at("id")}, {"source", tokenizer->decode(example.ids.at("source"), true)}};
    j.update(answer);
    j["reference"] = example.text;
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  bool measures_outputs() const override {
    return settings->eval.n_outputs.value_or(0) > 0 && asks_generation_metrics(settings->eval.metrics);
  }
  std::map<std::string, double> output_metrics(std::span<const Example>,
                                               const std::vector<std::string>& outputs) const override {
    return generation_metrics(settings->eval.metrics, outputs);
  }

 private:
  static constexpr i32 kIgnored = -100;

  PairSettings pair_settings() const {
    params();
    if (!tokenizer)
      throw UsageError(
          "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
          model->family());
    return PairSettings::of(settings->data, settings->data.max_length.value_or(model->max_length()),
                            model->length_limit());
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_seq2seq_pipeline() { return std::make_unique<TextToText>(); }

}  // namespace redco
