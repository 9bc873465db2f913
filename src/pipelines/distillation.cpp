// Knowledge distillation (Hinton et al. 2015): a student learns the token distributions of the frozen model
// `teacher`, and the data's tokens.
//
//   loss = (1 - alpha) cross-entropy + alpha temperature^2 KL(teacher || student)    per token
#include <algorithm>

#include "base/error.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

// Data, batches and answers are those of pipeline lm.
class Distillation : public Pipeline {
 public:
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b = lm().collate(mine, s);
    for (const char* term : {"cross_entropy", "kl"}) b.weights[term] = b.weights.at("loss");
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const double t = settings->distillation.temperature, alpha = settings->distillation.alpha;
    const auto samples = batch.fields.find("samples");
    ApplyOptions o = ctx.apply, of_teacher;
    o.segmented = of_teacher.segmented = samples != batch.fields.end();
    const DecoderInputs in{batch["input_ids"], batch["positions"], o.segmented ? samples->second : Tensor()};
    const Tensor student = model->apply(params, in, o);  // [B, T, V]
    const Tensor taught = stop_gradient(teacher().apply(params.part("teacher"), in, of_teacher));
    const Tensor log_q = log_softmax(scale(student, 1 / t)), log_p = log_softmax(scale(taught, 1 / t));
    const Tensor kl = sum(exp(log_p) * (log_p - log_q), {-1}) * label_mask(batch["labels"], student.dtype());
    const Tensor nll = sum_all(cross_entropy(student, batch["labels"])), distance = sum_all(kl);
    return {{"loss", scale(nll, 1 - alpha) + scale(distance, alpha * t * t)},
            {"cross_entropy", stop_gradient(nll)},
            {"kl", stop_gradient(distance)}};
  }
  std::string unit() const override { return "tokens"; }

  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return wanted_metrics("distillation", settings->eval.metrics, means);
  }
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return lm().predict(params, examples, ctx);
  }
  std::string output(const Example& example, const std::string& prediction) const override {
    return lm().output(example, prediction);
  }
  bool predicts_any_number() const override { return true; }
  const ModelParams& params() const override { return lm().params(); }

 private:
  const Model& teacher() const {
    const Model& t = *named_model("teacher").model;
    if (t.vocab_size() != model->vocab_size())
      throw UsageError(
          "[models] models.teacher has a vocabulary of {} tokens, and the model one of {}; both need the same",
          t.vocab_size(), model->vocab_size());
    return t;
  }
  Pipeline& lm() const {
    if (!lm_) lm_ = make_lm_pipeline();
    lm_->model = model;
    lm_->tokenizer = tokenizer;
    lm_->settings = settings;
    return *lm_;
  }
  mutable std::unique_ptr<Pipeline> lm_;
};

}  // namespace

std::unique_ptr<Pipeline> make_distillation_pipeline() { return std::make_unique<Distillation>(); }

}  // namespace redco
