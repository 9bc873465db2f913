// The documentation against the sources: exit codes, links, the commands' table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "base/error.h"

namespace redco {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::stringstream s;
  s << std::ifstream(path).rdbuf();
  EXPECT_FALSE(s.str().empty()) << path;
  return s.str();
}

// What the groups 1 and 2 of every match hold.
std::map<std::string, std::string> pairs(const std::string& text, const char* pattern) {
  std::map<std::string, std::string> out;
  const std::regex re(pattern);
  for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m) out[(*m)[1]] = (*m)[2];
  return out;
}

TEST(Docs, ExitCodesAreThoseOfTheEnum) {
  std::string header = text_of(REDCO_SOURCE_DIR "/src/base/error.h");
  header = header.substr(header.find("enum class ExitCode"));
  header.resize(header.find("};"));
  const auto declared = pairs(header, R"re((\w+) = (\d+),)re");
  std::map<std::string, std::string> listed;
  for (const auto& [code, name] :
       pairs(text_of(REDCO_SOURCE_DIR "/docs/exit_codes.md"), R"re(\| (\d+) \| `(\w+)` \|)re"))
    listed[name] = code;
  EXPECT_EQ(declared.at("check_failed"), std::to_string(static_cast<int>(ExitCode::check_failed)));
  EXPECT_EQ(listed, declared);
}

TEST(Docs, LinksLeadSomewhere) {
  int links = 0;
  std::vector<fs::path> pages = {REDCO_SOURCE_DIR "/README.md"};
  for (const auto& e : fs::directory_iterator(REDCO_SOURCE_DIR "/docs"))
    if (e.path().extension() == ".md") pages.push_back(e.path());
  const std::regex re(R"re(\]\(([^)#:]+)(#[^)]*)?\))re");
  for (const fs::path& page : pages) {
    const std::string text = std::regex_replace(text_of(page), std::regex("```[^`]*```"), "");
    for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m, ++links)
      EXPECT_TRUE(fs::exists(page.parent_path() / (*m)[1].str())) << page << " links to " << (*m)[1];
  }
  EXPECT_GT(links, 8);
}

// What add_an_op.md shows is the op as it stands, but for the comments at the right.
TEST(Docs, TheOpShownIsTheOp) {
  auto bare = [](const std::string& text) {
    return std::regex_replace(std::regex_replace(text, std::regex("//[^\n]*"), ""), std::regex("\\s+"), " ");
  };
  const std::string page = text_of(REDCO_SOURCE_DIR "/docs/add_an_op.md");
  const size_t begin = page.find("Tensor softmax("), end = page.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  EXPECT_THAT(bare(text_of(REDCO_SOURCE_DIR "/src/ops/softmax.cpp")),
              testing::HasSubstr(bare(page.substr(begin, end - begin))));
}

}  // namespace
}  // namespace redco
