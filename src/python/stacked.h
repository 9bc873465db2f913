// Examples and arrays with a row for each of them.
#pragma once

#include "pipeline/pipeline.h"
#include "python/bindings.h"
#include "python/default_weights.h"

namespace redco::python {

// The default of collate(): every field of the first example. Ids of one dim are padded to the length of
// `shape` with 0, `labels` with -100; fields of one shape are stacked. Runs without Python's lock.
// UsageError: examples with different fields or shapes.
Batch stacked_batch(std::span<const Example> mine, const BatchShape& shape, const DefaultWeights& weights);

}  // namespace redco::python
