#include "pipeline/bad_ids.h"

#include "base/error.h"
#include "ops/cross_entropy.h"

namespace redco {

std::string describe(const BadId& bad) {
  const i64 last = bad.end - 1;
  switch (bad.use) {
    case kernels::IdUse::row:
      return fmt::format(
          "embedding() got the id {}; expected 0 to {}, because the table has {} rows. Check the ids of the "
          "batch: token ids of another tokenizer than the model's, or positions of rows that are too long",
          bad.id, last, bad.end);
    case kernels::IdUse::element:
      return fmt::format(
          "pick() got the index {}; expected 0 to {}, because the last dim has {} elements, or a negative "
          "number, which selects nothing. Check the indices of the batch",
          bad.id, last, bad.end);
    case kernels::IdUse::label:
      return fmt::format(
          "cross_entropy() got the label {}; expected 0 to {}, because the logits have {} classes, or {}, "
          "which the loss ignores. Check the labels of the batch, or give the model more outputs",
          bad.id, last, bad.end, kIgnoredLabel);
  }
  return "";
}

void throw_bad_id(const Pipeline& pipeline, const std::string& when, const std::string& found) {
  if (pipeline.origin.empty()) throw ContentsError("[data] {}: {}", when, found);
  throw UsageError("[pipeline] {}: {}. The pipeline is {}", when, found, pipeline.origin);
}

void report_bad_id(const Pipeline& pipeline, const std::string& when, const std::optional<BadId>& mine) {
  Group& world = Context::current().world();
  for (const std::string& found : world.gather(mine ? describe(*mine) : std::string()))
    if (!found.empty()) world.together([&] { throw_bad_id(pipeline, when, found); });
  throw BugError("no rank has found an id out of range");
}

}  // namespace redco
