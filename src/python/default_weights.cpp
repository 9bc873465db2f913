#include "python/default_weights.h"

#include <algorithm>

#include "base/log_once.h"
#include "python/bindings.h"

namespace redco::python {

void DefaultWeights::add_to(Batch& batch, i64 rows, std::optional<std::span<const i32>> labels) const {
  const bool tokens = unit == "tokens";
  double weight = static_cast<double>(rows);
  if (tokens && labels)
    weight = static_cast<double>(std::ranges::count_if(*labels, [](i32 id) { return id >= 0; }));
  for (const std::string& term : terms) {
    if (!batch.weights.emplace(term, weight).second) continue;
    if (tokens && !labels)
      throw PythonError(fmt::format(
          "`unit` is \"tokens\", but collate() gives neither the weight of '{}' nor an array of ids "
          "`labels`. Let collate() return (fields, number of tokens)",
          term));
    const bool for_each_token = labels && batch["labels"].shape().size() > 1 && batch["labels"].size(-1) > 1;
    if (for_each_token && !tokens && Context::current().world().rank() == 0)
      log_once(LogLevel::info,
               fmt::format("the weight of '{}' is the number of rows. For a sum over tokens set unit = "
                           "\"tokens\" in the class: the weight is then the number of labels",
                           term));
  }
}

}  // namespace redco::python
