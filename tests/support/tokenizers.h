// Helpers for the tests of tokenizers, jinja and chat.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/base64.h"
#include "base/error.h"
#include "support/temp_dir.h"
#include "tokenizers/tokenizer.h"

namespace redco::test {

inline std::string tokenizer_fixture(const std::string& kind) {
  return std::string(REDCO_FIXTURES) + "/tokenizers/" + kind;
}

// The character map of the t5 fixture: sentencepiece's nmt_nfkc.
inline std::string t5_charsmap() {
  const auto t5 = nlohmann::json::parse(slurp(tokenizer_fixture("t5") + "/tokenizer.json"));
  return decode_base64(t5["normalizer"]["precompiled_charsmap"].get<std::string>(), "t5");
}

// The exit code and message of the error that f throws; code ok if it throws none.
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
