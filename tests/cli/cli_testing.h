// Runs the program: arguments, output, exit code.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.h"

namespace redco::test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  int code = -1;  // 128 + signal if a signal ended it
  std::string out, err;
};

// The number of lines of `text` with `part`.
inline int lines_with(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    n += text.substr(at, end - at).find(part) != std::string::npos;
    at = end + 1;
  }
  return n;
}

// A test with its own folder in memory, in which redco runs.
class Cli : public testing::Test {
 protected:
  using Words = std::vector<std::string>;
  using Env = std::map<std::string, std::string>;

  // Runs redco; `input` is its standard input. After a minute it is killed with all its ranks.
  pid_t start(const Words& words, const Env& env = {}, const std::string& input = "") {
    return start_program(REDCO_BINARY, words, env, input);
  }
  pid_t start_program(const char* program, const Words& words, const Env& env, const std::string& input) {
    spill(dir_ / "stdin", input);
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      if (chdir(dir_.path().c_str()) != 0) _exit(125);
      dup2(open("stdin", O_RDONLY), 0);
      dup2(open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      dup2(open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      // What `redco env --measure` has stored for the user changes plans.
      setenv("XDG_CACHE_HOME", (dir_ / "user-cache").c_str(), 1);
      for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
      for (const char* name : {"OMP_NUM_THREADS", "REDCO_LOG"})
        if (!env.count(name)) unsetenv(name);
      signal(SIGINT, SIG_DFL);
      alarm(60);
      std::vector<char*> argv{const_cast<char*>(program)};
      for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(126);
    }
    return pid;
  }
  Ran wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(dir_ / "stdout"),
            slurp(dir_ / "stderr")};
  }
  Ran run(const Words& words, const Env& env = {}, const std::string& input = "") {
    return wait(start(words, env, input));
  }
  // Runs a command line as a user types it.
  Ran run_shell(const std::string& command, const Env& env = {}) {
    return wait(start_program("/bin/sh", {"-c", command}, env, ""));
  }
  // The same as run(), for a run that must succeed.
  Ran good(const Words& words, const Env& env = {}, const std::string& input = "") {
    Ran r = run(words, env, input);
    EXPECT_EQ(r.code, 0) << r.err;
    return r;
  }
  // The run must fail with this exit code and one error that has all these words.
  void refused(const Words& words, int code, const std::vector<std::string>& parts,
               const std::string& input = "") {
    const Ran r = run(words, {}, input);
    std::string all;
    for (const auto& w : words) all += " " + w;
    EXPECT_EQ(r.code, code) << all << "\n" << r.err;
    EXPECT_EQ(lines_with(r.err, "error: "), 1) << all << "\n" << r.err;
    for (const auto& p : parts) EXPECT_THAT(r.err, HasSubstr(p)) << all;
  }
  void write(const std::string& name, const std::string& text) { spill(dir_ / name, text); }
  std::string read(const std::string& name) { return slurp(dir_ / name); }
  bool has(const std::string& name) { return std::filesystem::exists(dir_ / name); }
  std::string path(const std::string& name) { return dir_ / name; }
  // Waits at most half a minute for a condition.
  bool until(const std::function<bool()>& holds) {
    for (int i = 0; i < 30000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  TempDir dir_{TempDir::in_memory};
};

// Deterministic text with some structure.
inline std::string some_text(int lines, unsigned seed = 1) {
  const char* words[] = {"the", "quick", "brown", "fox", "jumps", "over",
                         "a",   "lazy",  "dog",   "and", "runs",  "far"};
  std::string s;
  for (int i = 0; i < lines; ++i) {
    for (int k = 0; k < 8; ++k) {
      seed = seed * 1103515245u + 12345u;
      s += words[(seed >> 16) % 12];
      s += k == 7 ? "\n" : " ";
    }
  }
  return s;
}

// A byte-level GPT-2 with two layers, eight rows per step.
inline const char* kTinyJob =
    "model: {arch: gpt2, tokenizer: bytes, n_layer: 2, n_embd: 32, n_head: 4, n_positions: 32}\n"
    "data: {train: text.txt}\n"
    "train: {global_batch_size: 8, max_steps: 20, learning_rate: 1.0e-3, logging_steps: 5}\n"
    "workdir: run\n";

}  // namespace redco::test
