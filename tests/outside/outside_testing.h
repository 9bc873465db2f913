// The library as users use it: installed, found by find_package, with pipelines in their shared objects.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "support/temp_dir.h"

namespace redco::test {

using Json = nlohmann::json;
using ::testing::HasSubstr;

struct Ran {
  int code = -1;
  std::string said;
};

// Runs `command` in `folder`; returns standard output and error together.
inline Ran shell(const std::string& folder, const std::string& command) {
  const std::string log = folder + "/said";
  const int status = std::system(("cd '" + folder + "' && { " + command + "; } > said 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(log)};
}

// The build tree: REDCO_BINARY is bin/redco in it.
inline std::string build_dir() {
  return std::filesystem::path(REDCO_BINARY).parent_path().parent_path().string();
}

// A variable of the build tree's CMakeCache.txt.
inline std::string cached(const std::string& name) {
  const std::string cache = slurp(build_dir() + "/CMakeCache.txt");
  const std::size_t at = cache.find("\n" + name + ":");
  if (at == std::string::npos) return "";
  const std::size_t equals = cache.find('=', at);
  return cache.substr(equals + 1, cache.find('\n', equals) - equals - 1);
}

class Outside : public ::testing::Test {
 protected:
  // Installs the build tree, and builds against the prefix alone, once for all tests: the project, the
  // documentation's examples, and the skeletons that `redco new` writes.
  static void SetUpTestSuite() {
    if (dir_) return;
    dir_ = std::make_unique<TempDir>();
    const std::string project = std::string(REDCO_SOURCE_DIR) + "/tests/outside/project";
    for (const std::string& command :
         {"cmake --install '" + build_dir() + "' --prefix '" + dir_->path() + "/prefix'",
          std::string("prefix/bin/redco new pipeline data --cpp"),
          std::string("prefix/bin/redco new model my_decoder"),
          "cmake -S '" + project + "' -B so -G '" + cached("CMAKE_GENERATOR") + "' -DCMAKE_CXX_COMPILER='" +
              cached("CMAKE_CXX_COMPILER") + "' -DCMAKE_PREFIX_PATH='" + dir_->path() + "/prefix' -DDOCS='" +
              REDCO_SOURCE_DIR + "/docs' -DSKELETONS='" + dir_->path() + "'",
          std::string("cmake --build so -j 2")}) {
      const Ran r = shell(dir_->path(), command);
      ASSERT_EQ(r.code, 0) << command << "\n" << r.said;
    }
    spill(*dir_ / "job.yaml",
          "parallel: {threads_per_rank: 1}\n"
          "train: {max_steps: 10, learning_rate: 3.0e-3, schedule: constant, warmup_ratio: 0, seed: 3,\n"
          "        clip_grad_norm: 1.0, logging_steps: 1}\n");
  }
  void SetUp() override { ASSERT_TRUE(std::filesystem::exists(*dir_ / "so/maml.so")); }

  static Ran train(const std::string& pipeline, const std::string& workdir, const std::string& words) {
    return shell(dir_->path(), "timeout 60 prefix/bin/redco train job.yaml pipeline=" + pipeline +
                                   " workdir=" + workdir + " " + words);
  }
  // One run of a pipeline, which must succeed. 20 tasks with batch size 4 are 5 steps per epoch; 32
  // transitions with batch size 8 are 4.
  static void good(const std::string& name, const std::string& workdir, const std::string& words) {
    const std::string rows = name == "maml" ? "4" : "8";
    const Ran r = train("./so/" + name + ".so", workdir, "train.global_batch_size=" + rows + " " + words);
    ASSERT_EQ(r.code, 0) << name << " " << words << "\n" << r.said;
  }
  static std::string mesh(int dp, int mp) {
    return "parallel.n_ranks=" + std::to_string(dp * mp) + " parallel.n_model_shards=" + std::to_string(mp);
  }

  // (step, name) -> losses, other terms and gradient norms of metrics.jsonl.
  static std::map<std::pair<int, std::string>, double> losses(const std::string& workdir) {
    std::istringstream lines(slurp(*dir_ / (workdir + "/metrics.jsonl")));
    static const std::set<std::string> kTerms = {"actor",         "critic", "distance",
                                                 "eval_distance", "score",  "value"};
    std::map<std::pair<int, std::string>, double> out;
    for (std::string line; std::getline(lines, line);) {
      const Json j = Json::parse(line);
      for (const auto& [name, value] : j.items())
        if (name.find("loss") != std::string::npos || kTerms.contains(name) || name == "grad_norm")
          out[{j["step"], name}] = value;
    }
    return out;
  }

  static inline std::unique_ptr<TempDir> dir_;  // shared by all suites of this binary
};

}  // namespace redco::test
