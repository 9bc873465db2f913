// Model families of plugins (tests/outside/project/families.cpp): known to every command, on any mesh, and
// only if the job names the plugin.
#include <filesystem>

#include "outside_testing.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;

class Plugins : public Outside {
 protected:
  static void SetUpTestSuite() {
    Outside::SetUpTestSuite();
    if (HasFatalFailure() || fs::exists(*dir_ / "decays.yaml")) return;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * 7919 % 1000) + " of a text. ";
    spill(*dir_ / "plain.txt", text);
    spill(*dir_ / "decays.yaml",
          "plugins: ./so/families.so\n"
          "model: {arch: decays, tokenizer: bytes, hidden_size: 32, num_hidden_layers: 2, num_heads: 4}\n"
          "data: {train: plain.txt, eval: plain.txt, max_length: 32}\n"
          "parallel: {threads_per_rank: 1}\n"
          "train: {global_batch_size: 8, max_steps: 6, learning_rate: 3.0e-3, logging_steps: 1, seed: 3,\n"
          "        schedule: constant}\n"
          "predict: {max_new_tokens: 8, batch_size: 3}\n");
    trains("decays", "");
  }
  static Ran command(const std::string& words, const std::string& environment = "") {
    return shell(dir_->path(), environment + " timeout 120 prefix/bin/redco " + words);
  }
  static void trains(const std::string& workdir, const std::string& words) {
    const Ran r = command("train decays.yaml workdir=" + workdir + " " + words);
    ASSERT_EQ(r.code, 0) << words << "\n" << r.said;
  }
  static void expect_near(const std::string& one, const std::string& other, double relative) {
    const auto a = losses(one), b = losses(other);
    ASSERT_EQ(a.size(), b.size()) << other;
    for (const auto& [key, value] : a)
      EXPECT_NEAR(b.at(key), value, relative * std::abs(value))
          << other << ", step " << key.first << ", " << key.second;
  }
  static Json read(const std::string& file) { return Json::parse(slurp(*dir_ / file)); }
};

TEST_F(Plugins, AFamilyTrainsOnAnyMesh) {
  ASSERT_EQ(losses("decays").count({6, "eval_loss"}), 1u);
  EXPECT_LT(losses("decays").at({6, "loss"}), losses("decays").at({1, "loss"}));
  const std::map<std::string, std::string> others = {
      {"2x1", mesh(2, 1)},
      {"1x2", mesh(1, 2)},
      {"1x3", mesh(1, 3)},  // uneven heads
      {"zero3", mesh(2, 1) + " parallel.shard_parameters=true"},
      {"tokens", mesh(1, 2) + " parallel.sequence_parallel=true"},
      {"recompute", mesh(1, 1) + " train.recompute=block"}};
  for (const auto& [what, words] : others) {
    trains("decays-" + what, words);
    expect_near("decays", "decays-" + what, 1e-4);
  }
  const Json config = read("decays/checkpoints/last/config.json");
  EXPECT_EQ(config["model_type"], "decays");
  EXPECT_EQ(config["architectures"], Json::array({"DecaysForCausalLM"}));
  EXPECT_EQ(config["hidden_size"], 32);
  const Ran plan = command("plan decays.yaml " + mesh(1, 2));
  ASSERT_EQ(plan.code, 0) << plan.said;
  EXPECT_THAT(plan.said, HasSubstr("(keys|queries|values|decay).weight  (None, mp)  cut given by the model"));
}

TEST_F(Plugins, AResumedRunEqualsAnUninterruptedRun) {
  for (const auto& [what, words] :
       std::map<std::string, std::string>{{"one", mesh(1, 1)}, {"two", mesh(1, 2)}}) {
    const std::string straight = "decays-straight-" + what, resumed = "decays-resumed-" + what;
    trains(straight, words);
    trains(resumed, words + " train.max_steps=3");
    trains(resumed, words);
    for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_TRUE(slurp(*dir_ / (straight + "/checkpoints/last/" + file)) ==
                  slurp(*dir_ / (resumed + "/checkpoints/last/" + file)))
          << what << ": " << file;
  }
}

