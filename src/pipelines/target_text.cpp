#include "pipelines/target_text.h"

#include <nlohmann/json.hpp>

#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipelines/generation_metrics.h"

namespace redco {

void TargetTextPipeline::collate_targets(std::span<const Example> mine, const BatchShape& s, Batch& b) const {
  constexpr i32 kIgnored = -100;
  std::vector<Example> rows(mine.size());
  const std::vector<i32> ones(static_cast<size_t>(s.length), 1);
  double targets = 0;
  for (size_t r = 0; r < mine.size(); ++r) {
    const std::vector<i32>& labels = mine[r].ids.at("labels");
    targets += static_cast<double>(labels.size());
    rows[r].ids["decoder_input"] = model->decoder_input_ids(labels);
    rows[r].ids["positions"] = model->positions(ones, false);
  }
  b.fields["decoder_input"] = id_rows(rows, s, "decoder_input", 0);  // only padding attends to padding
  b.fields["positions"] = id_rows(rows, s, "positions", 0);
  b.fields["labels"] = id_rows(mine, s, "labels", kIgnored);
  b.weights["loss"] = targets;
}

LossTerms TargetTextPipeline::loss(const ParamTree& params, const Batch& batch,
                                   const StepContext& ctx) const {
  const EncoderInputs source = encoder_inputs(batch);
  DecoderInputs target{batch["decoder_input"], batch["positions"], {}};
  target.memory = model->encode(params, source, ctx.apply);
  target.memory_mask = source.key_mask;
  const Tensor logits = model->apply(params, target, ctx.apply);
  Scope s("cross-entropy");
  const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
  return {{"loss", sum_all(cross_entropy(logits, batch["labels"], smoothing))}};
}

bool TargetTextPipeline::measures_outputs() const {
  return settings->eval.n_outputs.value_or(0) > 0 && asks_generation_metrics(settings->eval.metrics);
}
std::map<std::string, double> TargetTextPipeline::output_metrics(
    std::span<const Example>, const std::vector<std::string>& outputs) const {
  return generation_metrics(settings->eval.metrics, outputs, metric_families());
}

std::string TargetTextPipeline::named_output(const Example& example, const std::string& prediction,
                                             const char* key) const {
  using Json = nlohmann::ordered_json;
  const Json answer = Json::parse(Pipeline::output(example, prediction)), said = Json::parse(example.text);
  Json j = {{"id", answer.at("id")}, {key, said.at(key)}};
  j.update(answer);
  if (const auto caption = said.find("caption"); caption != said.end()) j["reference"] = *caption;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace redco
