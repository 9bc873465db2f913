// The SLURM batch script of a job: it requests nodes, starts the ranks, asks them to save before the time
// limit, and requeues the job after they have saved.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct SbatchRequest {
  // How ranks start. automatic: the script uses srun if `srun --mpi=list` lists pmix, else mpirun.
  enum class Launcher { automatic, srun, mpirun };

  std::string job_name = "redco";
  std::string program = "redco";        // path of the program on the nodes
  std::string command = "train";        // train, predict, ...
  std::string job_file;                 // path of the YAML
  std::vector<std::string> overrides;   // key=value
  i64 nodes = 1, ranks = 1;             // ranks are spread evenly; the first nodes take the remainder
  i64 threads_per_rank = 1;             // cores of a rank
  std::string output = "slurm-%j.out";  // SLURM's own patterns: %j job, %x name
  std::optional<std::string> partition, account, qos, constraint;
  std::optional<std::string> time_limit;  // in SLURM's format: 1-12:00:00, 30 (minutes)
  std::vector<std::string> modules;       // `module load` before the command
  // A job array of this many tasks; task N adds the lines of sweep_folder/task-N.txt to the overrides. 0:
  // none.
  i64 tasks = 0;
  std::string sweep_folder;
  std::optional<i64> memory_per_node;  // MiB
  i64 save_seconds = 120;  // s before the time limit when ranks get SIGUSR1; they save and end with code 8
  bool requeue = true;     // requeue the job after it has saved
  Launcher launcher = Launcher::automatic;
};

// Seconds before the end of a time limit (in SLURM's format) when ranks save: `wanted`, but at most half of
// the limit. SLURM ignores a signal that is due before the start. UsageError: not a time limit.
i64 save_seconds(const std::string& time_limit, i64 wanted);

// The whole script. UsageError: a field that a `#SBATCH` line cannot hold, or a number out of range.
std::string make_sbatch_script(const SbatchRequest& request);

}  // namespace redco