// The same file elsewhere is the same plugin. Other contents are reported.
TEST_F(Plugins, AChangedPluginIsReportedOnResume) {
  trains("decays-changed", "train.max_steps=2");
  fs::create_directory(*dir_ / "moved");
  spill(*dir_ / "moved/families.so", slurp(*dir_ / "so/families.so"));
  const std::string resume = "train decays.yaml workdir=decays-changed plugins=./moved/families.so ";
  const Ran same = command(resume + "train.max_steps=3");
  ASSERT_EQ(same.code, 0) << same.said;
  EXPECT_EQ(same.said.find("have changed"), std::string::npos) << same.said;
  spill(*dir_ / "moved/families.so", slurp(*dir_ / "so/families.so") + "\n");
  const Ran other = command(resume + "train.max_steps=4");
  ASSERT_EQ(other.code, 0) << other.said;
  EXPECT_THAT(other.said, HasSubstr("[resume] the contents of ./moved/families.so have changed since "));
}

// Rows of a batch begin at different columns, and rows that end early are replaced: the state of each row is
// the loss of its tokens.
TEST_F(Plugins, GenerationKeepsAStatePerRow) {
  std::string lines, ids;
  for (int i = 0; i < 7; ++i)
    lines += R"({"id": ")" + std::to_string(i) + R"(", "prompt": ")" +
             std::string("line 123 of").substr(0, 2 + i) + "\"}\n";
  spill(*dir_ / "prompts.jsonl", lines);
  const auto answers = [&](const std::string& words) {
    fs::remove(*dir_ / "answers.jsonl");
    const Ran r = command(
        "predict decays.yaml workdir=decays predict.input=prompts.jsonl "
        "predict.output=answers.jsonl " +
        words);
    EXPECT_EQ(r.code, 0) << words << "\n" << r.said;
    std::map<std::string, std::string> out;
    std::istringstream in(slurp(*dir_ / "answers.jsonl"));
    for (std::string line; std::getline(in, line);) {
      const Json j = Json::parse(line);
      out[j["id"]] = j["prediction"].dump();
    }
    return out;
  };
  const auto alone = answers("predict.batch_size=1");
  ASSERT_EQ(alone.size(), 7u);
  EXPECT_EQ(answers("predict.batch_size=3"), alone);
  EXPECT_EQ(answers("predict.batch_size=3 " + mesh(1, 2)), alone);
  EXPECT_EQ(answers("predict.batch_size=2 " + mesh(2, 1)), alone);
  EXPECT_EQ(answers("predict.num_beams=2 predict.batch_size=1").size(), 7u);
}

TEST_F(Plugins, EveryCommandKnowsTheFamily) {
  const Ran evaluated = command("evaluate decays.yaml workdir=decays 2>/dev/null");
  ASSERT_EQ(evaluated.code, 0) << evaluated.said;
  EXPECT_NEAR(Json::parse(evaluated.said)["loss"].get<double>(), losses("decays").at({6, "eval_loss"}), 1e-5);
  const std::string folder = "decays/checkpoints/last", plugin = "plugins=./so/families.so";
  for (const std::string words :
       {"validate decays.yaml", "bench decays.yaml --steps 2", "bench decays.yaml --predict --steps 2",
        "train decays.yaml workdir=decays-dry --dry-run", "sbatch decays.yaml workdir=decays-batch",
        // Commands on a checkpoint, with the plugin on the command line.
        "predict workdir=decays predict.prompt=line predict.max_new_tokens=4 ",
        "predict model.path=decays/checkpoints/last predict.prompt=line predict.max_new_tokens=4 ",
        "train decays.yaml model.arch=~ model.path=decays/checkpoints/last workdir=decays-again "
        "model.hidden_size=32 train.max_steps=1",
        "train decays.yaml train.lora.rank=2 model.arch=~ model.path=decays/checkpoints/last "
        "workdir=decays-lora train.max_steps=2",
        "predict workdir=decays-lora predict.prompt=line predict.max_new_tokens=4 ",
        "merge decays-lora --output merged"}) {
    const bool job = words.find("decays.yaml") != std::string::npos;
    const Ran r = command(words + (job ? "" : " " + plugin));
    EXPECT_EQ(r.code, 0) << words << "\n" << r.said;
  }
  // verify reads the family's config; the folder has no expected values.
  const Ran verified = command("verify " + folder + " " + plugin);
  EXPECT_EQ(verified.code, 2) << verified.said;
  EXPECT_THAT(verified.said, HasSubstr("expected.safetensors"));
  const Ran chat = shell(dir_->path(),
                         "echo hello | timeout 60 prefix/bin/redco chat decays.yaml workdir=decays "
                         "predict.max_new_tokens=4");
  EXPECT_EQ(chat.said.find("not supported"), std::string::npos) << chat.said;
}

