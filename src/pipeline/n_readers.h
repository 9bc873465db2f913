// The threads that read examples.
#pragma once

#include <optional>

#include "pipeline/example.h"
#include "pipeline/pipeline.h"

namespace redco {

// The number of threads that read examples: n_workers (data.n_workers); by default 1, and for costly reading
// as many as the calling rank has for its kernels, at most 4. 0: the rank's own thread.
int n_readers(Reading reading, std::optional<i64> n_workers);

}  // namespace redco
