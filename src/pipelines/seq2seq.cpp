// Text to text: translation, summarization.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/pair_dataset.h"
#include "pipelines/pipelines.h"
#include "pipelines/target_text.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class TextToText : public TargetTextPipeline {
 public:
  // Examples of pipeline/pair_dataset.h. source and its mask [B, S]; the decoder's input, positions and
  // labels [B, T].
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    BatchShape target = s;
    target.length = s.target_length;
    std::vector<Example> rows(mine.size());
    for (size_t r = 0; r < mine.size(); ++r) rows[r].ids["mask"].assign(mine[r].ids.at("source").size(), 1);
    Batch b;
    b.shape = s;
    b.fields["source"] = id_rows(mine, s, "source", 0);
    b.fields["mask"] = id_rows(rows, s, "mask", 0);
    collate_targets(mine, target, b);
    return b;
  }

  // Example.ids["source"] -> {"prediction": text, "ids": [...], ...}: see predict_text().
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(
        *model, *tokenizer, params, examples, settings->generation, ctx,
        [&](std::span<const i64> which) { return encode_text(*model, params, examples, which, "source"); });
  }

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

 protected:
  EncoderInputs encoder_inputs(const Batch& batch) const override {
    return {.input_ids = batch["source"], .key_mask = batch["mask"]};
  }

 private:
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