TEST_F(Plugins, AFamilyWithoutTextNeedsNoTokenizer) {
  for (const auto& [what, words] :
       std::map<std::string, std::string>{{"1x1", mesh(1, 1)}, {"2x1", mesh(2, 1)}, {"1x2", mesh(1, 2)}}) {
    const Ran r = command(
        "train plugins=./so/families.so pipeline=regression model.arch=bumps model.input_size=3 "
        "model.hidden_size=8 data.train=builtin:function data.eval=builtin:function "
        "train.global_batch_size=50 train.max_steps=20 train.logging_steps=1 "
        "train.learning_rate=0.01 parallel.threads_per_rank=1 workdir=bumps-" +
        what + " " + words);
    ASSERT_EQ(r.code, 0) << r.said;
    expect_near("bumps-1x1", "bumps-" + what, 1e-4);
  }
  EXPECT_LT(losses("bumps-1x1").at({20, "loss"}), losses("bumps-1x1").at({1, "loss"}));
}

// The shared object of a pipeline may have families too.
TEST_F(Plugins, APipelinesSharedObjectMayHaveFamilies) {
  trains("both", "plugins=[] pipeline=./so/both.so");
  expect_near("decays", "both", 1e-6);
  // The checkpoint decides the pipeline, but does not run its code unless its user names it or has trained
  // it.
  const std::string predict = "predict workdir=both predict.prompt=line predict.max_new_tokens=4 ";
  EXPECT_EQ(command(predict).code, 0);
  const Ran unnamed = command(predict, "XDG_CONFIG_HOME=of-another");
  EXPECT_EQ(unnamed.code, 2) << unnamed.said;
  EXPECT_THAT(unnamed.said, HasSubstr("redco trust"));
  const Ran p = command(predict + "pipeline=./so/both.so", "XDG_CONFIG_HOME=of-another");
  EXPECT_EQ(p.code, 0) << p.said;
  const Ran twice = command("validate decays.yaml pipeline=./so/both.so");
  EXPECT_EQ(twice.code, 2) << twice.said;
  EXPECT_THAT(twice.said, HasSubstr("[plugins] ./so/both.so: REDCO_MODEL(\"decays\", DecaysForCausalLM): "
                                    "./so/families.so has this family"));
}

TEST_F(Plugins, ACheckpointLoadsOnlyAPluginThatItsUserHasTrainedWith) {
  const Ran mine = command("predict workdir=decays predict.prompt=x predict.max_new_tokens=2");
  EXPECT_EQ(mine.code, 0) << mine.said;
  const std::string so = *dir_ / "so/families.so";
  for (const std::string words :
       {"predict workdir=decays predict.prompt=x", "evaluate workdir=decays data.eval=plain.txt",
        "predict model.path=decays/checkpoints/last predict.prompt=x", "verify decays/checkpoints/last"}) {
    const Ran r = command(words, "XDG_CONFIG_HOME=of-another");
    EXPECT_EQ(r.code, 2) << words << "\n" << r.said;
    EXPECT_THAT(r.said,
                HasSubstr("is a model of the family decays, which is not built in. Its training had it "
                          "from ./so/families.so, which a checkpoint does not load. Add it to the job: "
                          "plugins=["))
        << words;
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
  }
  // A plain folder does not name the origin of the family.
  fs::create_directory(*dir_ / "plain");
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
    if (fs::exists(*dir_ / (std::string("decays/checkpoints/last/") + file)))
      fs::copy(*dir_ / (std::string("decays/checkpoints/last/") + file),
               *dir_ / (std::string("plain/") + file));
  const Ran r = command("predict model.path=plain predict.prompt=x");
  EXPECT_EQ(r.code, 3) << r.said;
  EXPECT_THAT(r.said, HasSubstr("this family is not supported; supported: gpt2, "));
  EXPECT_THAT(r.said, HasSubstr("and those of plugins (plugins: [./x.so])"));
}

