// The mistakes of mistakes.txt, each as a newcomer makes it: the command, its exit code, and what its answer
// must say.
#include <sstream>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

struct Mistake {
  std::string name, command;
  int code = -1;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> parts;   // of standard error
  std::vector<std::string> output;  // parts of standard output
};

std::vector<Mistake> read_mistakes() {
  std::istringstream in(slurp(REDCO_SOURCE_DIR "/tests/cli/mistakes.txt"));
  std::vector<Mistake> out;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string rest = line.substr(std::min<std::size_t>(line.find(' ') + 1, line.size()));
    if (line.starts_with("== ")) {
      out.push_back({.name = line.substr(3)});
    } else if (line.empty() || (line.starts_with("#") && out.empty())) {
      continue;
    } else if (out.empty()) {
      throw std::runtime_error(fmt::format("mistakes.txt:{}: expected a case, == NAME", number));
    } else if (line.starts_with("@ ")) {
      out.back().files.emplace_back(rest, "");
    } else if (line.starts_with("| ") && !out.back().files.empty()) {
      out.back().files.back().second += line.substr(2) + "\n";
    } else if (line.starts_with("$ ")) {
      out.back().command = rest;
    } else if (line.starts_with("exit ")) {
      out.back().code = std::stoi(rest);
    } else if (line.starts_with("> ")) {
      out.back().parts.push_back(line.substr(2));
    } else if (line.starts_with("< ")) {
      out.back().output.push_back(line.substr(2));
    } else {
      throw std::runtime_error(fmt::format("mistakes.txt:{}: {}", number, line));
    }
  }
  return out;
}

class Mistakes : public Cli {
 protected:
  // What cases start from: a job, its data, and the workdir of its training.
  static void SetUpTestSuite() {
    start_ = std::make_unique<TempDir>(TempDir::in_memory);
    spill(*start_ / "text.txt", some_text(120));
    spill(*start_ / "job.yaml", kTinyJob);
    std::filesystem::create_directory(*start_ / "bin");
    std::filesystem::create_symlink(REDCO_BINARY, *start_ / "bin/redco");
    const std::string train = "cd '" + start_->path() + "' && bin/redco train job.yaml train.max_steps=2";
    if (std::system((train + " > log 2>&1").c_str()) != 0) throw std::runtime_error(slurp(*start_ / "log"));
  }
  static void TearDownTestSuite() { start_.reset(); }

  static inline std::unique_ptr<TempDir> start_;
};

TEST_F(Mistakes, AreAnsweredWithPlaceReasonAndRemedy) {
  const std::string path = start_->path() + "/bin:" + std::getenv("PATH");
  const auto all = read_mistakes();
  EXPECT_GE(all.size(), 140u);
  for (const Mistake& m : all) {
    SCOPED_TRACE(m.name + "\n$ " + m.command);
    ASSERT_TRUE(!m.command.empty() && m.code >= 0 && !(m.parts.empty() && m.output.empty()));
    std::filesystem::remove_all(dir_.path());
    std::filesystem::copy(
        start_->path(), dir_.path(),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    for (const auto& [name, text] : m.files) write(name, text);
    const Ran r = run_shell(m.command, {{"PATH", path}, {"FIXTURES", REDCO_FIXTURES}});
    EXPECT_EQ(r.code, m.code) << r.err;
    EXPECT_EQ(lines_with(r.err, "error: "), m.code != 0) << r.err;
    for (const std::string& part : m.parts) EXPECT_THAT(r.err, HasSubstr(part));
    for (const std::string& part : m.output) EXPECT_THAT(r.out, HasSubstr(part));
  }
}

}  // namespace
}  // namespace redco::test
