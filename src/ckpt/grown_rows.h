// Reads vocabulary tables that have fewer rows in the file than in the model: rows that the file lacks are
// the mean of its rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/scratch.h"
#include "ckpt/model_files.h"
#include "ckpt/stored_rows.h"

namespace redco::ckpt {

// Rows (of dim 0) of the model's vocabulary tables that the files may lack.
struct MoreRows {
  i64 stored = 0, rows = 0;  // in the files, in the model

  // Whether a tensor of shape `file` may become one of shape `model`.
  bool fits(const Shape& file, const Shape& model) const;
};

class GrownRows {
 public:
  // Reads the tensor once for the mean of its rows.
  void add(const std::string& tensor, const ModelFiles::Located& l);
  bool has(const std::string& tensor) const { return means_.count(tensor) > 0; }

  // As TensorFile::read of p.box, whose rows may be beyond those of the file.
  void read(const Place& p, const ModelFiles::Located& l, float* to, Scratch<unsigned char>& buffer) const;

 private:
  std::map<std::string, std::vector<float>> means_;  // of each column
};

}  // namespace redco::ckpt
