// Pipelines whose model encodes an input and decodes a text: translation, captions, transcripts.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "metrics/text_metrics.h"
#include "pipeline/pipeline.h"

namespace redco {

class TargetTextPipeline : public Pipeline {
 public:
  // Teacher forcing: the decoder's input is the target, shifted by one.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override;
  std::string unit() const override { return "tokens"; }
  bool predicts_any_number() const override { return true; }
  bool measures_outputs() const override;
  std::map<std::string, double> output_metrics(std::span<const Example>,
                                               const std::vector<std::string>& outputs) const override;

 protected:
  // What the encoder reads of a batch.
  virtual EncoderInputs encoder_inputs(const Batch& batch) const = 0;
  // Names for eval.metrics.
  virtual const MetricFamilies& metric_families() const { return built_in_text_metrics(); }

  // Adds the decoder's input, positions and labels [B, length] of ids["labels"], and the weight of the loss.
  void collate_targets(std::span<const Example> mine, const BatchShape& s, Batch& b) const;

  // output() of examples whose text is {key: name, "caption": reference}: {"id", key: name, "prediction",
  // ..., "reference"}.
  std::string named_output(const Example& example, const std::string& prediction, const char* key) const;
};

}  // namespace redco
