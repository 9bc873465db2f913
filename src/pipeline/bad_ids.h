// Ids that an op does not accept: labels beyond the classes, token ids beyond the vocabulary. The kernels
// find them late (kernels/queue.h), so all ranks learn of them together, in the collectives that end a
// training step, an evaluation and a prediction.
#pragma once

#include <optional>
#include <string>

#include "kernels/queue.h"
#include "pipeline/pipeline.h"

namespace redco {

// "cross_entropy() got the label 12; ..." with what was expected and what to do.
std::string describe(const BadId& bad);

// The error: a UsageError for a user's pipeline, a ContentsError for one of redco's. when: "step 3"; found:
// describe().
[[noreturn]] void throw_bad_id(const Pipeline& pipeline, const std::string& when, const std::string& found);
// The same on all ranks, of which at least one has found an id: the error is that of the lowest one.
// Collective.
[[noreturn]] void report_bad_id(const Pipeline& pipeline, const std::string& when,
                                const std::optional<BadId>& mine);

}  // namespace redco