TEST_F(Plugins, FilesThatAreNotPluginsAreRefused) {
  spill(*dir_ / "no.so", "no shared object\n");
  const std::map<std::string, std::string> why = {
      {"./so/other_version.so",
       "was built against other headers than this redco: it has the interface 0123456789abcdef, libstdc++ "
       "12, this redco has "},
      {"./so/no_pipeline.so",
       "is not a plugin. Add REDCO_MODEL(\"name\", Class), REDCO_OPTIMIZER, REDCO_METRIC or REDCO_ENVIRONMENT to its source"},
      {"./so/taken.so", "REDCO_MODEL(\"gpt2\", Taken): this family is built in. Use another name"},
      {"./nowhere.so", "./nowhere.so does not exist"},
      {"./no.so", "./no.so can't be loaded: "}};
  for (const auto& [path, words] : why)
    for (const std::string ranks : {"1", "2"}) {
      const Ran r =
          command("train decays.yaml workdir=refused plugins=" + path + " parallel.n_ranks=" + ranks);
      EXPECT_EQ(r.code, 2) << path << r.said;
      EXPECT_THAT(r.said, HasSubstr("error: [plugins] "));
      EXPECT_THAT(r.said, HasSubstr(words));
      EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
    }
  const Ran typo = command("validate decays.yaml model.arch=decay");
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.said, HasSubstr("did you mean decays?"));
  const Ran key = command("validate decays.yaml model.num_head=4");
  EXPECT_EQ(key.code, 2);
  EXPECT_THAT(key.said, HasSubstr("num_heads"));
}

// Optimizers composed of ops: AdamW's twin has the losses of redco's, on every mesh and with each sharding of
// the state.
TEST_F(Plugins, AnOptimizerUpdatesWithAnySharding) {
  const std::string job = "plugins='[./so/families.so, ./so/optimizers.so]' ",
                    twin = "train.optimizer=adam_of_ops ";
  trains("adamw", job + "train.adam_beta2=0.99 train.weight_decay=0.1");
  const std::map<std::string, std::string> meshes = {
      {"1x1", mesh(1, 1)},
      {"1x2", mesh(1, 2)},
      {"zero0", mesh(2, 1)},
      {"zero1", mesh(2, 1) + " parallel.shard_optimizer=true"},
      {"zero2", mesh(2, 1) + " parallel.shard_gradients=true"},
      {"zero3", mesh(2, 1) + " parallel.shard_parameters=true"},
      {"zero3-2x2", mesh(2, 2) + " parallel.shard_parameters=true"}};
  for (const auto& [what, where] : meshes) {
    trains("twin-" + what,
           job + twin + "train.optimizer_settings.beta2=0.99 train.weight_decay=0.1 " + where);
    expect_near("adamw", "twin-" + what, 1e-4);
    // Not elementwise: products of whole matrices.
    trains("orthogonal-" + what, job + "train.optimizer=orthogonal train.learning_rate=1e-3 " + where);
    expect_near("orthogonal-1x1", "orthogonal-" + what, 1e-3);
    trains("lion-" + what, job + "train.optimizer=lion train.learning_rate=1e-4 " + where);
    expect_near("lion-1x1", "lion-" + what, 1e-3);
  }
  for (const std::string name : {"orthogonal", "lion"})
    EXPECT_LT(losses(name + "-1x1").at({6, "loss"}), losses(name + "-1x1").at({1, "loss"}) - 0.01) << name;
  // Sharded state is the same state: the bits are those of unsharded one.
  for (const std::string name : {"twin", "lion"})
    for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_TRUE(slurp(*dir_ / (name + "-zero0/checkpoints/last/" + file)) ==
                  slurp(*dir_ / (name + "-zero1/checkpoints/last/" + file)))
          << name << " " << file;
  EXPECT_THAT(slurp(*dir_ / "twin-1x1/checkpoints/last/training/optimizer.safetensors"),
              HasSubstr("\"second/embed.weight\""));
  // bf16 weights have fp32 masters, which the rule updates.
  trains("twin-bf16", job + twin +
                          "model.weight_dtype=bf16 train.optimizer_settings.beta2=0.99 "
                          "train.weight_decay=0.1");
  trains("adamw-bf16", job + "model.weight_dtype=bf16 train.adam_beta2=0.99 train.weight_decay=0.1");
  expect_near("adamw-bf16", "twin-bf16", 1e-3);
}

