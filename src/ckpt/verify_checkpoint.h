// Checks that a checkpoint has the bytes that were saved.
#pragma once

#include <string>

#include "base/types.h"

namespace redco::ckpt {

enum class Part : std::uint8_t {
  model,     // the files of a model folder: without training/
  training,  // all files
};

// Reads the files of the folder's manifest and compares each chunk's hash. The ranks of a host share the
// chunks, so every byte is read once per host; later reads come from the page cache. A folder without
// training/manifest.json is not checked. Collective: an error on one rank is thrown on all.
//
// ContentsError: a file is missing, short, long or damaged; the message names the file, the byte range that
// differs, and the newest older complete checkpoint in the same folder as a value of `setting`
// ("checkpoint.resume", "predict.checkpoint", "model.path"). IoError: a file is not readable.
void verify_checkpoint(const std::string& folder, Part part, const std::string& setting);

// One small file of the folder ("training/job.yaml"), checked alone against the manifest, if there is one.
// Not collective. Errors as above.
std::string read_verified(const std::string& folder, const std::string& file, const std::string& setting);

}  // namespace redco::ckpt
