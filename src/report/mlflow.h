// Runs as a folder of MLflow (`mlruns`, its file store), which `mlflow ui` shows: plain files, written from
// the workdirs' files only.
#pragma once

#include <string>
#include <vector>

namespace redco {

// Writes each run to FOLDER/EXPERIMENT/RUN-ID: settings as params, metrics.jsonl as metrics, state and
// workdir as tags. A run that is there is replaced. The experiment has the name "redco". IoError.
void write_mlflow(const std::vector<std::string>& workdirs, const std::string& folder);

}  // namespace redco
