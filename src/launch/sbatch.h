// The SLURM batch script of a job: asks for nodes, starts the ranks, has them save before the time limit, and
// puts the job back into the queue when they have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct SbatchRequest {
  // How ranks start. automatic: the script asks the cluster (`srun --mpi=list`) and takes srun where it has
  // pmix.
  enum class Launcher { automatic, srun, mpirun };

  std::string job_name = "redco";
  std::string program = "redco";        // path of the program on the nodes
  std::string command = "train";        // train, predict, ...
  std::string job_file;                 // path of the YAML
  std::vector<std::string> overrides;   // key=value
  i64 nodes = 1, ranks = 1;             // ranks are spread evenly, the first nodes have the rest
  i64 threads_per_rank = 1;             // cores of a rank
  std::string output = "slurm-%j.out";  // SLURM's own patterns: %j job, %x name
  std::optional<std::string> partition, account,
      time_limit;                      // time as SLURM writes it: 1-12:00:00, 30 (minutes)
  std::optional<i64> memory_per_node;  // MiB
  i64 save_seconds = 120;  // SIGUSR1 so long before the time limit; ranks save and end with code 8
  bool requeue = true;     // ... and the job goes back into the queue
  Launcher launcher = Launcher::automatic;
};

// The whole script. UsageError for fields that a `#SBATCH` line can't hold or numbers that make no sense.
std::string make_sbatch_script(const SbatchRequest& request);

}  // namespace redco