TEST_F(Plugins, AnOptimizersStateIsPlannedAndResumed) {
  const std::string job = "plugins='[./so/families.so, ./so/optimizers.so]' train.optimizer=";
  const auto planned = [&](const std::string& optimizer) {
    const Ran r = command("plan decays.yaml --json " + job + optimizer + " 2>/dev/null");
    EXPECT_EQ(r.code, 0) << r.said;
    return Json::parse(r.said)["per_rank"]["optimizer"].get<double>();
  };
  EXPECT_EQ(planned("adam_of_ops"), planned("adamw"));
  EXPECT_EQ(2 * planned("lion"), planned("adamw"));
  for (const auto& [what, where] : std::map<std::string, std::string>{
           {"one", mesh(1, 1)}, {"three", mesh(2, 1) + " parallel.shard_parameters=true"}}) {
    const std::string straight = "opt-straight-" + what, resumed = "opt-resumed-" + what;
    trains(straight, job + "adam_of_ops " + where);
    trains(resumed, job + "adam_of_ops " + where + " train.max_steps=3");
    trains(resumed, job + "adam_of_ops " + where);
    for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_TRUE(slurp(*dir_ / (straight + "/checkpoints/last/" + file)) ==
                  slurp(*dir_ / (resumed + "/checkpoints/last/" + file)))
          << what << ": " << file;
  }
  const Ran other = command("train decays.yaml workdir=opt-resumed-one train.max_steps=8 " + job + "lion");
  EXPECT_EQ(other.code, 2) << other.said;
  EXPECT_THAT(other.said, HasSubstr("train.optimizer was adam_of_ops, is lion"));
}

TEST_F(Plugins, MistakesOfAnOptimizerAreNamed) {
  const std::map<std::string, std::string> why = {
      {"train.optimizer=wrong_shape",
       "[optimizer] update() of wrong_shape (./so/optimizers.so) for embed.weight returned f32 ()"},
      {"train.optimizer=lions", "train.optimizer=lions: no such optimizer; did you mean lion?"},
      {"train.optimizer=adam_of_ops train.optimizer_settings.beta3=1", "beta3"},
      {"train.optimizer=adam_of_ops train.optimizer_settings.beta1=1", "beta1"},
      {"train.optimizer=lion train.optimizer_settings.beta1=0.5", "beta1"},
      {"train.optimizer_settings.beta1=0.5", "but train.optimizer is adamw"}};
  for (const auto& [words, said] : why) {
    const Ran r = command(
        "train decays.yaml workdir=refused plugins='[./so/families.so, ./so/optimizers.so]' " + words);
    EXPECT_EQ(r.code, 2) << words << r.said;
    EXPECT_THAT(r.said, HasSubstr(said)) << words;
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
  }
}

