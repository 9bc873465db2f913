#include "pipeline/compile_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::spill;
using ::testing::HasSubstr;

TEST(CompilePlugin, OnceForEachContentOfTheSourceAndItsHeaders) {
  test::TempDir dir;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string before = cache ? cache : "";
  ::setenv("XDG_CACHE_HOME", (dir / "cache").c_str(), 1);
  // A folder and a name with characters that rules of make escape.
  const std::string folder = dir / "my $ code";
  make_dirs(folder);
  const std::string source = join_path(folder, "mine.cpp"), header = join_path(folder, "its header.h");
  spill(header, "inline int answer() { return 42; }\n");
  spill(source, "#include <cstddef>\n#include \"its header.h\"\nint mine() { return answer(); }\n");
  // Sources that are as new as the compilation are compiled again.
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1);
  const auto age = [&] {
    for (const std::string& f : {source, header}) std::filesystem::last_write_time(f, old);
  };
  age();
  const auto time = [](const CompiledPlugin& p) { return std::filesystem::last_write_time(p.path); };

  const CompiledPlugin first = compiled_plugin(source, "pipeline");
  const auto made = time(first);
  const CompiledPlugin again = compiled_plugin(source, "pipeline");
  EXPECT_EQ(again.fingerprint, first.fingerprint);
  EXPECT_EQ(again.path, first.path);
  EXPECT_EQ(time(again), made);

  spill(header, "inline int answer() { return 43; }\n");
  age();
  const CompiledPlugin changed = compiled_plugin(source, "pipeline");
  EXPECT_NE(changed.fingerprint, first.fingerprint);
  EXPECT_GT(time(changed), made);

  spill(source, "int mine() {\n  return none;\n}\n");
  const std::string error = error_text<UsageError>([&] { compiled_plugin(source, "plugins"); });
  EXPECT_THAT(error, HasSubstr("[plugins] " + source + " does not compile:\n"));
  EXPECT_THAT(error, HasSubstr("mine.cpp:2:10: error: "));
  EXPECT_THAT(error, HasSubstr("return none;"));
  // The error leaves no other content behind.
  spill(source, "int mine() { return 1; }\n");
  age();
  EXPECT_NE(compiled_plugin(source, "pipeline").fingerprint, changed.fingerprint);
  cache ? ::setenv("XDG_CACHE_HOME", before.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

TEST(CompilePlugin, Sources) {
  EXPECT_TRUE(is_cpp_file("./a.cpp"));
  EXPECT_TRUE(is_cpp_file("a.cc"));
  EXPECT_FALSE(is_cpp_file("a.so"));
  EXPECT_FALSE(is_cpp_file("cpp"));
}

}  // namespace
}  // namespace redco
