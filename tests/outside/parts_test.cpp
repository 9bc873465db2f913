// What a job may have besides its model: a pipeline's own parameters, more models, the model without
// adapters.
#include <filesystem>

#include "outside_testing.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;

class Parts : public Outside {
 protected:
  static void SetUpTestSuite() {
    Outside::SetUpTestSuite();
    if (HasFatalFailure() || fs::exists(*dir_ / "base")) return;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * 7919 % 1000) + " of a text. ";
    spill(*dir_ / "text.txt", text);
    spill(*dir_ / "parts.yaml",
          "pipeline: ./so/parts.so\n"
          "model: {path: base}\n"
          "data: {train: text.txt, eval: text.txt, max_length: 32}\n"
          "parallel: {threads_per_rank: 1}\n"
          "train: {global_batch_size: 8, max_steps: 6, learning_rate: 3.0e-3, logging_steps: 1, seed: 3}\n");
    for (const auto& [name, seed] : {std::pair("base", "5"), std::pair("other", "6")}) {
      const Ran r = command(
          "train parts.yaml pipeline=lm model.path=~ model.arch=gpt2 model.tokenizer=bytes model.n_layer=2 "
          "model.n_embd=32 model.n_head=4 model.n_positions=32 model.embd_pdrop=0 model.resid_pdrop=0 "
          "model.attn_pdrop=0 train.max_steps=2 workdir=" +
          std::string("made-") + name + " train.seed=" + seed);
      ASSERT_EQ(r.code, 0) << r.said;
      // A plain Hugging Face folder: no training/.
      fs::create_directory(*dir_ / name);
      for (const auto& e :
           fs::directory_iterator(*dir_ / ("made-" + std::string(name) + "/checkpoints/last")))
        if (e.is_regular_file()) fs::copy(e.path(), fs::path(*dir_ / name) / e.path().filename());
    }
  }
  static Ran command(const std::string& words) {
    return shell(dir_->path(), "timeout 120 prefix/bin/redco " + words);
  }
  static void trains(const std::string& workdir, const std::string& words) {
    const Ran r = command("train parts.yaml workdir=" + workdir + " " + words);
    ASSERT_EQ(r.code, 0) << words << "\n" << r.said;
  }
  // The names in the header of a safetensors file.
  static std::set<std::string> tensors(const std::string& file) {
    const std::string bytes = slurp(*dir_ / file);
    std::uint64_t n = 0;
    std::memcpy(&n, bytes.data(), 8);
    const Json header = Json::parse(bytes.substr(8, n));
    std::set<std::string> out;
    for (const auto& [name, value] : header.items())
      if (name != "__metadata__") out.insert(name);
    return out;
  }
  static void same_on_all_meshes(const std::string& name, const std::string& words) {
    trains(name, words);
    const auto one = losses(name);
    ASSERT_EQ(one.count({6, "eval_loss"}), 1u);
    const std::map<std::string, std::string> others = {
        {"2x1", mesh(2, 1)},
        {"1x2", mesh(1, 2)},
        {"zero3", mesh(2, 1) + " parallel.shard_parameters=true"},
        {"accumulated", "train.per_device_batch_size=3"}};
    for (const auto& [what, more] : others) {
      trains(name + "-" + what, words + " " + more);
      const auto other = losses(name + "-" + what);
      ASSERT_EQ(other.size(), one.size()) << what;
      for (const auto& [key, value] : one)
        EXPECT_NEAR(other.at(key), value, 1e-4 * std::abs(value) + 1e-6)
            << what << ", step " << key.first << ", " << key.second;
    }
  }
};

