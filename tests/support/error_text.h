// The message of the error that f throws, or "no error". Exceptions of other types are not caught.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"

namespace redco {

template <class E>
std::string error_text(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

inline std::string usage_error(const std::function<void()>& f) { return error_text<UsageError>(f); }

}  // namespace redco
