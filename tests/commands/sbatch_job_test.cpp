// A job's batch script: its nodes, ranks and cores.
#include "commands/sbatch_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

std::string script(const Words& words, SbatchOptions o = {}) {
  o.program = "/opt/redco";
  if (o.files.empty()) o.files = {"runs/first.yaml"};
  Words all = {"parallel.threads_per_rank=3"};
  all.insert(all.end(), words.begin(), words.end());
  o.load = [&](const Words& more) {
    Words with = all;
    with.insert(with.end(), more.begin(), more.end());
    return job_of("", with);
  };
  return sbatch_script(o.load({}), o);
}

TEST(SbatchJob, RequestsTheHostsAndRanksOfTheJob) {
  EXPECT_THAT(script({}),
              AllOf(HasSubstr("#SBATCH --nodes=1\n"), HasSubstr("#SBATCH --ntasks=1\n"),
                    HasSubstr("#SBATCH --cpus-per-task=3\n"), HasSubstr("#SBATCH --job-name=redco-first\n")));
  EXPECT_THAT(script({"parallel.hosts=[a:2, b:4]"}),
              AllOf(HasSubstr("#SBATCH --nodes=2\n"), HasSubstr("#SBATCH --ntasks=6\n")));
  EXPECT_THAT(script({"parallel.hosts=[a:2, b:4]", "parallel.n_ranks=4"}), HasSubstr("#SBATCH --ntasks=4\n"));
  EXPECT_THAT(script({"parallel.n_model_shards=3"}), HasSubstr("#SBATCH --ntasks=3\n"));
  const test::TempDir dir;
  test::spill(dir / "hosts", "a slots=2\nb slots=2\nc\n");
  EXPECT_THAT(script({"parallel.hostfile=" + (dir / "hosts")}),
              AllOf(HasSubstr("#SBATCH --nodes=3\n"), HasSubstr("#SBATCH --ntasks=5\n")));
}

TEST(SbatchJob, ASweepIsAJobArray) {
  const test::TempDir dir;
  test::spill(dir / "sweep.yaml", "train.learning_rate: [1.0e-3, 3.0e-4]\ntrain.optimizer: [adamw, 'sgd']\n");
  SbatchOptions o;
  o.sweep = dir / "sweep.yaml";
  o.qos = "long";
  o.constraint = "zen4&ib";
  o.modules = {"openmpi/4.1"};
  o.requeue = false;
  const std::string s = script({"workdir=" + (dir / "runs")}, o);
  EXPECT_THAT(s, AllOf(HasSubstr("#SBATCH --array=0-3\n"), HasSubstr("#SBATCH --output=slurm-%A_%a.out\n"),
                       HasSubstr("#SBATCH --qos=long\n"), HasSubstr("#SBATCH --constraint=zen4&ib\n"),
                       HasSubstr("#SBATCH --no-requeue\n"), HasSubstr("module load openmpi/4.1 || exit 2\n"),
                       HasSubstr("/runs/sweep/task-\"$SLURM_ARRAY_TASK_ID\".txt")));
  EXPECT_EQ(test::slurp(dir / "runs/sweep/task-0.txt"),
            "train.learning_rate=1.0e-3\ntrain.optimizer=adamw\n");
  EXPECT_EQ(test::slurp(dir / "runs/sweep/task-3.txt"),
            "train.learning_rate=3.0e-4\ntrain.optimizer='sgd'\n");
  script({"workdir=" + (dir / "runs")}, o);  // the same sweep again
  test::spill(dir / "sweep.yaml", "train.seed: [1, 2]\n");
  EXPECT_THAT(usage_error([&] { script({"workdir=" + (dir / "runs")}, o); }),
              HasSubstr("holds another sweep"));
  for (const auto& [text, problem] :
       {std::pair("train.sed: [1]\n", "task 0 (train.sed=1): override 'train.sed=1': unknown key train.sed"),
        std::pair("train.learning_rate: [1.0e-3, abc]\n", "task 1 (train.learning_rate=abc): override"),
        std::pair("parallel.n_ranks: [1, 2]\n",
                  "task 1 (parallel.n_ranks=2): this task has 2 ranks x 3 cores"),
        std::pair("parallel.threads_per_rank: [2]\n",
                  "this task has 1 rank x 2 cores, but the job has 1 rank x 3"),
        std::pair("train.seed: 1\n", "train.seed needs a list"),
        std::pair("train.seed: []\n", "train.seed needs a list"),
        std::pair("workdir: [a]\n", "remove the key"), std::pair("", "expected keys")}) {
    test::spill(dir / "sweep.yaml", text);
    EXPECT_THAT(usage_error([&] { script({"workdir=" + (dir / "other")}, o); }), HasSubstr(problem));
  }
  test::spill(dir / "sweep.yaml", "train.seed: [1]\nmodel.n_head: [2]\n");
  EXPECT_THAT(usage_error([&] { script({"workdir=" + (dir / "%a")}, o); }), HasSubstr("Remove %a"));
  o.time_limit = "soon";
  EXPECT_THAT(usage_error([&] { script({"workdir=" + (dir / "other")}, o); }), HasSubstr("time limit"));
  EXPECT_FALSE(std::filesystem::exists(dir / "other"));  // nothing is written for a job that cannot run
  o.time_limit.reset();
  SbatchOptions predict = o;
  predict.command = "predict";
  test::spill(dir / "sweep.yaml", "predict.temperature: [0, 1]\n");
  EXPECT_THAT(usage_error([&] {
                script({"workdir=" + (dir / "other"), "predict.output=a.jsonl"}, predict);
              }),
              HasSubstr("task 1 (predict.temperature=1): several tasks would write predict.output=a.jsonl"));
  test::spill(dir / "sweep.yaml", "train.seed: [1]\nmodel.n_head: [2]\n");
  EXPECT_THAT(script({"workdir=" + (dir / "other")}, o), HasSubstr("#SBATCH --array=0-0\n"));
}

