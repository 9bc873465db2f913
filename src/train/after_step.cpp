#include "train/after_step.h"

#include "base/error.h"
#include "tensor/node.h"

namespace redco {

void AfterStep::call(Pipeline& pipeline, const ParamTree& params, const StepOutcome& outcome,
                     const StepContext& ctx) {
  const NoGrad off;
  Context::current().phase = "after step";
  last_ =
      in_pipeline(pipeline, "after_step()", [&] { return pipeline.after_step(params, outcome.terms, ctx); });
}

std::map<std::string, double> AfterStep::values(const Pipeline& pipeline) const {
  std::map<std::string, double> out = in_pipeline(pipeline, "notes()", [&] { return pipeline.notes(); });
  for (const auto& [name, value] : last_.values)
    if (!out.emplace(name, value).second)
      throw UsageError("[pipeline] notes() and after_step() both have a value '{}'; use another name", name);
  return out;
}

void AfterStep::write_histograms(MetricsLog& log, i64 step) const {
  for (const auto& [name, elements] : last_.histograms) log.histogram(step, name, elements);
}

}  // namespace redco
