// The file of predictions: whole lines in the order of the input, so that a stopped run can continue.
//
// FILE.settings.json holds the settings that the predictions depend on. A run with other settings or other
// prompts refuses to continue the file. The lock FOLDER/.FILE.lock allows one process at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/lease.h"

namespace redco {

class PredictionsFile {
 public:
  // Begins or continues the file. An incomplete last line is dropped. settings: a JSON object of texts and
  // numbers, also in nested objects. overwrite: removes the old file first. UsageError: the file was made
  // with other settings (the message names them), or another process writes it.
  PredictionsFile(const std::string& path, const std::string& settings, bool overwrite);

  // Whole lines of earlier runs.
  i64 kept() const { return kept_; }
  // Checks that line `i` begins with these members (PredictRequest::head). Called in order, for 0 to kept()
  // - 1. UsageError if it doesn't.
  void check(i64 i, const std::string& head, const std::string& where);
  // Appends lines, each with its newline. They are on the disk when it returns.
  void append(const std::string& lines);

 private:
  std::string path_;
  std::unique_ptr<FileLock> lock_;
  i64 kept_ = 0;
  std::optional<AppendFile> file_;
  class Kept;
  std::shared_ptr<Kept> reader_;
};

}  // namespace redco
