// Pipelines classification and regression as jobs: equal steps on all meshes, new heads, class names from
// data to checkpoint and back, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "base/error.h"
#include "data/builtin/drawn_images.h"
#include "models/config_tree.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/predictor.h"
#include "train/trainer.h"

namespace redco {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using test::slurp;
using test::spill;
using Words = std::vector<std::string>;

const std::string kFixtures = REDCO_FIXTURES;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Words kText = {"pipeline=classification",    "model.arch=bert",
                     "model.tokenizer=bytes",      "model.hidden_size=24",
                     "model.num_hidden_layers=2",  "model.num_attention_heads=4",
                     "model.intermediate_size=32", "model.max_position_embeddings=96",
                     "train.learning_rate=0.003"};
const Words kImageJob = {"pipeline=classification",    "model.arch=vit",
                         "model.image_size=28",        "model.patch_size=7",
                         "model.num_channels=1",       "model.hidden_size=24",
                         "model.num_hidden_layers=1",  "model.num_attention_heads=4",
                         "model.intermediate_size=32", "data.train=builtin:glyphs"};
const Words kVectors = {"pipeline=regression", "model.arch=mlp", "model.input_size=3",
                        "model.hidden_sizes=[16,16]", "data.train=builtin:function"};
// 20 rows in two micro-batches, the second one uneven; the loss of each step is logged.
const Words kSteps = {"train.max_steps=20", "train.global_batch_size=20", "train.per_device_batch_size=6",
                      "train.logging_steps=1", "eval.sanity_check=false"};

// `redco train` on each rank, from a job to its end.
struct JobRun {
  explicit JobRun(const JobConfig& given) : job(with_data_config(given)) {
    tokenizer = job_tokenizer(job);
    source = training_source(job, tokenizer.get());
    model = make_job_model(job, source);
    pipeline = make_job_pipeline(job, model.get(), tokenizer.get(), {}, source.folder);
    const std::string cache = *job.workdir + "/cache";
    pipeline->train_data = make_training_data(job, *pipeline, source.folder, cache);
    pipeline->eval_sets = make_eval_sets(job, *pipeline, source.folder, cache);
    params = make_job_params(job, source, model.get(), pipeline->params());
  }
  TrainResult train() {
    const BatchSizes sizes = batch_sizes(job, Context::current().mesh().dp());
    return redco::train({.pipeline = pipeline.get(),
                         .params = &params,
                         .train = job.train,
                         .eval = job.eval,
                         .checkpoint = job.checkpoint,
                         .global_batch_size = sizes.global,
                         .per_device_batch_size = sizes.per_device,
                         .pipeline_name = job.pipeline,
                         .workdir = *job.workdir,
                         .adapter_config = job_adapter_config(source, *model),
                         .progress = false});
  }

  JobConfig job;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline;
  ModelSource source;
  ParamTree params;
};

class LabelledJobs : public ::testing::Test {
 protected:
  JobConfig job(const Words& words) {
    ++n_;
    return load_job({}, words + Words{"workdir=" + workdir()});
  }
  std::string workdir() const { return dir_ / std::to_string(n_); }
  std::string file(const std::string& name, const std::string& text) {
    spill(dir_ / name, text);
    return dir_ / name;
  }
  // The losses of all steps, and the metrics of the last evaluation.
  std::pair<std::vector<double>, std::map<std::string, double>> trained(const Words& words,
                                                                        const Mesh& mesh) {
    const JobConfig j = job(words);
    std::map<std::string, double> metrics;
    on_mesh(mesh, [&](Context& c) {
      const TrainResult r = JobRun(j).train();
      if (c.rank() == 0) metrics = r.evaluation;
    });
    std::vector<double> losses;
    std::ifstream in(workdir() + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);)
      if (const Json step = Json::parse(line); step.contains("loss")) losses.push_back(step.at("loss"));
    return {losses, metrics};
  }
  std::string refused(const Words& words) {
    const JobConfig j = job(words);
    return error_text<Error>([&] { on_one_rank([&](Context&) { JobRun(j).train(); }); });
  }