TEST_F(Parts, AValueHeadIsAddedToTheModel) {
  const std::string words = "settings.value_head=true";
  same_on_all_meshes("head", words);
  // The model's files are those of the model.
  EXPECT_EQ(tensors("head/checkpoints/last/model.safetensors"), tensors("base/model.safetensors"));
  EXPECT_EQ(tensors("head/checkpoints/last/models/extra/model.safetensors"),
            std::set<std::string>{"v_head.weight"});
  // A resumed run equals an uninterrupted one.
  trains("head-resumed", words + " train.max_steps=3 train.schedule=constant");
  trains("head-resumed", words + " train.schedule=constant");
  trains("head-straight", words + " train.schedule=constant");
  for (const std::string file :
       {"model.safetensors", "models/extra/model.safetensors", "training/optimizer.safetensors"})
    EXPECT_TRUE(slurp(*dir_ / ("head-resumed/checkpoints/last/" + file)) ==
                slurp(*dir_ / ("head-straight/checkpoints/last/" + file)))
        << file;
  // Evaluation and prediction have the trained head.
  const Ran e = command("evaluate parts.yaml workdir=head");
  ASSERT_EQ(e.code, 0) << e.said;
  EXPECT_EQ(e.said.find("initial values"), std::string::npos) << e.said;
  EXPECT_NEAR(Json::parse(e.said.substr(e.said.find('{')))["loss"].get<double>(),
              losses("head").at({6, "eval_loss"}), 1e-5);
  const Ran p = command("predict parts.yaml workdir=head predict.prompt=x 2>/dev/null");
  EXPECT_EQ(p.code, 0) << p.said;
  // A folder without the head: said aloud.
  const Ran bare = command("predict parts.yaml settings.value_head=true predict.prompt=x");
  EXPECT_EQ(bare.code, 0) << bare.said;
  EXPECT_THAT(bare.said,
              HasSubstr("base has no values for the pipeline's own parameters (v_head.weight): they "
                        "begin with their initial values and must be trained first"));
  // A second training begins with the head of the first.
  trains("head-again", words + " model.path=head/checkpoints/last");
  EXPECT_LT(losses("head-again").at({1, "value"}), losses("head").at({1, "value"}));
}

TEST_F(Parts, AFrozenModelHasTheHeadOfItsTraining) {
  if (!fs::exists(*dir_ / "head")) trains("head", "settings.value_head=true");
  const std::string words = "settings.scored=true models.reward.path=";
  same_on_all_meshes("scored", words + "head/checkpoints/last");
  EXPECT_GT(std::abs(losses("scored").at({1, "score"})), 1e-4);
  EXPECT_FALSE(fs::exists(*dir_ / "scored/checkpoints/last/models"));
  const Ran e = command("evaluate parts.yaml workdir=scored");
  EXPECT_EQ(e.code, 0) << e.said;
  // Without the head there is nothing to score with.
  const Ran bare = command("train parts.yaml workdir=bare " + words + "base");
  EXPECT_EQ(bare.code, 3) << bare.said;
  EXPECT_THAT(bare.said, HasSubstr("[models] models.reward: base has no values for v_head.weight ("));
  EXPECT_THAT(bare.said, HasSubstr("), which the pipeline needs of this model"));
  const Ran trained =
      command("train parts.yaml workdir=bare " + words + "head/checkpoints/last models.reward.frozen=false");
  EXPECT_EQ(trained.code, 2) << trained.said;
  EXPECT_THAT(trained.said, HasSubstr("extra_params_of(\"reward\") declares parameters of a model that is "
                                      "trained (models.reward.frozen is false)"));
  // Another head is another model: a resumed run refuses it. The folder is a plain one, without checksums.
  fs::copy(*dir_ / "base", *dir_ / "scorer");
  fs::create_directories(*dir_ / "scorer/models");
  fs::copy(*dir_ / "head/checkpoints/last/models/extra", *dir_ / "scorer/models/extra");
  trains("scored-plain", words + "scorer");
  const fs::path head = *dir_ / "scorer/models/extra/model.safetensors";
  std::string bytes = slurp(head.string());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  spill(head.string(), bytes);
  const Ran changed = command("train parts.yaml workdir=scored-plain train.max_steps=8 " + words + "scorer");
  EXPECT_EQ(changed.code, 2) << changed.said;
  EXPECT_THAT(changed.said, HasSubstr("was made with other weights of models.reward"));
}

