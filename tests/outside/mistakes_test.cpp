// Mistakes of users' models, pipelines and optimizers (tests/outside/project/mistakes.cpp): an error that
// names the function, the shared object and what is wrong, in place of wrong numbers or a bug of redco.
#include "outside_testing.h"

namespace redco::test {
namespace {

class UsersMistakes : public Outside {
 protected:
  static Ran command(const std::string& words) {
    return shell(dir_->path(), "timeout 120 prefix/bin/redco " + words);
  }
  // The command ends with code 2 and one error, which has this text.
  static void expect_error(const std::string& words, const std::string& text) {
    const Ran r = command(words);
    EXPECT_EQ(r.code, 2) << words << "\n" << r.said;
    EXPECT_THAT(r.said, HasSubstr(text)) << words;
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
    EXPECT_EQ(r.said.find("internal check"), std::string::npos) << r.said;
  }
  static std::string regression(const std::string& workdir, const std::string& words) {
    return "train plugins=./so/mistakes.so pipeline=regression model.arch=wrong_net model.input_size=3 "
           "data.train=builtin:function data.eval=builtin:function train.global_batch_size=50 "
           "train.max_steps=2 parallel.threads_per_rank=1 workdir=" +
           workdir + " " + words;
  }
};

TEST_F(UsersMistakes, FunctionsOfAModelAreNamed) {
  for (const std::string words : {"", "train.recompute=block"}) {
    const Ran good = command(regression("net", words));
    ASSERT_EQ(good.code, 0) << good.said;
  }
  expect_error(regression("refused", "model.mistake=name"),
               "[model] encode_outputs() of the family wrong_net (./so/mistakes.so) failed: ");
  expect_error(
      "train plugins=./so/mistakes.so pipeline=seq2seq model.arch=halves model.tokenizer=bytes "
      "data.train=builtin:copy data.eval=builtin:copy train.global_batch_size=8 train.max_steps=1 "
      "parallel.threads_per_rank=1 workdir=refused",
      "[model] encode_memory() of the family halves (./so/mistakes.so) failed: ");
}

// The backward pass runs a block again, outside of all functions of the model.
TEST_F(UsersMistakes, ABlockThatFailsWhenItIsRepeatedIsTheModels) {
  const Ran good = command(regression("repeat", "model.mistake=repeat"));
  ASSERT_EQ(good.code, 0) << good.said;
  expect_error(regression("refused", "model.mistake=repeat train.recompute=block"),
               "[model] encode_outputs() of the family wrong_net (./so/mistakes.so) failed: ");
}

// The first micro-batch of two is embedded twice. With one there is nothing to compare.
TEST_F(UsersMistakes, EmbeddingsThatChangeAreDetected) {
  const std::string job =
      "train job.yaml pipeline=./so/mistakes.so plugins=[] train.max_steps=2 train.global_batch_size=12 ";
  for (const std::string mistake : {"none", "counter", "generator"}) {
    const Ran one = command(job + "workdir=embeds settings.mistake=" + mistake);
    ASSERT_EQ(one.code, 0) << one.said;
  }
  for (const std::string& where : {mesh(1, 1), mesh(2, 1), mesh(1, 2)}) {
    const std::string words = job + "train.per_device_batch_size=3 " + where + " ";
    const Ran good = command(words + "workdir=embeds settings.mistake=none");
    ASSERT_EQ(good.code, 0) << good.said;
    for (const std::string mistake : {"counter", "generator"}) {
      const Ran r = command(words + "workdir=refused settings.mistake=" + mistake);
      EXPECT_EQ(r.code, 2) << where << r.said;
      EXPECT_THAT(r.said, HasSubstr("[pipeline] embed() failed: the embedding 'y' of the same examples has "
                                    "other values when it is computed again: row "));
      EXPECT_THAT(r.said, HasSubstr("The pipeline is ./so/mistakes.so"));
    }
  }
}

TEST_F(UsersMistakes, ALabelBeyondTheClassesIsDetected) {
  for (const std::string& where : {mesh(1, 1), mesh(2, 1), mesh(1, 2)})
    expect_error(
        "train job.yaml pipeline=./so/mistakes.so plugins=[] train.max_steps=2 train.global_batch_size=12 "
        "workdir=refused settings.mistake=label " +
            where,
        "[pipeline] step 1: cross_entropy() got the label 3; expected 0 to 2, because the logits have 3 "
        "classes, or -100");
}

TEST_F(UsersMistakes, ALossWithoutGradientIsDetected) {
  const std::string words =
      "job.yaml pipeline=./so/mistakes.so plugins=[] train.max_steps=2 train.global_batch_size=12 "
      "workdir=refused settings.mistake=";
  for (const std::string command : {"train ", "validate "})
    expect_error(command + words + "detached",
                 "[pipeline] loss() failed: no term depends on a trained parameter, so all gradients would "
                 "be 0");
  expect_error("train " + words + "undefined",
               "[pipeline] embed() failed: a function got an undefined tensor");
}

TEST_F(UsersMistakes, DataThatAreNullAreDetected) {
  const std::map<std::string, std::string> mistakes = {
      {"no source", "[pipeline] source() returned null; expected a data set"},
      {"no data", "[data] data.train is missing. Set it to the training files"},
      {"no evaluation",
       "[pipeline] evaluation() returned null as the data of the set 'held_out'; expected a data "
       "set"}};
  for (const auto& [mistake, text] : mistakes)
    expect_error(
        "train job.yaml pipeline=./so/mistakes.so plugins=[] train.max_steps=2 workdir=refused "
        "train.global_batch_size=12 settings.mistake='" +
            mistake + "'",
        text);
}

TEST_F(UsersMistakes, ARuleThatIsNotElementwiseIsDetected) {
  for (const std::string rule : {"normed", "noisy"})
    for (const std::string& where : {mesh(1, 1), mesh(2, 1) + " parallel.shard_parameters=true"})
      expect_error(regression("refused", "train.optimizer=" + rule + " " + where),
                   "[optimizer] elementwise() of " + rule + " (./so/mistakes.so) is true, but ");
}

}  // namespace
}  // namespace redco::test
