// Runs verify on a copy of a fixture in which a test changes expected tensors.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/ranks.h"
#include "support/temp_dir.h"
#include "support/tensor_file.h"
#include "verify/verify.h"

namespace redco::test {

using redco::testing::on_mesh;

class EditedFixture {
 public:
  explicit EditedFixture(const std::string& name) : tensors(folder(name) + "/expected.safetensors") {
    std::filesystem::copy(folder(name), dir_.path(), std::filesystem::copy_options::recursive);
  }
  static std::string folder(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }

  // The report for the current tensors.
  VerifyReport report(const Mesh& mesh = {1, 1}, bool strict = false) {
    std::filesystem::remove(dir_ / "expected.safetensors");
    tensors.save(dir_ / "expected.safetensors");
    VerifyReport out;
    on_mesh(mesh, [&](Context& c) {
      VerifyReport r = verify({.folder = dir_.path(), .strict = strict});
      if (c.rank() == 0) out = std::move(r);
    });
    return out;
  }

  EditedTensors tensors;

 private:
  TempDir dir_{TempDir::in_memory};
};

inline const VerifyLine& line_of(const VerifyReport& r, const std::string& tensor) {
  static const VerifyLine none{"no such line"};
  for (const VerifyLine& l : r.lines)
    if (l.tensor == tensor) return l;
  ADD_FAILURE() << "the report has no line for " << tensor;
  return none;
}

}  // namespace redco::test