// A metric gets all predictions of the evaluation data and their references.
TEST_F(Plugins, AMetricScoresGeneratedTexts) {
  const std::string job =
      "pipeline=seq2seq plugins=./so/optimizers.so model.arch=t5 model.tokenizer=bytes model.d_model=16 "
      "model.d_kv=8 model.num_heads=2 model.d_ff=32 model.num_layers=1 data.train=builtin:copy "
      "data.eval=builtin:copy train.global_batch_size=8 train.max_steps=2 eval.n_outputs=200 "
      "eval.generation.max_new_tokens=6 parallel.threads_per_rank=1 ";
  std::map<std::string, double> metrics;
  for (const auto& [what, where] :
       std::map<std::string, std::string>{{"1x1", mesh(1, 1)}, {"2x1", mesh(2, 1)}, {"1x2", mesh(1, 2)}}) {
    const Ran r = command("train " + job +
                          "eval.metrics='[exact_match, same_length]' "
                          "checkpoint.save_best_by.max=[same_length] workdir=metric-" +
                          what + " " + where);
    ASSERT_EQ(r.code, 0) << r.said;
    // The outputs of the evaluation, counted here.
    double same = 0, n = 0;
    std::istringstream lines(slurp(*dir_ / ("metric-" + what + "/eval_outputs/step-00000002.jsonl")));
    for (std::string line; std::getline(lines, line); ++n) {
      const Json j = Json::parse(line);
      same += j["prediction"].get<std::string>().size() == j["reference"].get<std::string>().size();
    }
    ASSERT_EQ(n, 200);
    std::istringstream log(slurp(*dir_ / ("metric-" + what + "/metrics.jsonl")));
    for (std::string line; std::getline(log, line);)
      if (const Json j = Json::parse(line); j.contains("eval_same_length"))
        metrics[what] = j["eval_same_length"].get<double>();
    ASSERT_EQ(metrics.count(what), 1u);
    EXPECT_NEAR(metrics[what], same / n, 1e-6) << what;
  }
  const Ran failing = command("train " + job + "eval.metrics=[fails] workdir=metric-fails");
  EXPECT_EQ(failing.code, 2) << failing.said;
  EXPECT_THAT(failing.said, HasSubstr("[metrics] fails (./so/optimizers.so) failed: no texts today"));
  const Ran taken = command("validate " + job + "plugins=./so/taken_metric.so");
  EXPECT_EQ(taken.code, 2) << taken.said;
  EXPECT_THAT(taken.said, HasSubstr("REDCO_METRIC(\"rougeL\"): this metric is built in. Use another name"));
  const Ran typo = command("validate " + job + "eval.metrics=[same_lenght]");
  EXPECT_EQ(typo.code, 2) << typo.said;
  EXPECT_THAT(typo.said, HasSubstr("did you mean same_length?"));
}

// SetUpTestSuite has written and built it.
TEST_F(Plugins, TheSkeletonOfAModelTrainsAndGenerates) {
  EXPECT_THAT(slurp(*dir_ / "my_decoder/job.yaml"), HasSubstr("plugins: ./build/my_decoder.so\n"));
  EXPECT_THAT(slurp(*dir_ / "my_decoder/my_decoder.cpp"),
              HasSubstr("class MyDecoderForCausalLM : public Model"));
  const std::string job = "my_decoder/job.yaml plugins=./so/model_skeleton/my_decoder.so ";
  const Ran plan = command("plan " + job + mesh(1, 2));
  ASSERT_EQ(plan.code, 0) << plan.said;
  const std::string words = "train " + job +
                            " train.logging_steps=1 train.schedule=constant parallel.threads_per_rank=1 ",
                    all_steps = " train.max_steps=8";
  for (const auto& [what, where] :
       std::map<std::string, std::string>{{"1x1", mesh(1, 1)}, {"2x1", mesh(2, 1)}, {"1x2", mesh(1, 2)}}) {
    const std::string workdir = "workdir=decoder-" + what;
    const Ran r = command(words + where + " " + workdir + all_steps);
    ASSERT_EQ(r.code, 0) << what << "\n" << r.said;
    expect_near("decoder-1x1", "decoder-" + what, 1e-4);
    // A resumed run equals this one.
    for (const std::string& steps : {std::string(" train.max_steps=5"), all_steps}) {
      const Ran part = command(words + where + " " + workdir + "-resumed" + steps);
      ASSERT_EQ(part.code, 0) << what << "\n" << part.said;
    }
    for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_TRUE(slurp(*dir_ / ("decoder-" + what + "/checkpoints/last/" + file)) ==
                  slurp(*dir_ / ("decoder-" + what + "-resumed/checkpoints/last/" + file)))
          << what << ": " << file;
    const Ran p = command("predict " + job + where + " " + workdir + " predict.prompt=a 2>/dev/null");
    ASSERT_EQ(p.code, 0) << what << "\n" << p.said;
    spill(*dir_ / ("answer-" + what), p.said);
    EXPECT_EQ(p.said, slurp(*dir_ / "answer-1x1")) << what;
  }
  // The unchanged job: from ln(257) = 5.5 to 0.57.
  const Ran whole = command("train " + job);
  ASSERT_EQ(whole.code, 0) << whole.said;
  std::string last;
  std::istringstream lines(slurp(*dir_ / "runs/my_decoder/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (line.find("eval_loss") != std::string::npos) last = line;
  EXPECT_LT(Json::parse(last)["eval_loss"].get<double>(), 0.62) << last;
}

}  // namespace
}  // namespace redco::test