  test::TempDir dir_{test::TempDir::in_memory};
  int n_ = 0;
};

// counts[true class][predicted class] of the whole evaluation, the same on every mesh, and in agreement with
// the accuracy.
TEST_F(LabelledJobs, AnEvaluationSavesItsConfusionMatrix) {
  std::string drawn;
  for (int k = 0; k < 30; ++k)
    drawn += fmt::format("{{\"text\": \"{} {}\", \"label\": \"{}\"}}\n", k % 3 ? "good" : "bad", k,
                         k % 3 ? "pos" : "neg");
  const std::string data = file("drawn.jsonl", drawn);
  Json first;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}}) {
    const auto [losses, metrics] = trained(
        kText + kSteps + Words{"data.train=" + data, "data.eval=" + data, "data.max_length=16"}, mesh);
    const Json j =
        Json::parse(slurp(workdir() + "/eval_outputs/step-00000020.details.json"))["confusion_matrix"];
    EXPECT_EQ(j["classes"], Json({"neg", "pos"}));
    ASSERT_EQ(j["counts"].size(), 2u);
    EXPECT_EQ(j["counts"][0][0].get<int>() + j["counts"][0][1].get<int>(), 10);
    EXPECT_EQ(j["counts"][1][0].get<int>() + j["counts"][1][1].get<int>(), 20);
    EXPECT_EQ((j["counts"][0][0].get<int>() + j["counts"][1][1].get<int>()) / 30.0, metrics.at("accuracy"));
    if (first.is_null()) first = j;
    EXPECT_EQ(j, first);
  }
}

// fp32 sums in another order differ by about 1e-7 of their size, and 20 training steps amplify this little;
// the tolerance is 1e-4.
TEST_F(LabelledJobs, TheSameStepsOnEveryMesh) {
  std::string drawn;
  for (int k = 2000; k < 2020; ++k)
    drawn += fmt::format("{{\"image\": \"drawn:glyphs/{}\", \"label\": \"{}\"}}\n", k, glyph_label(k));
  const std::map<std::string, Words> jobs = {
      {"pairs", kText + Words{"data.train=builtin:statements", "data.eval=builtin:statements",
                              "train.label_smoothing=0.1"}},
      {"images", kImageJob + Words{"data.eval=" + file("drawn.jsonl", drawn), "train.learning_rate=0.003"}},
      {"values", kVectors + Words{"data.eval=builtin:function"}}};
  for (const auto& [name, words] : jobs) {
    SCOPED_TRACE(name);
    const auto [one, metrics] = trained(words + kSteps, {1, 1});
    ASSERT_EQ(one.size(), 20u);
    EXPECT_LT(one.back(), one.front());
    if (name == "values")
      EXPECT_TRUE(metrics.count("pearson") && metrics.count("mse") && metrics.count("spearman"));
    else
      EXPECT_TRUE(metrics.count("accuracy") && metrics.count("f1") && metrics.count("f1_weighted"));
    // The mean squared error is measured twice: as the loss, and from the answers, to 6 decimals or better.
    if (name == "values") EXPECT_NEAR(metrics.at("mse") / metrics.at("loss"), 1, 1e-4);
    for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}}) {
      const auto [other, same] = trained(words + kSteps, mesh);
      ASSERT_EQ(other.size(), 20u);
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(other[i] / one[i], 1, 1e-4) << i;
      for (const auto& [metric, value] : metrics) EXPECT_NEAR(same.at(metric), value, 1e-3) << metric;
    }
  }
}

