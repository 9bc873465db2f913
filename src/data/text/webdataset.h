// The samples of a webdataset: files of a tar archive that follow each other and have the same name up to the
// first dot. A sample is a JSON object:
//
//   0001.png, .jpg, .webp, ...     "image": its place in the archive (TarPlace), which is read from there
//   0001.txt                      "text" and "caption"
//   0001.cls                      "label"
//   0001.json                     its members
//   all                           "id": 0001, unless the JSON has one
//
// Other files are skipped; the log names the first one.
#pragma once

#include <string>

#include "data/images/tar_members.h"

namespace redco {

class WebdatasetSamples {
 public:
  explicit WebdatasetSamples(const std::string& path) : members_(path) {}

  // The next sample; false at the end. Errors as TarMembers; ContentsError for images in a compressed
  // archive.
  bool next(std::string& json);
  // Why the last sample is bad: JSON that is no object. "": it is not.
  const std::string& problem() const { return problem_; }
  i64 line_number() const { return number_; }  // of the sample, from 1
  std::string where() const;                   // "shard.tar:0001"
  u64 stored_position() const { return members_.stored_position(); }

 private:
  TarMembers members_;
  bool pending_ = false;  // members_ is at the first file of the next sample
  std::string key_, problem_;
  i64 number_ = 0;
};

}  // namespace redco
