// The requests of commands that use a trained model.
#pragma once

#include "assembly/trained_job.h"
#include "run/run.h"

namespace redco {

// `request` with the job of trained_job(), checked for `use`. The request's job holds the lease on the
// checkpoint.
RunRequest trained_request(const RunRequest& request, Weights weights, JobUse use);

}  // namespace redco