// Files of images in two folders, with an evaluation whose batches are read ahead, and answers whose images
// are read again.
TEST_F(LabelledJobs, TheSameStepsForAnyNumberOfReaders) {
  const std::string folder = dir_ / "images";
  for (const auto& [label, names] :
       {std::pair{"a", Words{"rgb.png", "rgb.jpg", "full-colour.jpg", "rgba.png"}},
        std::pair{"b", Words{"grey.jpg", "progressive.jpg", "one-bit.png"}}}) {
    std::filesystem::create_directories(folder + "/" + label);
    for (const std::string& name : names)
      std::filesystem::copy(kFixtures + "/images/" + name, folder + "/" + label + "/" + name);
  }
  const Words words = {"pipeline=classification",     "model.arch=vit",
                       "model.image_size=16",         "model.patch_size=8",
                       "model.hidden_size=24",        "model.num_hidden_layers=1",
                       "model.num_attention_heads=4", "model.intermediate_size=32",
                       "data.resize_images=true",     "train.learning_rate=0.003",
                       "data.train=" + folder,        "data.eval=" + folder};
  const auto serial = trained(words + kSteps + Words{"data.n_workers=0"}, {1, 1});
  ASSERT_EQ(serial.first.size(), 20u);
  EXPECT_TRUE(serial.second.count("accuracy") && serial.second.count("loss"));
  for (const char* n : {"1", "3", "~"})
    EXPECT_EQ(trained(words + kSteps + Words{std::string("data.n_workers=") + n}, {1, 1}), serial) << n;
  // The error is that of the first bad image in the order of the step.
  for (const char* name : {"a/7.jpg", "a/8.jpg", "b/7.jpg", "b/8.jpg"})
    spill(folder + "/" + name, "no image");
  const std::string error = refused(words + kSteps + Words{"data.n_workers=0"});
  EXPECT_THAT(error, AllOf(HasSubstr("images/"), HasSubstr("8.jpg"))) << error;
  for (int k = 0; k < 5; ++k) EXPECT_EQ(refused(words + kSteps + Words{"data.n_workers=3"}), error);
}

TEST_F(LabelledJobs, AnswersAreAboutTheImagesOfTheirOwnEvaluationSet) {
  const auto drawn = [&](const std::string& name, int first, int n) {
    std::string lines;
    for (int k = first; k < first + n; ++k)
      lines += fmt::format("{{\"image\": \"drawn:glyphs/{}\", \"label\": \"{}\"}}\n", k, glyph_label(k));
    return file(name, lines);
  };
  const std::string many = drawn("many.jsonl", 2000, 30), few = drawn("few.jsonl", 3000, 4);
  const Words words = kImageJob + kSteps + Words{"train.learning_rate=0.003"};
  const auto alone = trained(words + Words{"data.eval=" + many}, {1, 1}).second;
  const auto both = trained(words + Words{"data.eval_sets=[{name: many, files: " + many +
                                          "}, {name: few, files: " + few + "}]"},
                            {1, 1})
                        .second;
  for (const char* metric : {"loss", "accuracy", "f1_macro"})
    EXPECT_EQ(both.at(std::string("many_") + metric), alone.at(metric)) << metric;
}

