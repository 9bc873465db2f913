// Helpers of the tokenizers' tests.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/base64.h"
#include "base/error.h"
#include "text/tokenizer.h"

namespace redco::test {

inline std::string tokenizer_fixture(const std::string& kind) {
  return std::string(REDCO_FIXTURES) + "/tokenizers/" + kind;
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The character map of the t5 fixture: sentencepiece's nmt_nfkc.
inline std::string t5_charsmap() {
  const auto t5 = nlohmann::json::parse(slurp(tokenizer_fixture("t5") + "/tokenizer.json"));
  return decode_base64(t5["normalizer"]["precompiled_charsmap"].get<std::string>(), "t5");
}

// A fresh folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = std::filesystem::temp_directory_path() / "redco-test-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The exit code and message of what f throws; code ok where it doesn't.
template <class F>
std::pair<ExitCode, std::string> failure_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {ExitCode::ok, ""};
}

}  // namespace redco::test
