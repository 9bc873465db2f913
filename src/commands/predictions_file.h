// The file of predictions: whole lines in the input's order, so that a stopped run goes on where it ends.
//
// What decided the predictions is kept beside it, in FILE.settings.json. A run with other settings refuses to
// go on; so does one with other prompts. One process at a time: FOLDER/.FILE.lock is held meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/lease.h"

namespace redco {

class PredictionsFile {
 public:
  // Begins the file, or goes on: a last line that was cut short is dropped. settings: a JSON object of texts
  // and numbers, in objects. overwrite: what is there goes away. UsageError: there is a file that these
  // settings did not make (the message names what differs), or another process writes it.
  PredictionsFile(const std::string& path, const std::string& settings, bool overwrite);

  // Whole lines that are there already.
  i64 kept() const { return kept_; }
  // Line `i` of them must begin with these members (PredictRequest::head); in order, from 0 to kept() - 1.
  // UsageError where it doesn't.
  void check(i64 i, const std::string& head, const std::string& where);
  // Lines, each with its newline; on the disk when it returns.
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