TEST_F(LabelledJobs, WarnsOfClassesWithoutATrainingExample) {
  const std::string two = file("two.tsv", "text\tlabel\ngood\tpos\nbad\tneg\n");
  const auto messages = [&](const std::string& names) {
    const JobConfig j = job(kText + Words{"data.train=" + two, "data.label_names=" + names});
    ::testing::internal::CaptureStderr();
    on_one_rank([&](Context&) { JobRun run(j); });
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(messages("[mid, neg, odd, pos]"),
              HasSubstr("2 of 4 classes have no training example: mid, odd. The model can't learn them"));
  EXPECT_THAT(messages("[neg, pos]"), ::testing::Not(HasSubstr("no training example")));
}

TEST_F(LabelledJobs, ClassNamesComeFromTheData) {
  const Words words =
      kText + Words{"data.train=" + file("a.tsv", "text\tlabel\ngood\tpos\nbad\tneg\nso so\tmid\n"),
                    "train.global_batch_size=3", "train.max_steps=1"};
  const JobConfig j = job(words);
  on_one_rank([&](Context&) {
    JobRun run(j);
    EXPECT_EQ(run.model->num_labels(), 3);
    EXPECT_EQ(run.pipeline->train_data->get(0).values.at("targets")[0], 2);
    EXPECT_THAT(run.pipeline->train_data->describe(), HasSubstr("3 texts in 3 classes: mid, neg, pos"));
    run.train();
    const Example e = *run.pipeline->request(R"({"prompt": "good"})", "here");
    const Json answer = Json::parse(predict(*run.pipeline, run.params, std::vector<Example>{e}, 4)[0]);
    double total = 0;
    for (const char* name : {"mid", "neg", "pos"}) total += answer.at("probabilities").at(name).get<double>();
    EXPECT_NEAR(total, 1, 1e-6);
    EXPECT_EQ(answer.at("prediction"), Json({"mid", "neg", "pos"})[answer.at("label_id").get<std::size_t>()]);
    const Json out = Json::parse(run.pipeline->output(run.pipeline->train_data->get(1), answer.dump()));
    EXPECT_EQ(out.at("label"), "neg");
    EXPECT_EQ(out.at("text"), "bad");
  });
  // transformers and an evaluation find the class names in the checkpoint.
  const std::string saved = workdir() + "/checkpoints/last";
  EXPECT_EQ(Json::parse(slurp(saved + "/config.json")).at("id2label"),
            Json({{"0", "mid"}, {"1", "neg"}, {"2", "pos"}}));
  const JobConfig again =
      job({"pipeline=classification", "model.path=" + saved, "model.tokenizer=bytes",
           "data.train=" + file("b.tsv", "text\tlabel\nbad\tneg\n"), "train.global_batch_size=1"});
  on_one_rank(
      [&](Context&) { EXPECT_EQ(JobRun(again).pipeline->train_data->get(0).values.at("targets")[0], 1); });
}

TEST_F(LabelledJobs, WeightsOfAnotherTaskGetANewHead) {
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < 6; ++i) lines += "a few words\t" + std::to_string(i % 3) + "\n";
  const Words words = {"pipeline=classification",
                       "model.path=" + kFixtures + "/bert-mlm",
                       "model.tokenizer=" + kFixtures + "/tokenizers/bert",
                       "data.train=" + file("a.tsv", lines),
                       "train.global_batch_size=6",
                       "train.max_steps=2"};
  const JobConfig j = job(words + Words{"model.vocab_size=540"});
  on_one_rank([&](Context&) {
    const Json config = Json::parse(slurp(kFixtures + "/bert-mlm/config.json"));
    ModelSource source = training_source(j, nullptr);
    EXPECT_TRUE(source.new_head);
    EXPECT_EQ(source.config.tree().json.at("architectures"), Json({"BertForSequenceClassification"}));
    const auto model = make_job_model(j, source);
    const ParamTree params = make_job_params(j, source, model.get(), model->params());
    const auto head = to_values(params["classifier.weight"]);
    EXPECT_NE(head[0], 0);
    // The encoder's weights are those of the folder.
    ModelSource masked{.folder = source.folder, .config = ConfigJson::parse(config.dump(), "config.json")};
    JobConfig lm = j;
    lm.pipeline = "lm";
    const auto base = make_job_model(lm, masked);
    const ParamTree there = make_job_params(lm, masked, base.get(), base->params());
    const std::string name = "bert.encoder.layer.0.output.dense.weight";
    EXPECT_EQ(to_values(params[name]), to_values(there[name]));
  });
  // With adapters, the head is fully trained, and saved with the class names.
  const JobConfig adapted = job(words + Words{"train.lora.rank=2", "train.warmup_steps=0",
                                              "train.learning_rate=0.1", "data.label_names=[x,y,z]"});
  on_one_rank([&](Context&) {
    JobRun run(adapted);
    EXPECT_THAT(run.source.lora->modules_to_save, ElementsAre("bert.pooler.dense", "classifier"));
    const auto before = to_values(run.params["classifier.weight"]);
    run.train();
    const auto after = to_values(run.params["classifier.weight"]);
    EXPECT_NE(after, before);
    const JobConfig saved =
        load_job({}, {"pipeline=classification", "model.path=" + *adapted.workdir + "/checkpoints/last"});
    const ModelSource source = model_source(saved, nullptr);
    const auto model = make_job_model(saved, source);
    EXPECT_EQ(source.config.tree().json.at("id2label"), Json({{"0", "x"}, {"1", "y"}, {"2", "z"}}));
    EXPECT_EQ(to_values(make_job_params(saved, source, model.get(), model->params())["classifier.weight"]),
              after);
  });
  // An existing head is kept, unless the job sets another number of classes.
  for (const bool other : {false, true}) {
    const JobConfig k = job({"pipeline=classification", "model.path=" + kFixtures + "/bert-seqcls",
                             other ? "model.num_labels=5" : "train.seed=1"});
    const ModelSource source = training_source(k, nullptr);
    EXPECT_EQ(source.new_head, other);
    EXPECT_EQ(make_job_model(k, source)->num_labels(), other ? 5 : 3);
  }
  // A preset is only an architecture; its original task has no effect.
  const JobConfig preset =
      job({"pipeline=classification", "model.preset=bert-base-uncased", "model.num_labels=4"});
  const ModelSource source = training_source(preset, nullptr);
  EXPECT_FALSE(source.new_head);
  EXPECT_EQ(make_job_model(preset, source)->num_labels(), 4);
}

