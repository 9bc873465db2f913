// The documentation against the sources: exit codes, links and anchors, line lengths, the op that is shown,
// the messages of docs/troubleshooting.md. tests/cli/docs_test.cpp checks and runs commands.
#include "support/docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/error.h"

namespace redco {
namespace {

namespace fs = std::filesystem;
using test::documentation;
using test::page_text;
using test::without_fences;

// The first two groups of every match.
std::map<std::string, std::string> pairs(const std::string& text, const char* pattern) {
  std::map<std::string, std::string> out;
  const std::regex re(pattern);
  for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m) out[(*m)[1]] = (*m)[2];
  return out;
}

TEST(Docs, ExitCodesAreThoseOfTheEnum) {
  std::string header = page_text(REDCO_SOURCE_DIR "/src/base/error.h");
  header = header.substr(header.find("enum class ExitCode"));
  header.resize(header.find("};"));
  const auto declared = pairs(header, R"re((\w+) = (\d+),)re");
  std::map<std::string, std::string> listed;
  for (const auto& [code, name] :
       pairs(page_text(REDCO_SOURCE_DIR "/docs/exit_codes.md"), R"re(\| (\d+) \| `(\w+)` \|)re"))
    listed[name] = code;
  EXPECT_EQ(declared.at("check_failed"), std::to_string(static_cast<int>(ExitCode::check_failed)));
  EXPECT_EQ(listed, declared);
}

// The anchors that GitHub gives the headings of a page: "## A `b` c!" is #a-b-c.
std::set<std::string> anchors(const fs::path& page) {
  std::set<std::string> out;
  std::istringstream lines(without_fences(page_text(page)));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string slug;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        slug += '-';
    }
    out.insert(slug);
  }
  return out;
}

TEST(Docs, LinksAndAnchorsExist) {
  int links = 0, with_anchor = 0;
  // [text](target), and [label]: target at the beginning of a line
  const std::regex re(R"re((?:\]\(|(?:^|\n)\[[^\]\n]+\]: )([^)#:\s]*)(?:#([^)\s]*))?(?:\)|(?=\n)))re");
  for (const fs::path& page : documentation()) {
    const std::string text = without_fences(page_text(page));
    for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m, ++links) {
      const std::string file = (*m)[1], anchor = (*m)[2];
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      EXPECT_TRUE(fs::exists(target)) << page << " links to " << file;
      if (anchor.empty()) continue;
      ++with_anchor;
      EXPECT_EQ(anchors(target).count(anchor), 1u) << page << " links to " << file << "#" << anchor;
    }
  }
  EXPECT_GT(links, 100);
  EXPECT_GT(with_anchor, 8);
}

// Prose has at most 100 characters, tables and code at most 120. Generated pages are exempt.
TEST(Docs, LinesAreShort) {
  for (const fs::path& page : documentation()) {
    const std::string name = page.filename().string();
    if (name == "config.md" || name == "reliability.md") continue;
    std::istringstream lines(page_text(page));
    bool code = false;
    int n = 0;
    for (std::string line; std::getline(lines, line);) {
      ++n;
      if (line.starts_with("```")) code = !code;
      std::size_t length = 0;
      for (const char c : line) length += (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // of UTF-8
      const bool wide = code || line.starts_with("|") || line.starts_with("    ") || line.starts_with("![");
      EXPECT_LE(length, wide ? 120u : 100u) << page << ":" << n << ": " << line;
    }
  }
}

// The op in add_an_op.md is the op in the sources, except for comments.
TEST(Docs, TheOpShownIsTheOp) {
  auto bare = [](const std::string& text) {
    return std::regex_replace(std::regex_replace(text, std::regex("//[^\n]*"), ""), std::regex("\\s+"), " ");
  };
  const std::string page = page_text(REDCO_SOURCE_DIR "/docs/add_an_op.md");
  const size_t begin = page.find("Tensor softmax("), end = page.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  EXPECT_THAT(bare(page_text(REDCO_SOURCE_DIR "/src/ops/softmax.cpp")),
              testing::HasSubstr(bare(page.substr(begin, end - begin))));
}

// All string literals of the sources, with adjacent ones joined.
std::string messages_of_the_sources() {
  std::string out;
  for (const char* folder : {"/src", "/apps"})
    for (const auto& e : fs::recursive_directory_iterator(std::string(REDCO_SOURCE_DIR) + folder))
      if (e.path().extension() == ".cpp" || e.path().extension() == ".h") out += page_text(e.path()) + "\n";
  std::string joined;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t next = out[i] == '"' ? out.find_first_not_of(" \n", i + 1) : std::string::npos;
    if (next != std::string::npos && next > i + 1 && out[next] == '"' && out[i - 1] != '\\')
      i = next;
    else if (out[i] != '\\' || out[i + 1] != '"')
      joined += out[i];
  }
  return joined;
}

