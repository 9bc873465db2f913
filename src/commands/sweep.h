// A sweep: a YAML file of keys, each with a list of values. Its tasks are all combinations.
//
//   train.learning_rate: [1.0e-3, 3.0e-4]
//   train.seed: [1, 2, 3]
#pragma once

#include <string>
#include <vector>

namespace redco {

struct Sweep {
  std::vector<std::vector<std::string>>
      tasks;  // the overrides of each task, "key=value"; the last key varies first
};
// Does not check the keys and values: the caller loads the job of each task. UsageError with file and line: a
// value that is no list, an empty list, workdir as a key, more than 10,000 tasks.
Sweep read_sweep(const std::string& path);

// workdir/sweep, absolute.
std::string sweep_folder(const std::string& workdir);
// Writes task-N.txt into this folder, one override a line; the array's task N reads it. UsageError if the
// folder has another sweep: tasks of it may still wait or be requeued.
void write_sweep(const Sweep& sweep, const std::string& folder);

}  // namespace redco
