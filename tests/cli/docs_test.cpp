// The commands of the documentation: they name existing commands, options, keys and shipped jobs. The blocks
// that a page marks by `<!-- runs -->` are run.
#include "support/docs.h"

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "cli/cli_testing.h"
#include "job/job_config.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;

class DocsCommands : public Cli {};

struct PageCommand {
  std::string where;               // page:line
  std::string line;                // as a shell takes it
  std::vector<std::string> words;  // of the first program, without quotes
  bool runs = false;
};

// Words as a shell splits them, up to a comment, a pipe or a redirection.
std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        words.back() += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else if ((c == '#' && words.back().empty()) || c == '|' || c == '>' || c == '<' || c == '&' ||
               c == ';') {
      break;
    } else if (c != '\\') {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// The lines of code blocks that begin with redco, also behind the prompt "$ "; lines that end with \ are
// joined.
std::vector<PageCommand> commands_of(const fs::path& page) {
  std::vector<PageCommand> out;
  std::istringstream lines(page_text(page));
  bool fence = false, runs = false, marked = false;
  int n = 0;
  for (std::string line; std::getline(lines, line);) {
    ++n;
    const int first = n;
    if (line.starts_with("```")) fence = !fence;
    if (line == "<!-- runs -->") {
      marked = true;
      continue;
    }
    const bool code = fence || line.starts_with("    ");
    if (marked && code) runs = true, marked = false;
    if (!code && !line.empty()) runs = false;
    if (!code) continue;
    for (std::string more; line.ends_with("\\") && std::getline(lines, more); ++n)
      line = line.substr(0, line.size() - 1) + more.substr(more.find_first_not_of(' '));
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with("$ ")) line.erase(0, 2);
    if (const std::size_t echo = line.find("| redco ");
        echo != std::string::npos && line.starts_with("echo "))
      line.erase(0, echo + 2);
    if (!line.starts_with("redco ")) continue;
    out.push_back({fmt::format("{}:{}", page.filename().string(), first), line, shell_words(line), runs});
  }
  return out;
}

std::vector<PageCommand> all_commands() {
  std::vector<PageCommand> out;
  for (const fs::path& page : documentation())
    for (PageCommand& c : commands_of(page)) out.push_back(std::move(c));
  return out;
}

// Keys of models, pipelines and environments that redco does not declare.
bool is_free(const std::string& key) {
  return std::regex_search(
      key,
      std::regex(
          R"(^(model\.(n_|num_|vocab_size|image_size|input_size|hidden_|label)|settings\.|parallel\.environment\.))"));
}

TEST_F(DocsCommands, NameCommandsOptionsKeysAndJobsThatExist) {
  std::map<std::string, std::string> help;  // of each command
  int n = 0, keys = 0, options = 0;
  for (const PageCommand& c : all_commands()) {
    SCOPED_TRACE(c.where + ": " + c.line);
    ASSERT_GE(c.words.size(), 2u);
    if (c.words[1].find("COMMAND") == 0 || c.words[1].starts_with("-")) continue;
    ++n;
    const bool nested = c.words[1] == "tokenizer" || c.words[1] == "new";
    const std::string command = c.words[1] + (nested && c.words.size() > 2 ? " " + c.words[2] : "");
    if (!help.count(command)) {
      Words words = {c.words[1]};
      if (nested && c.words.size() > 2) words.push_back(c.words[2]);
      words.push_back("--help");
      const Ran r = run(words);
      EXPECT_EQ(r.code, 0) << r.err;
      help[command] = r.out;
    }
    for (std::size_t i = 2; i < c.words.size(); ++i) {
      const std::string& w = c.words[i];
      const std::size_t equals = w.find('=');
      if (w.starts_with("--")) {
        ++options;
        EXPECT_TRUE(
            std::regex_search(help[command], std::regex("(^|[ ,\n\\[])" + w.substr(0, equals) + "\\b")))
            << w;
      } else if (w.starts_with("configs/") && w.ends_with(".yaml")) {
        EXPECT_TRUE(fs::exists(fs::path(REDCO_SOURCE_DIR) / w)) << w;
      } else if (c.words[1] == "cp" && i == 2) {
        EXPECT_TRUE(w == "NAME" || fs::exists(fs::path(REDCO_SOURCE_DIR) / "configs" / (w + ".yaml"))) << w;
      } else if (equals != std::string::npos &&
                 std::regex_match(w.substr(0, equals), std::regex("[a-z_.]+")) &&
                 w.substr(0, equals) != "key" && !is_free(w)) {
        ++keys;
        EXPECT_NO_THROW(job_help(w.substr(0, equals))) << w;
      }
    }
  }
  EXPECT_GT(n, 50);
  EXPECT_GT(keys, 25);
  EXPECT_GT(options, 10);
}

// Keys in backquotes that begin with a section's name: `train.seed`, `predict.num_beams: 4`.
TEST_F(DocsCommands, KeysInTheTextExist) {
  const std::regex key(
      "`((?:data|parallel|train|eval|checkpoint|predict|maml|rl|plan|fault)\\.[a-z_.]+[a-z])[`:=]");
  int n = 0;
  for (const fs::path& page : documentation()) {
    if (page.filename() == "config.md") continue;
    const std::string text = page_text(page);
    for (std::sregex_iterator m(text.begin(), text.end(), key), end; m != end; ++m) {
      const std::string name = (*m)[1];
      if (name.ends_with(".yaml") || name.ends_with(".json") || name.ends_with(".jsonl") ||
          name.ends_with(".h") || name.ends_with(".txt"))
        continue;
      ++n;
      EXPECT_NO_THROW(job_help(name)) << page << ": " << name;
    }
  }
  EXPECT_GT(n, 100);
}

// In a folder with the shipped jobs and a job.yaml that needs no files.
TEST_F(DocsCommands, MarkedBlocksRun) {
  fs::create_directory_symlink(REDCO_SOURCE_DIR "/configs", path("configs"));
  fs::copy(REDCO_SOURCE_DIR "/configs/regression/vectors.yaml", path("job.yaml"));
  fs::create_directories(path("bin"));
  fs::create_symlink(REDCO_BINARY, path("bin/redco"));
  int n = 0;
  for (const PageCommand& c : all_commands()) {
    if (!c.runs) continue;
    ++n;
    const std::string command = "cd '" + dir_.path() + "' && PATH=\"$PWD/bin:$PATH\" && { " +
                                c.line.substr(0, c.line.find("  #")) + "; } > said 2>&1 < /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << c.where << ": " << c.line << "\n" << read("said");
  }
  EXPECT_GE(n, 8);
}

}  // namespace
}  // namespace redco::test
