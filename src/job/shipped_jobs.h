// The job files of configs/, which are part of the program.
#pragma once

#include <string>
#include <vector>

namespace redco {

struct ShippedJob {
  std::string name;     // "lm/gpt2": its path under configs/ without .yaml
  std::string summary;  // the first sentence of its first comment
  std::string text;     // the file
};

// All of them, by name.
const std::vector<ShippedJob>& shipped_jobs();

// The job of that name, with or without .yaml; the folder may be left out where only one job is called so.
// UsageError with the nearest name.
const ShippedJob& shipped_job(const std::string& name);

// The line by which editors find the JSON Schema of a YAML file ("# yaml-language-server: $schema=WHERE\n").
std::string schema_line(const std::string& where);

// The job's text for a file of the user's own, with the schema at `schema` (a path or URL; "": no such line).
std::string text_for_user(const ShippedJob& job, const std::string& schema);

}  // namespace redco
