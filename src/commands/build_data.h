// The command data build: the indexes of a job's data, before its training.
#pragma once

#include <string>
#include <vector>

#include "data/index/cached_index.h"
#include "job/job_config.h"

namespace redco {

struct BuiltData {
  std::string folder;  // data.cache, else the folder cache in workdir
  struct Index : CachedIndex {
    bool evaluation = false;
  };
  std::vector<Index> indexes;  // in the order in which training opens them
};

// Builds the indexes of data.train and data.eval that are missing, as training does. Reads the tokenizer and
// the model's config, but no weights. seen: called for each complete index. UsageError: the
// job has neither data.cache nor workdir, or no data. Other errors as in training.
BuiltData build_data(const JobConfig& job, const std::function<void(const BuiltData::Index&)>& seen = {});

// "PATH: 800 examples, 12345 tokens, 1.2 MB, built in 0.31 s"
std::string to_text(const BuiltData::Index& index);
std::string to_json(const BuiltData& data);

}  // namespace redco
