// The built-in pipelines, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// A built-in name, or the path of a user's shared object (anything with a '/' or ending in .so). UsageError
// otherwise.
std::unique_ptr<Pipeline> make_pipeline(const std::string& name);
std::vector<std::string> pipeline_names();

std::unique_ptr<Pipeline> make_lm_pipeline();

}  // namespace redco