TEST_F(LabelledJobs, BadInputIsOneClearError) {
  const Words size = {"train.global_batch_size=2", "train.max_steps=1"};
  const std::string good = file("good.tsv", "text\tlabel\nx\ta\ny\tb\n");
  EXPECT_THAT(refused(kText + size +
                      Words{"data.train=" + good, "data.eval=" + file("e.tsv", "text\tlabel\nx\tc\n")}),
              AllOf(HasSubstr("e.tsv:2: the label 'c' is not one of the 2 classes: a, b")));
  EXPECT_THAT(refused(kText + size + Words{"data.train=" + good, "model.num_labels=3"}),
              AllOf(HasSubstr("2 classes: a, b"), HasSubstr("num_labels=3")));
  EXPECT_THAT(refused(kText + size + Words{"data.train=" + file("one.tsv", "text\tlabel\nx\ta\ny\ta\n")}),
              HasSubstr("only one label, a"));
  EXPECT_THAT(refused(kText + size + Words{"data.train=" + good, "data.label_names=[a]"}),
              HasSubstr("needs a classification model"));
  EXPECT_THAT(refused(kVectors + size +
                      Words{"data.train=" + file("v.jsonl", "{\"features\": [1, 2], \"label\": 1}\n")}),
              HasSubstr("v.jsonl:1: 2 numbers, but the model needs 3"));
  EXPECT_THAT(
      refused(Words{"pipeline=classification", "model.path=" + kFixtures + "/t5", "data.train=" + good} +
              size),
      HasSubstr("pipeline: classification needs a classification model"));
  // Images of another size, and files that are not images.
  EXPECT_THAT(refused(kImageJob + size +
                      Words{"data.train=" + file("broken.jsonl",
                                                 "{\"image\": \"broken.png\", \"label\": \"a\"}\n"
                                                 "{\"image\": \"broken.png\", \"label\": \"b\"}\n")}),
              HasSubstr("broken.png"));
  file("broken.png", std::string("\x89PNG\r\n\x1a\n", 8) + "none");
  EXPECT_THAT(refused(kImageJob + size + Words{"data.train=" + dir_.path() + "/broken.jsonl"}),
              HasSubstr("broken.png"));
  spill(dir_ / "i.idx", std::string("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\3", 16) + "abcdefghijkl");
  spill(dir_ / "l.idx", std::string("\0\0\x08\x01\0\0\0\2", 8) + std::string("\0\1", 2));
  EXPECT_THAT(
      refused(kImageJob + size + Words{"data.train=[" + dir_.path() + "/i.idx," + dir_.path() + "/l.idx]"}),
      AllOf(HasSubstr("i.idx"), HasSubstr("28")));
  EXPECT_THAT(refused(kImageJob + size + Words{"data.train=" + dir_.path() + "/i.idx"}),
              HasSubstr("come in pairs"));
}

}  // namespace
}  // namespace redco
