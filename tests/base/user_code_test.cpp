#include "base/user_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "base/error.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

// The error of user's code that fails with f.
template <class F>
std::pair<ExitCode, std::string> failed(F&& f) {
  try {
    in_user_code([](const std::string& why) { return "loss() failed" + why; }, f);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {ExitCode::ok, ""};
}

TEST(UserCode, ErrorsNameTheFunction) {
  const auto [code, text] = failed([] { throw std::out_of_range("index"); });
  EXPECT_EQ(code, ExitCode::usage);
  EXPECT_EQ(text, "loss() failed: index");
  EXPECT_EQ(failed([] { REDCO_CHECK(false, "a shape"); }),
            (std::pair{ExitCode::usage, std::string("loss() failed: a shape")}));
}

TEST(UserCode, ALackOfMemoryNamesTheFunction) {
  const auto [code, text] = failed([] { throw std::bad_alloc(); });
  EXPECT_EQ(code, ExitCode::doesnt_fit);
  EXPECT_THAT(text, HasSubstr("loss() failed: it asked for more memory than there is"));
}

}  // namespace
}  // namespace redco