TEST_F(Parts, AFrozenReferenceIsNeverTrainedNorSaved) {
  const std::string words = "settings.reference=true models.reference='{path: other}'";
  same_on_all_meshes("reference", words);
  EXPECT_GT(losses("reference").at({1, "distance"}), 1e-3);
  EXPECT_EQ(tensors("reference/checkpoints/last/model.safetensors"), tensors("base/model.safetensors"));
  EXPECT_FALSE(fs::exists(*dir_ / "reference/checkpoints/last/models"));
  const std::string optimizer = slurp(*dir_ / "reference/checkpoints/last/training/optimizer.safetensors");
  EXPECT_EQ(optimizer.find("reference/"), std::string::npos);
  // With itself as the reference: no distance before the first update.
  trains("itself", "settings.reference=true models.reference.path=base");
  EXPECT_EQ(losses("itself").at({1, "distance"}), 0);

  // evaluate has the reference of the training, not the checkpoint.
  const Ran e = command("evaluate parts.yaml workdir=reference");
  ASSERT_EQ(e.code, 0) << e.said;
  const Json metrics = Json::parse(e.said.substr(e.said.find('{')));
  EXPECT_NEAR(metrics["distance"].get<double>(), losses("reference").at({6, "eval_distance"}), 1e-6);
  // predict() does not use it, so it may be gone.
  fs::rename(*dir_ / "other", *dir_ / "moved_reference");
  const Ran p = command("predict parts.yaml workdir=reference predict.prompt=x");
  EXPECT_EQ(p.code, 0) << p.said;
  // Moved: a note. Other weights: an error.
  const Ran moved = command(
      "train parts.yaml workdir=reference settings.reference=true train.max_steps=8 "
      "models.reference.path=moved_reference");
  EXPECT_EQ(moved.code, 0) << moved.said;
  EXPECT_THAT(moved.said, HasSubstr("models.reference has moved from "));
  const Ran changed = command(
      "train parts.yaml workdir=reference settings.reference=true train.max_steps=9 "
      "models.reference.path=base");
  EXPECT_EQ(changed.code, 2) << changed.said;
  EXPECT_THAT(changed.said, HasSubstr("was made with other weights of models.reference"));
  fs::rename(*dir_ / "moved_reference", *dir_ / "other");

  const Ran absent = command("train parts.yaml workdir=absent settings.reference=true");
  EXPECT_EQ(absent.code, 2) << absent.said;
  EXPECT_THAT(absent.said,
              HasSubstr("this pipeline needs the model 'reference', and the job has no models:"));
  const Ran plan = command("plan parts.yaml " + words);
  EXPECT_EQ(plan.code, 0) << plan.said;
  EXPECT_THAT(plan.said, HasSubstr("reference/"));
}

TEST_F(Parts, ASecondModelIsTrainedAndSavedInItsOwnFolder) {
  const std::string words = "settings.second=true models.second='{path: other, frozen: false}'";
  same_on_all_meshes("second", words);
  const std::string saved = "second/checkpoints/last/models/second/";
  EXPECT_EQ(tensors(saved + "model.safetensors"), tensors("other/model.safetensors"));
  EXPECT_TRUE(fs::exists(*dir_ / (saved + "config.json")));
  EXPECT_FALSE(slurp(*dir_ / (saved + "model.safetensors")) == slurp(*dir_ / "other/model.safetensors"));
  trains("second-resumed", words + " train.max_steps=3 train.schedule=constant");
  trains("second-resumed", words + " train.schedule=constant");
  trains("second-straight", words + " train.schedule=constant");
  for (const std::string file : {"model.safetensors", "models/second/model.safetensors"})
    EXPECT_TRUE(slurp(*dir_ / ("second-resumed/checkpoints/last/" + file)) ==
                slurp(*dir_ / ("second-straight/checkpoints/last/" + file)))
        << file;
  const Ran e = command("evaluate parts.yaml workdir=second");
  ASSERT_EQ(e.code, 0) << e.said;
  EXPECT_NEAR(Json::parse(e.said.substr(e.said.find('{')))["loss"].get<double>(),
              losses("second").at({6, "eval_loss"}), 1e-5);
}