// An entry of the page begins with messages in backquotes; `...` is what a message fills in.
TEST(Docs, MessagesOfTroubleshootingAreInTheSources) {
  const std::string sources = messages_of_the_sources();
  std::string page = page_text(REDCO_SOURCE_DIR "/docs/troubleshooting.md");
  page = page.substr(page.find("\n## Exit code 2"));
  page = std::regex_replace(page.substr(0, page.find("\n## No error")), std::regex("\n  "), " ");
  int n = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch entry;
    if (!std::regex_search(line, entry, std::regex("^- ((?:`[^`]+`(?:, )?)+)"))) continue;
    const std::string quoted = entry[1];
    const std::regex message("`([^`]+)`");
    for (std::sregex_iterator m(quoted.begin(), quoted.end(), message), end; m != end; ++m) {
      std::string rest = (*m)[1];
      for (std::size_t dots; !rest.empty(); rest = dots == std::string::npos ? "" : rest.substr(dots + 3)) {
        dots = rest.find("...");
        std::string piece = rest.substr(0, dots);
        while (!piece.empty() && (piece.front() == ' ' || piece.front() == '\'')) piece.erase(0, 1);
        while (!piece.empty() && (piece.back() == ' ' || piece.back() == '\'')) piece.pop_back();
        if (piece.size() < 4) continue;
        ++n;
        EXPECT_NE(sources.find(piece), std::string::npos) << (*m)[1] << ": no source has '" << piece << "'";
      }
    }
  }
  EXPECT_GT(n, 50);
}

// The functions and classes that a header declares in namespace redco.
std::set<std::string> declared_in(const std::string& header) {
  const std::string text =
      std::regex_replace(page_text(REDCO_SOURCE_DIR "/src/" + header), std::regex("//[^\n]*"), "");
  std::set<std::string> out;
  const std::regex type("^(?:enum )?(?:class|struct) (\\w+)[^;]*\\{");
  const std::regex function("^(?:inline )?[A-Za-z_][A-Za-z0-9_:<>, &*]*[ &*](operator[^ (]+|[a-z]\\w*)\\(");
  std::istringstream lines(text);
  std::smatch m;
  for (std::string line; std::getline(lines, line);) {
    const bool attribute = line.starts_with("[[noreturn]] ");
    const std::string code = attribute ? line.substr(13) : line;
    if (std::regex_search(code, m, type) ||
        (!code.starts_with("return") && std::regex_search(code, m, function)))
      out.insert(m[1]);
  }
  return out;
}

// docs/api.md names what redco.h declares, and nothing else.
TEST(Docs, TheApiPageNamesAllOpsAndClasses) {
  const std::string all = page_text(REDCO_SOURCE_DIR "/src/redco.h");
  std::set<std::string> headers = {"pipeline/example.h"}, declared;
  const std::regex include("#include \"([^\"]+)\"");
  for (std::sregex_iterator h(all.begin(), all.end(), include), end; h != end; ++h)
    if ((*h)[1] != "redco.h") headers.insert((*h)[1]);
  for (const std::string& h : headers) {
    const std::set<std::string> names = declared_in(h);
    EXPECT_FALSE(names.empty()) << h;
    declared.insert(names.begin(), names.end());
  }
  EXPECT_GT(declared.size(), 200u);
  for (const char* known :
       {"linear", "operator*", "Tensor", "Pipeline", "where", "log_sum_exp", "Unary", "read_jsonl"})
    EXPECT_EQ(declared.count(known), known == std::string("Unary") ? 0u : 1u) << known;

  const std::string page = page_text(REDCO_SOURCE_DIR "/docs/api.md");
  std::set<std::string> named;
  const std::regex quoted("`([^`\n]+)`"), word("^(operator[^ (]+|\\w+)(?:<T>)?(\\(.*)?$");
  for (std::sregex_iterator q(page.begin(), page.end(), quoted), end; q != end; ++q) {
    const std::string text = (*q)[1];
    std::smatch m;
    if (std::regex_match(text, m, word)) named.insert(m[1]);
  }
  for (const std::string& name : declared)
    EXPECT_EQ(named.count(name), 1u) << "docs/api.md does not name " << name;
  // The first cells of the tables: the names in the page.
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find(" | "));
    for (std::sregex_iterator q(cell.begin(), cell.end(), quoted), end; q != end; ++q) {
      const std::string text = (*q)[1];
      std::smatch m;
      ASSERT_TRUE(std::regex_match(text, m, word)) << text;
      EXPECT_EQ(declared.count(m[1]), 1u) << "docs/api.md: no header declares " << m[1];
    }
  }
}

}  // namespace
}  // namespace redco
