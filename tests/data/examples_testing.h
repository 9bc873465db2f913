// Builds indexes of example lines in a temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "data/text/packing.h"
#include "support/temp_dir.h"

namespace redco {

class Examples : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return dir_ / name; }
  std::string cache() const { return dir_ / "cache"; }

  ExampleIndex build(const std::string& lines, ExampleSource source = {}, const Tokenizer* t = nullptr) {
    test::spill(file("a.jsonl"), lines);
    source.paths = {file("a.jsonl")};
    return ExampleIndex::open(build_example_index(source, t ? *t : *bytes_, cache()), source.paths);
  }
  // The message of the ContentsError.
  std::string refused(const std::string& lines, const ExampleSource& source = {}) {
    try {
      build(lines, source);
    } catch (const ContentsError& e) {
      return e.what();
    }
    return "no error";
  }
  static ExampleRows rows(const ExampleIndex& index, const RowSettings& s) {
    return ExampleRows::open(build_rows(index, s));
  }

  test::TempDir dir_{test::TempDir::in_memory};
  std::unique_ptr<Tokenizer> bytes_ = load_tokenizer("bytes");
};

}  // namespace redco