TEST_F(Parts, WithoutItsAdaptersTheModelIsTheBase) {
  const std::string words = "settings.without_adapters=true train.lora.rank=2";
  same_on_all_meshes("lora", words);
  EXPECT_EQ(losses("lora").at({1, "distance"}), 0);  // B begins with 0
  EXPECT_GT(losses("lora").at({6, "distance"}), 0);
  const Ran e = command("evaluate parts.yaml workdir=lora");
  ASSERT_EQ(e.code, 0) << e.said;
  const Json j = Json::parse(e.said.substr(e.said.find('{')));
  EXPECT_THAT(j["model"].get<std::string>(), HasSubstr("lora/checkpoints/"));
  EXPECT_THAT(j["base_model"].get<std::string>(), HasSubstr("base"));
  const Ran whole = command("train parts.yaml workdir=whole settings.without_adapters=true");
  EXPECT_EQ(whole.code, 2) << whole.said;
  EXPECT_THAT(whole.said, HasSubstr("is trained as a whole, so the model before the training is not kept"));
}

TEST_F(Parts, AFrozenModelMayHaveAdapters) {
  if (!fs::exists(*dir_ / "lora")) trains("lora", "settings.without_adapters=true train.lora.rank=2");
  const std::string adapter = "adapter: lora/checkpoints/last";
  const std::string words = "settings.reference=true models.reference='{path: base, " + adapter + "}'";
  same_on_all_meshes("adapted", words);
  EXPECT_GT(losses("adapted").at({1, "distance"}), 0);
  const std::string optimizer = slurp(*dir_ / "adapted/checkpoints/last/training/optimizer.safetensors");
  EXPECT_EQ(optimizer.find("lora_"), std::string::npos);
  EXPECT_EQ(optimizer.find("reference/"), std::string::npos);
  // The folder of the adapter names its base.
  trains("adapted-alone", "settings.reference=true models.reference.path=lora/checkpoints/last");
  EXPECT_EQ(losses("adapted-alone"), losses("adapted"));
  // The same adapter in the model that is trained: no distance before the first update.
  trains("adapted-both", words + " model.adapter=lora/checkpoints/last");
  EXPECT_EQ(losses("adapted-both").at({1, "distance"}), 0);
  EXPECT_GT(losses("adapted-both").at({6, "distance"}), 0);
}

// `data`, `validate` and `bench` know the pipeline's settings and parameters.
TEST_F(Parts, AllCommandsReadThePipelinesSettings) {
  const Ran v = command("validate parts.yaml settings.value_head=true");
  EXPECT_EQ(v.code, 0) << v.said;
  const Ran plain = command("validate parts.yaml");
  EXPECT_NE(v.said, plain.said) << "the head's parameters are counted";
  const Ran typo = command("validate parts.yaml settings.value_haed=true");
  EXPECT_EQ(typo.code, 2) << typo.said;
  EXPECT_THAT(typo.said, HasSubstr("value_haed"));
  const Ran b = command("bench parts.yaml settings.value_head=true --steps 2 --json");
  ASSERT_EQ(b.code, 0) << b.said;
  const Json report = Json::parse(b.said.substr(b.said.find('{')));
  EXPECT_GT(report["tokens_per_s"].get<double>(), 0);
}

// Every message names the parameter, both shapes and the file.
TEST_F(Parts, ChangedParametersOfThePipelineAreNamed) {
  const std::string words = "settings.value_head=true ";
  if (!fs::exists(*dir_ / "head")) trains("head", words);
  const std::string file = "head/checkpoints/last/models/extra/model.safetensors";
  for (const std::string command_of : {"train parts.yaml workdir=wider ", "evaluate parts.yaml "}) {
    const Ran wider =
        command(command_of + words + "settings.head_outputs=2 model.path=head/checkpoints/last");
    EXPECT_EQ(wider.code, 3) << wider.said;
    EXPECT_THAT(wider.said, HasSubstr("v_head.weight: (1, 32) in " + file + ", (2, 32) in the job"));
  }
  const Ran reward = command(
      "train parts.yaml workdir=wider settings.scored=true models.reward.path=head/checkpoints/last "
      "settings.head_outputs=2");
  EXPECT_EQ(reward.code, 0) << reward.said;  // extra_params_of() declares the stored shape

  trains("no-head", "train.max_steps=2");
  trains("one-head", words + "train.max_steps=2");
  const std::map<std::string, std::string> changes = {
      {"no-head " + words, "New: v_head.weight. "},
      {"one-head ", "No longer declared: v_head.weight. "},
      {"one-head settings.head_outputs=2 " + words, "Other shapes: v_head.weight: (1, 32) in "}};
  for (const auto& [job, what] : changes) {
    const Ran r = command("train parts.yaml train.max_steps=3 workdir=" + job);
    EXPECT_EQ(r.code, 2) << job << r.said;
    EXPECT_THAT(r.said, HasSubstr(what)) << job;
    EXPECT_THAT(r.said, HasSubstr("start a new run in another workdir with model.path=")) << job;
  }
}

