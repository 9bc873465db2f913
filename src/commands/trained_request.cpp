#include "commands/trained_request.h"

#include "job/prepare_job.h"

namespace redco {

RunRequest trained_request(const RunRequest& request, Weights weights, JobUse use) {
  RunRequest r = request;
  r.job = [given = request.job, weights, use, lease = std::make_shared<std::shared_ptr<Lease>>()] {
    TrainedJob trained = trained_job(given(), weights);
    if (use == JobUse::evaluate) use_trained_evaluation(trained.job);
    prepare_job(trained.job, use);
    *lease = std::move(trained.lease);
    return std::move(trained.job);
  };
  return r;
}

}  // namespace redco