// Under mpirun the hosts of the job would be used in place of the nodes that SLURM gives.
TEST(SbatchJob, TheHostsOfTheScriptAreThoseOfSlurm) {
  SbatchOptions o;
  o.overrides = {"parallel.hosts=[a:2, b:2]", "train.seed=1"};
  EXPECT_THAT(script({"parallel.hosts=[a:2, b:2]"}, o),
              AllOf(HasSubstr("runs/first.yaml train.seed=1 'parallel.hosts=[]')"), Not(HasSubstr("a:2"))));
  EXPECT_THAT(script({}), Not(HasSubstr("parallel.hosts")));
}

TEST(SbatchJob, OptionsOverrideTheJob) {
  SbatchOptions o;
  o.nodes = 2;
  o.job_name = "mine";
  o.command = "predict";
  o.memory = "1.5GiB";
  o.files = {"a.yaml", "b.yaml"};
  o.overrides = {"predict.prompt=it's"};
  const std::string s = script({"parallel.n_ranks=4"}, o);
  EXPECT_THAT(s, AllOf(HasSubstr("#SBATCH --nodes=2\n"), HasSubstr("#SBATCH --job-name=mine\n"),
                       HasSubstr("#SBATCH --mem=1536M\n"), HasSubstr("predict a.yaml b.yaml ")));
  EXPECT_THAT(s, HasSubstr("'predict.prompt=it'\\''s'"));
  o.launcher = "mpirun";
  EXPECT_THAT(script({"parallel.n_ranks=4"}, o), Not(HasSubstr("srun --mpi=pmix")));
}

TEST(SbatchJob, ImpossibleRequestsAreErrors) {
  const auto refused = [](const Words& words, const SbatchOptions& o) {
    return usage_error([&] { script(words, o); });
  };
  SbatchOptions three;
  three.nodes = 3;
  EXPECT_THAT(refused({"parallel.n_ranks=2"}, three), HasSubstr("3 nodes for 2 ranks"));
  EXPECT_THAT(refused({"parallel.n_ranks=3", "parallel.n_model_shards=2"}, {}),
              HasSubstr("[mesh] parallel.n_ranks=3"));
  EXPECT_THAT(usage_error([] { sbatch_script(job_of(""), {}); }), HasSubstr("no job file"));
  SbatchOptions memory;
  memory.memory = "100";
  EXPECT_THAT(refused({}, memory), HasSubstr("--memory 100 is less than 1 MiB; give the unit"));
}

// The limit of a training follows from the predicted time of its steps.
TEST(SbatchJob, FillsTheTimeLimitFromThePlan) {
  const auto limit = [](const Words& more, SbatchOptions o = {}) {
    Words words = {"model={arch: gpt2, tokenizer: bytes, n_layer: 2, n_embd: 32, n_head: 4, n_positions: 32}",
                   "train.global_batch_size=8", "parallel.n_ranks=4"};
    words.insert(words.end(), more.begin(), more.end());
    return script(words, std::move(o));
  };
  const Words stated = {"plan.flops_per_s=1e9", "plan.memory_bytes_per_s=1e9"};
  Words with = stated;
  with.emplace_back("train.max_steps=1000");
  EXPECT_THAT(limit(with), HasSubstr("#SBATCH --time=0-00:1"));  // the margin, and some minutes
  with.back() = "train.max_steps=1000000";
  EXPECT_THAT(limit(with), AllOf(HasSubstr("#SBATCH --time="), Not(HasSubstr("#SBATCH --time=0-00:"))));
  EXPECT_THAT(limit(stated), Not(HasSubstr("#SBATCH --time")));  // without train.max_steps
  SbatchOptions given;
  given.time_limit = "12:00:00";
  EXPECT_THAT(limit(with, given), HasSubstr("#SBATCH --time=12:00:00\n"));
  SbatchOptions predict;
  predict.command = "predict";
  EXPECT_THAT(limit(with, predict), Not(HasSubstr("#SBATCH --time")));
}

}  // namespace
}  // namespace redco
