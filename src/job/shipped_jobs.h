// The example jobs: the files of configs/, which are compiled into the program.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct ShippedJob {
  std::string name;     // "lm/gpt2": its path under configs/ without .yaml
  std::string summary;  // the first sentence of its first comment
  std::string text;     // the file
};

// All jobs, sorted by name.
const std::vector<ShippedJob>& shipped_jobs();

// The job with this name, with or without .yaml. The folder may be omitted if the rest is unique. UsageError
// with the nearest name.
const ShippedJob& shipped_job(const std::string& name);

// The comment line that tells editors the JSON Schema of a YAML file ("# yaml-language-server:
// $schema=WHERE\n").
std::string schema_line(const std::string& where);

// The job's text for a copy, with the schema at `schema` (a path or URL; "" writes no schema line).
std::string text_for_user(const ShippedJob& job, const std::string& schema);

}  // namespace redco