TEST_F(Parts, AnUnknownPartIsAnError) {
  const Ran r = command("validate parts.yaml settings.wrong_part=true models.reference.path=base");
  EXPECT_EQ(r.code, 2) << r.said;
  EXPECT_THAT(r.said,
              HasSubstr("[pipeline] loss() failed: part(\"refrence\"): no parameters have this owner; "
                        "expected one of reference; did you mean reference?"));
}

TEST_F(Parts, WrongSettingsNameTheirPlaceInTheJob) {
  spill(*dir_ / "wrong.yaml", "settings: {value_head: true,\n  head_outputs: 3}\n");
  const std::map<std::string, std::string> wrong = {
      {"settings.head_outputs=3",
       "override 'settings.head_outputs=3': settings.head_outputs: expected one of 1, 2, got the number 3"},
      {"settings.value_haed=true",
       "override 'settings.value_haed=true': unknown key settings.value_haed; did you mean "
       "settings.value_head?"},
      {"wrong.yaml", "wrong.yaml:2:17: settings.head_outputs: expected one of 1, 2, got the number 3"}};
  for (const auto& [words, said] : wrong) {
    const Ran r = command("validate parts.yaml " + words);
    EXPECT_EQ(r.code, 2) << r.said;
    EXPECT_THAT(r.said, HasSubstr(said));
  }
}

TEST_F(Parts, MetricsOfPluginsScoreTheTextsOfAnyPipeline) {
  const std::string job = "parts.yaml plugins=./so/optimizers.so train.max_steps=1 workdir=";
  const std::string measured = " settings.measured=true settings.answers=",
                    selected = " eval.metrics=[same_length]";
  const Ran good = command("train " + job + "scores" + measured + "texts" + selected);
  ASSERT_EQ(good.code, 0) << good.said;
  EXPECT_THAT(slurp(*dir_ / "scores/metrics.jsonl"), HasSubstr("\"eval_same_length\":1"));
  const Ran none = command("train " + job + "scores-none" + measured + "head");
  EXPECT_EQ(none.code, 0) << none.said;
  const Ran numbers = command("train " + job + "scores-numbers" + measured + "head" + selected);
  EXPECT_EQ(numbers.code, 2) << numbers.said;
  EXPECT_THAT(numbers.said,
              HasSubstr("eval.metrics has same_length, a metric of texts: [pipeline] output() gives "));
  for (const std::string command_of : {"validate ", "train ", "evaluate "}) {
    const Ran r = command(command_of + "parts.yaml" + selected +
                          (command_of == "evaluate " ? " workdir=~" : " workdir=scores-refused"));
    EXPECT_EQ(r.code, 2) << r.said;
    EXPECT_THAT(r.said,
                HasSubstr("eval.metrics=same_length (override 'eval.metrics=[same_length]'): this pipeline "
                          "has no metrics to select, because measures_outputs() is false"));
  }
}

// One line for an answer; no member twice.
TEST_F(Parts, AnswersAreLinesOfTheOutput) {
  spill(*dir_ / "asked.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n");
  const std::string words =
      "predict parts.yaml predict.input=asked.jsonl predict.output=answers.jsonl settings.answers=";
  const Ran lines = command(words + "lines");
  ASSERT_EQ(lines.code, 0) << lines.said;
  EXPECT_EQ(slurp(*dir_ / "answers.jsonl"),
            "{\"id\":0,\"prompt\":\"a\",\"head\":1}\n{\"id\":1,\"prompt\":\"b\",\"head\":1}\n");
  const Ran twice = command(words + "prompt predict.overwrite=true");
  EXPECT_EQ(twice.code, 2) << twice.said;
  EXPECT_THAT(
      twice.said,
      HasSubstr("prompt 1 of asked.jsonl and its answer both have a member \"prompt\". Rename the one"));
}

}  // namespace
}  // namespace redco::test
