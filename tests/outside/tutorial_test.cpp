// docs/tutorial.md, as its reader follows it: the code, files and commands of the page, in their order.
#include <cmath>
#include <regex>

#include "outside_testing.h"
#include "support/docs.h"

namespace redco::test {
namespace {

struct Block {
  std::string kind, text;  // of ```kind
};

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> out;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      if ((inside = !inside)) out.push_back({line.substr(3), ""});
    } else if (inside) {
      out.back().text += line + "\n";
    }
  }
  return out;
}

// The member functions of a block: each ends with "  }", or is one line.
std::vector<std::string> functions_of(const std::string& block) {
  std::vector<std::string> out(1);
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    out.back() += line + "\n";
    if (line == "  }" || (line.ends_with("}") && line.starts_with("  ") && line[2] != ' '))
      out.emplace_back();
  }
  out.pop_back();
  return out;
}

std::string name_of(const std::string& function) {
  std::smatch m;
  const std::string code = std::regex_replace(function, std::regex("//[^\n]*"), "");
  EXPECT_TRUE(std::regex_search(code, m, std::regex("(\\w+)\\("))) << function;
  return m[1];
}

// Replaces the class's function of that name, with the comments above it, or adds it before the private part.
std::string with_function(const std::string& source, const std::string& function) {
  const std::string name = name_of(function);
  std::smatch m;
  if (!std::regex_search(source, m, std::regex("\n  [^ \n/][^\n]*\\b" + name + "\\([^\n]*"))) {
    std::string out = source;
    return out.insert(out.find("\n private:"), "\n" + function);
  }
  std::size_t begin = static_cast<std::size_t>(m.position()) + 1;
  const std::size_t end = source.find("\n  }\n", begin) + 5;
  for (std::size_t above; (above = source.rfind('\n', begin - 2) + 1) < begin; begin = above)
    if (source.compare(above, 5, "  // ") != 0) break;
  return source.substr(0, begin) + function + source.substr(end);
}

class Tutorial : public Outside {};

TEST_F(Tutorial, EachStepRuns) {
  const std::string home = *dir_ / "home", folder = home + "/my_dpo";
  std::filesystem::create_directories(home);
  std::filesystem::create_directory_symlink(*dir_ / "prefix", home + "/redco");
  // A reader may have no make: nothing of redco needs it.
  std::filesystem::create_directories(home + "/no-make");
  for (const char* name : {"make", "gmake"}) {
    spill(home + "/no-make/" + name, "#!/bin/sh\nexit 127\n");
    std::filesystem::permissions(home + "/no-make/" + name, std::filesystem::perms::owner_all);
  }
  std::string source;
  int commands = 0, edits = 0;
  for (const Block& b : blocks_of(page_text(REDCO_SOURCE_DIR "/docs/tutorial.md"))) {
    if (b.kind == "sh") {
      ++commands;
      const std::string in = std::filesystem::exists(folder) ? folder : home;
      spill(*dir_ / "block.sh", "set -e\nexport HOME='" + home + "' PATH='" + home + "/redco/bin:" + home +
                                    "/no-make':$PATH CXX='" + cached("CMAKE_CXX_COMPILER") + "'\n" + b.text);
      const Ran r = shell(in, "timeout 300 bash '" + (*dir_ / "block.sh") + "'");
      ASSERT_EQ(r.code, 0) << b.text << "\n" << r.said;
    } else if (b.kind == "yaml") {
      const std::string first = b.text.substr(0, b.text.find('\n'));
      std::smatch m;
      ASSERT_TRUE(std::regex_match(first, m, std::regex("# (add to )?(\\w+\\.yaml)"))) << first;
      const std::string path = folder + "/" + m[2].str();
      spill(path, (m[1].matched ? slurp(path) : "") + b.text);
    } else if (b.kind != "python") {  // tests/python/examples_test.py runs those
      ASSERT_EQ(b.kind, "cpp");
      ++edits;
      if (source.empty())
        source = b.text;
      else
        for (const std::string& f : functions_of(b.text)) source = with_function(source, f);
      spill(folder + "/my_dpo.cpp", source);
    }
  }
  EXPECT_EQ(commands, 8);
  EXPECT_EQ(edits, 3);
  EXPECT_LE(std::count(source.begin(), source.end(), '\n'), 115);

  const auto of = [](const std::string& run) { return losses("home/my_dpo/runs/" + run); };
  const auto one = of("dpo");
  ASSERT_EQ(one.count({12, "loss"}), 1u);
  EXPECT_NEAR(one.at({1, "loss"}), std::log(2), 1e-6);
  EXPECT_LT(one.at({12, "loss"}), 0.9 * std::log(2));
  // Rounding of fp32 sums in another order, over 12 steps.
  for (const std::string run : {"builtin", "replicas", "shards", "accumulated"}) {
    const auto other = of(run);
    int compared = 0;
    for (const auto& [key, value] : one) {
      if (key.second != "loss") continue;
      ++compared;
      EXPECT_NEAR(other.at(key), value, 1e-6) << run << ", step " << key.first;
    }
    EXPECT_EQ(compared, 12);
  }
}

}  // namespace
}  // namespace redco::test
