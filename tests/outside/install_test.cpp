// The installation as README describes it: scripts/build, then cmake --install.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "outside_testing.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;

class Install : public Outside {};

// scripts/build does not build everything. An installed file that it does not build is an error of cmake
// --install.
TEST_F(Install, ScriptsBuildBuildsAllInstalledFiles) {
  if (cached("CMAKE_GENERATOR") != "Ninja") GTEST_SKIP() << "the build tree was not made by Ninja";
  std::smatch target;
  const std::string script = slurp(REDCO_SOURCE_DIR "/scripts/build");
  ASSERT_TRUE(std::regex_search(script, target, std::regex("\ncompile \"\\$BUILD\" (\\w+)\n"))) << script;
  const std::string ninja = "ninja -C '" + build_dir() + "' -t ";
  const std::string commands = shell(dir_->path(), ninja + "commands " + target[1].str()).said;
  // "src/libredco.so.0: CMAKE_SYMLINK_LIBRARY"
  std::set<std::string> outputs;
  std::istringstream lines(shell(dir_->path(), ninja + "targets all").said);
  for (std::string line; std::getline(lines, line);) outputs.insert(line.substr(0, line.find(": ")));

  std::set<std::string> installed;
  const std::regex path("\"" + build_dir() + "/([^\"]+)\"");
  for (const auto& e : fs::recursive_directory_iterator(build_dir())) {
    if (e.path().filename() != "cmake_install.cmake") continue;
    const std::string text = slurp(e.path().string());
    for (std::sregex_iterator m(text.begin(), text.end(), path), end; m != end; ++m)
      if (outputs.count((*m)[1])) installed.insert((*m)[1]);
  }
  EXPECT_EQ(installed.count("bin/redco"), 1u);
  EXPECT_GE(installed.size(), 3u);  // the program, the library and its links
  for (const std::string& file : installed)
    EXPECT_THAT(commands, HasSubstr(file)) << "'ninja " << target[1] << "' does not build it";
}

TEST_F(Install, TheManualAndTheCompletionsAreInstalledWhereProgramsLookForThem) {
  for (const auto& [file, words] :
       std::map<std::string, std::string>{{"man/man1/redco.1", "man"},
                                          {"bash-completion/completions/redco", "completion bash"},
                                          {"zsh/site-functions/_redco", "completion zsh"},
                                          {"fish/vendor_completions.d/redco.fish", "completion fish"}}) {
    const Ran r = shell(dir_->path(), "prefix/bin/redco " + words);
    ASSERT_EQ(r.code, 0) << r.said;
    EXPECT_FALSE(r.said.empty());
    ASSERT_TRUE(fs::exists(*dir_ / ("prefix/share/" + file))) << file;
    EXPECT_EQ(slurp(*dir_ / ("prefix/share/" + file)), r.said) << file;
  }
}

// Outside::SetUpTestSuite runs the second line, scripts/test-full both.
TEST_F(Install, ReadmeShowsTheCommandsThatTheTestsRun) {
  const std::string readme = slurp(REDCO_SOURCE_DIR "/README.md");
  EXPECT_THAT(readme, HasSubstr("\n    ./scripts/build\n"));
  EXPECT_THAT(readme, HasSubstr("\n    cmake --install build --prefix ~/redco\n"));
}

}  // namespace
}  // namespace redco::test
