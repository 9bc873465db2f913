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

// This replica's rows of a field, of an array that collate() made of `n` examples; `mine`: how many of them
// are this replica's, 0 for a sample. REQUIRES: Python's lock.
Tensor rows_of(const std::string& name, const py::handle& array, i64 n, std::size_t mine,
               const BatchShape& shape);

}  // namespace redco::python
