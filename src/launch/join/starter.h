// Which of the processes of a job this one is, if a starter (Kubernetes, a script on each host) starts one
// redco on each host: from the options of `redco train`, and from the variables of common starters.
#pragma once

#include <optional>
#include <string>

#include "launch/slurm.h"

namespace redco {

struct JoinOptions {
  std::optional<i64> n_processes, process_id;
  std::string host0_address;
  std::optional<i64> host0_port;
  std::string key_file;
};

struct JoinPlace {
  i64 n_processes = 1, process_id = 0;
  std::string host0;  // address or name of the host of process 0
  int port = 0;
  std::string source;  // what gave the values: "the options", "MASTER_ADDR, WORLD_SIZE and RANK"
  std::string job;     // the words of the command about its job: "job.yaml workdir=runs/a"
};

constexpr int kJoinPort = 29571;

// nullopt: this is an ordinary start. Variables count if they are complete, or if they complete the options:
//   MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK           torchrun's names (PyTorchJob); one process per host.
//                                                        In a process of torchrun, which uses MASTER_PORT
//                                                        itself, the port is kJoinPort
//   MASTER_ADDR, MASTER_PORT, PET_NNODES, PET_NODE_RANK  the same
//   JOB_COMPLETION_INDEX                                 Kubernetes: --process-id
//   SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST; PBS_NODENUM, PBS_NODEFILE; LSF_PM_TASKID,
//   LSB_MCPU_HOSTS                                       all, if one option is given
// UsageError: an option without what it needs, a value out of range, several processes of torchrun on a host.
std::optional<JoinPlace> join_place(const JoinOptions& options, const Environment& environment);

// For the log, if variables name several hosts but are not complete, so that this is an ordinary start; "" if
// not.
std::string incomplete_place(const Environment& environment);

}  // namespace redco
