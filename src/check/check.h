// `redco check`: runs the loss and the gradients of a job's first training step on several meshes and with
// several sizes of micro-batches, on the same examples and parameters, and compares them with those of the
// first combination. It finds losses that depend on the rank, randomness that is tied to the layout, wrong
// weights, and fields that only some replicas have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/report.h"
#include "job/job_config.h"

namespace redco {

struct CheckOptions {
  std::string meshes = "1x1,2x1,1x2";  // see combinations()
  std::optional<std::string> micro;
  bool json = false;
};

// Every mesh DPxMP with every number of rows of a replica in a micro-batch; a mesh DPxMP:ROWS has its own
// number alone. Without `micro`: 1, and the most, up to 4, that a replica of each mesh has of the `rows` of
// the step. UsageError: a word that is none of these, a combination that is given twice.
std::vector<Combination> combinations(const CheckOptions& o, i64 rows);

// Why the step can't be divided like this; "" if it can.
std::string impossible(const Combination& c, i64 rows);

// Checks the job as training does, runs redco once for each combination on this machine (in a SLURM
// allocation on its nodes, which must share $TMPDIR), prints the report and returns its exit code. `program`:
// this program's path. A run that fails is reported, and the others are made. But if the first
// combination has one rank, an error of the job or of a file (codes 2 and 3) ends the check.
// If no combination ran, the messages are one error, or with json part of the report. UsageError for a job
// that training refuses, but a workdir isn't needed.
int run_check(JobConfig job, const CheckOptions& o, const std::string& program);

}  // namespace redco
