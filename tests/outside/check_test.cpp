// `redco check` on a user's pipeline (project/layout.cpp): each mistake is found, and its combinations and
// cause are named. Training reports none of them but "rank" on two model shards.
#include "outside_testing.h"

namespace redco::test {
namespace {

struct Checked {
  int code = -1;
  std::string err;
  Json report;
  // Verdicts in the order of the combinations: 1x1, 2x1, 1x2, each with 1 and 4 rows of a replica.
  std::string verdicts() const {
    std::string out;
    for (const Json& run : report["runs"])
      out += (out.empty() ? "" : " ") + run["verdict"].get<std::string>().substr(0, 1);
    return out;
  }
  std::string causes() const { return report["causes"].dump(); }
  // The names of the differing values of a combination.
  std::set<std::string> different(int run) const {
    std::set<std::string> out;
    for (const Json& d : report["runs"][run]["differences"]) out.insert(d["what"]);
    return out;
  }
};

class Check : public Outside {
 protected:
  static Checked check(const std::string& words) {
    const Ran r =
        shell(dir_->path(),
              "timeout 120 prefix/bin/redco check pipeline=./so/layout.so train.global_batch_size=12 "
              "parallel.threads_per_rank=1 train.seed=3 --json " +
                  words + " > check.json 2> check.err");
    const std::string json = slurp(*dir_ / "check.json");
    return {r.code, slurp(*dir_ / "check.err"), json.empty() ? Json() : Json::parse(json)};
  }
  static Checked mistake(const std::string& name) { return check("settings.mistake=" + name); }
};

TEST_F(Check, ACorrectPipelineIsEqualOnEveryMesh) {
  const Checked c = check("--meshes 1x1,2x1,1x2,2x2,3x1 --micro 1,4");
  EXPECT_EQ(c.code, 0) << c.err;
  EXPECT_EQ(c.verdicts(), "r e e e e e e e e e") << c.report.dump(1);
  EXPECT_EQ(c.report["runs"][1]["weights"]["loss"], 30);  // points
  EXPECT_EQ(c.causes(), "[]");
  EXPECT_EQ(c.report["note"], "");
}

TEST_F(Check, ARankDependentLossIsFoundOnReplicasAndReportedOnShards) {
  const Checked c = mistake("rank");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e d d f f") << c.err;
  EXPECT_EQ(c.different(2),
            (std::set<std::string>{"loss", "gradient norm", "fc1.weight", "fc1.bias", "fc2.weight"}));
  EXPECT_THAT(c.report["runs"][4]["message"].get<std::string>(),
              HasSubstr("loss() computed differently on ranks of one replica"));
  EXPECT_THAT(c.report["runs"][4]["message"].get<std::string>(), HasSubstr("./so/layout.so"));
  EXPECT_EQ(c.report["runs"][4]["exit_code"], 2);
  EXPECT_THAT(c.causes(), HasSubstr("the results depend on dp alone"));
}

TEST_F(Check, WrongWeightsAreNamed) {
  Checked c = mistake("weight");  // of the rows of all replicas
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e d d e e") << c.err;
  EXPECT_EQ(c.different(2).count("weight of loss"), 1u);
  EXPECT_THAT(c.causes(), HasSubstr("the weight of loss that collate() gives adds up to 24 instead of 12"));
  EXPECT_THAT(c.causes(), HasSubstr("the results depend on dp alone"));
  c = mistake("padding");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r d d d e d") << c.err;
  EXPECT_THAT(c.causes(), HasSubstr("the results depend on the rows of a micro-batch alone"));
}

TEST_F(Check, AMeanInsteadOfASumDependsOnTheMicroBatch) {
  const Checked c = mistake("mean");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts().substr(0, 3), "r d") << c.err;
  EXPECT_THAT(c.causes(), HasSubstr("adds up to 3 instead of 12"));
}

TEST_F(Check, RandomNumbersInTheOrderOfLocalRowsAreFound) {
  const Checked c = mistake("random");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r d e d e d") << c.err;
  EXPECT_THAT(c.causes(), HasSubstr("the results depend on the rows of a replica in a micro-batch alone"));
  EXPECT_THAT(c.causes(), HasSubstr("random numbers in the order of the rows"));
}

// A step that does not repeat would make every difference look like rounding.
TEST_F(Check, AStepThatDoesNotRepeatIsRefused) {
  for (const std::string function : {"collate", "loss"}) {
    const Checked c = mistake("'" + function + " draws'");
    EXPECT_EQ(c.code, 1);
    EXPECT_THAT(c.err, HasSubstr("[check] " + function + "() gave another"));
    EXPECT_THAT(c.err, HasSubstr("when the same step was repeated"));
    EXPECT_THAT(c.err, HasSubstr("./so/layout.so"));
  }
}

TEST_F(Check, ALocalSizeOfAModelShardIsFound) {
  const Checked c = mistake("shard");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e e e d d") << c.err << c.report["runs"].dump(1);
  EXPECT_THAT(c.causes(), HasSubstr("the results depend on mp alone"));
}

TEST_F(Check, AFieldOfTheFirstReplicaIsFound) {
  const Checked c = mistake("field");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e f f e e") << c.err;
  const std::string message = c.report["runs"][2]["message"];
  EXPECT_THAT(message, HasSubstr("collate() made another batch on rank 1 than on rank 0"));
  EXPECT_THAT(message, HasSubstr("extra"));
}

// All runs use the recorded examples, so their numbers are equal.
TEST_F(Check, ExamplesThatDependOnTheMeshAreFound) {
  Checked c = mistake("source");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e d d e e") << c.err;
  EXPECT_TRUE(c.different(2).empty());
  EXPECT_THAT(c.report["runs"][2]["examples"].get<std::string>(), HasSubstr("value 0 of its field 'x'"));
  EXPECT_THAT(c.causes(), HasSubstr("the examples depend on the mesh"));
  EXPECT_EQ(c.report["causes"].size(), 1u);
  c = mistake("forgets");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r d d d d d") << c.err;
  EXPECT_THAT(c.causes(), HasSubstr("examples that depend on the parameters belong into state()"));
}

TEST_F(Check, ARunThatFailsIsReportedAndTheOthersAreMade) {
  Checked c = mistake("number");
  EXPECT_EQ(c.code, 1);
  EXPECT_EQ(c.verdicts(), "r e f f f f") << c.err;
  EXPECT_THAT(c.report["runs"][2]["message"].get<std::string>(),
              HasSubstr("[check] the loss or gradient is not finite"));
  EXPECT_EQ(c.report["runs"][2]["exit_code"], 6);
  // A combination that can't be made is reported.
  c = check("--meshes 1x1,2x1,16x1 --micro 4,8");
  EXPECT_EQ(c.code, 0) << c.err;
  EXPECT_EQ(c.verdicts(), "r e e n n n") << c.err;
  // Without the reference there is nothing to compare with: the code is that of the runs.
  c = check("settings.mistake=rank --meshes 1x2");
  EXPECT_EQ(c.code, 2);
  EXPECT_EQ(c.verdicts(), "f f") << c.err;
}

// Own parameters, second derivatives, rollouts, sampled clients, noise of DP-SGD.
TEST_F(Check, TheExamplesOfTheDocumentationAreEqual) {
  const std::string docs = std::string(REDCO_SOURCE_DIR) + "/docs/examples/";
  for (const std::string job : {"job.yaml pipeline=./so/maml.so train.global_batch_size=8",
                                "job.yaml pipeline=./so/actor_critic.so train.global_batch_size=8",
                                "'%fedavg/job.yaml' pipeline=./so/fedavg/fedavg.so settings.local_epochs=1",
                                "'%dp_sgd/job.yaml' pipeline=./so/dp_sgd/dp_sgd.so"}) {
    std::string words = job;
    if (const std::size_t at = words.find('%'); at != std::string::npos) words.replace(at, 1, docs);
    const Ran r =
        shell(dir_->path(), "timeout 300 prefix/bin/redco check " + words +
                                " workdir=~ parallel.threads_per_rank=1 --meshes 1x1,2x1,1x2 --micro 2,4");
    EXPECT_EQ(r.code, 0) << r.said;
    EXPECT_THAT(r.said, HasSubstr("passed: 5 of 5 combinations equal the reference")) << job;
    EXPECT_EQ(r.said.find("all gradients are 0"), std::string::npos) << job;
  }
}

// As in train: the function, what was found and what was expected, and the job's line.
TEST_F(Check, MistakesOnOneRankEndTheCheckWithTheirMessage) {
  const Checked c = mistake("name");
  EXPECT_EQ(c.code, 2);
  EXPECT_TRUE(c.report.is_null());
  EXPECT_THAT(
      c.err, HasSubstr("error: [pipeline] loss() failed: the batch has no field 'hear'; its fields are here, "
                       "noise, x (layout.cpp:71). The pipeline is ./so/layout.so (override "
                       "'pipeline=./so/layout.so')"));
  EXPECT_EQ(c.err.find("error:"), c.err.rfind("error:")) << c.err;
}

}  // namespace
}  // namespace redco::test
