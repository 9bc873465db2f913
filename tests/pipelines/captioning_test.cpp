// Pipeline captioning: equal steps on all meshes, images from folders and archives, answers, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/builtin/drawn_images.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"
#include "train/trainer.h"

namespace redco {
namespace {

using namespace redco::testing;
using Json = nlohmann::json;
using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::HasSubstr;

const std::string kImages = std::string(REDCO_FIXTURES) + "/images";

const char* kModel =
    R"({"model_type": "vision-encoder-decoder", "decoder_start_token_id": 256, "pad_token_id": 256,
  "encoder": {"model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 24, "num_hidden_layers": 1,
              "num_attention_heads": 4, "intermediate_size": 32, "hidden_dropout_prob": 0.1},
  "decoder": {"model_type": "gpt2", "vocab_size": 257, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 64,
              "is_decoder": true, "add_cross_attention": true}})";

// A job as job/ makes it from a config.
struct Job {
  explicit Job(const std::string& cache) : cache(cache), model(make_model({kModel, "test"})) {
    settings->generation.tokens = {
        .eos = {256}, .pad = 256, .decoder_start = 256, .forced_bos = {}, .forced_eos = {}};
    settings->generation.settings.max_new_tokens = 6;
    settings->eval.n_outputs = 2;
    settings->train.label_smoothing = 0.1;
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    pipeline->settings = settings;
    params.emplace(make_params(model->params(),
                               shard_specs(model->params().specs, Context::current().mesh().mp()).layouts));
    initialize(*params, 1);
  }
  std::shared_ptr<const Dataset> open(const std::string& file, bool evaluation = false) {
    return pipeline->open({.evaluation = evaluation, .files = {file}, .cache = cache, .max_length = 64});
  }
  // The losses of all steps.
  std::vector<double> train(const std::string& workdir, i64 steps) {
    Context::current().world().on_first([&] { std::filesystem::create_directories(workdir); });
    pipeline->train_data = open("builtin:shapes");
    TrainJob job;
    job.pipeline = pipeline.get();
    job.params = &*params;
    job.train.seed = settings->train.seed;
    job.train.label_smoothing = settings->train.label_smoothing;
    job.train.global_batch_size = settings->train.global_batch_size;
    job.train.max_steps = steps;
    job.train.learning_rate = 3e-3;
    job.train.logging_steps = 1;
    job.eval.sanity_check = false;
    job.global_batch_size = 6;
    job.per_device_batch_size = 2;  // accumulated, differently on each mesh
    job.pipeline_name = "captioning";
    job.workdir = workdir;
    job.progress = false;
    redco::train(job);
    std::vector<double> out;
    std::ifstream in(workdir + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);)
      if (const Json j = Json::parse(line); j.contains("loss")) out.push_back(j["loss"]);
    return out;
  }
  std::string cache;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_captioning_pipeline();
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

// Dropout, label smoothing, micro-batches: the first 20 steps are the same on any mesh.
TEST(Captioning, StepsDoNotDependOnTheMesh) {
  TempDir dir(TempDir::in_memory);
  std::vector<double> one;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context& c) {
      Job job(dir / "cache");
      const std::vector<double> losses = job.train(dir / fmt::format("{}x{}", mesh.dp(), mesh.mp()), 20);
      if (c.world().rank() != 0) return;
      ASSERT_EQ(losses.size(), 20u);
      if (one.empty()) one = losses;
      for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(losses[i], one[i], 1e-4 * one[i]) << i;
      EXPECT_LT(losses[19], 0.8 * losses[0]);
    });
}

TEST(Captioning, EvaluationsMeasureAnswers) {
  TempDir dir(TempDir::in_memory);
  on_mesh({2, 1}, [&](Context& c) {
    Job job(dir / "cache");
    const auto data = job.open("builtin:shapes", true);
    EXPECT_THAT(data->describe(), HasSubstr("200 images with captions"));
    std::vector<Example> some;
    for (i64 i = 0; i < 3; ++i) some.push_back(data->get(i));
    EXPECT_EQ(some[1].values.at("pixels").size(), 3u * 32 * 32);
    EXPECT_EQ(some[1].ids.at("labels").back(), 256);
    const Evaluation e =
        evaluate_sets(*job.pipeline, *job.params, {{std::make_shared<ExampleList>(some, "few")}}, 2, 2);
    std::vector<std::string> names;
    for (const auto& [name, value] : e.metrics) names.push_back(name);
    EXPECT_THAT(names, ::testing::ElementsAre("bleu", "chrf", "exact_match", "loss", "rouge1", "rouge2",
                                              "rougeL", "rougeLsum"));
    if (c.world().rank() != 0) return;
    const Json first = Json::parse(e.outputs.at(0).lines.at(0));
    EXPECT_EQ(first["image"], "drawn:shapes/4000");
    EXPECT_EQ(first["reference"], shapes_caption(4000));
    EXPECT_TRUE(first["prediction"].is_string());
  });
}

TEST(Captioning, ImagesAreReadFromTheFolderInTheJob) {
  TempDir dir(TempDir::in_memory);
  spill(dir / "a.tsv", "caption\timage\nsome noise\t" + kImages + "/rgb.png\n");
  spill(dir / "b.jsonl", R"({"image": "rgb.png", "caption": "some noise", "id": 7})"
                         "\n");
  on_one_rank([&](Context&) {
    Job job(dir / "cache");
    job.settings->data.resize_images = true;
    const Example by_path = job.open(dir / "a.tsv")->get(0);
    job.settings->data.images = kImages;
    const Example by_name = job.open(dir / "b.jsonl")->get(0);
    EXPECT_EQ(by_name.values, by_path.values);
    EXPECT_EQ(by_name.id, "7");
    const auto asked = job.pipeline->request(R"({"prompt": "rgb.png"})", "x:1");
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->values, by_path.values);
  });
}

// A header of 512 bytes before each file, which fills blocks of 512 bytes.
std::string tar_member(const std::string& name, const std::string& bytes) {
  std::string head(512, '\0');
  head.replace(0, name.size(), name);
  const std::string size = fmt::format("{:011o}", bytes.size());
  head.replace(124, size.size(), size);
  head[156] = '0';
  head.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  head.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return head + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

TEST(Captioning, WebdatasetsHaveImagesAndTexts) {
  TempDir dir(TempDir::in_memory);
  spill(dir / "x.tar", tar_member("1.png", slurp(kImages + "/rgb.png")) + tar_member("1.txt", "some noise") +
                           std::string(1024, '\0'));
  spill(dir / "a.tsv", "caption\timage\nsome noise\t" + kImages + "/rgb.png\n");
  on_one_rank([&](Context&) {
    Job job(dir / "cache");
    job.settings->data.resize_images = true;
    const Example by_path = job.open(dir / "a.tsv")->get(0);
    const Example packed = job.open(dir / "x.tar")->get(0);
    EXPECT_EQ(packed.values, by_path.values);
    EXPECT_EQ(packed.ids, by_path.ids);
  });
}

TEST(Captioning, BadInputsAreErrors) {
  TempDir dir(TempDir::in_memory);
  const auto lines = [&](const std::string& text) {
    spill(dir / "x.jsonl", text + "\n");
    return dir / "x.jsonl";
  };
  on_one_rank([&](Context&) {
    Job job(dir / "cache");
    const auto refused = [&](const std::string& text) {
      return error_text<ContentsError>([&] { job.open(lines(text))->get(0); });
    };
    EXPECT_THAT(refused(R"({"image": "a.png", "caption": " "})"),
                HasSubstr("x.jsonl:1: the caption is empty"));
    EXPECT_THAT(refused(R"({"image": "a.png"})"), HasSubstr("x.jsonl:1: no \"caption\""));
    EXPECT_THAT(refused(R"({"picture": "a.png", "caption": "b"})"), HasSubstr("x.jsonl:1: no \"image\""));
    EXPECT_THAT(refused(R"({"image": "a.png", "caption": "b"})"),
                ::testing::AllOf(HasSubstr("a.png: the image file does not exist"), HasSubstr("x.jsonl:1")));
    const std::string png = slurp(kImages + "/rgb.png");
    spill(dir / "cut.png", png.substr(0, 200));
    EXPECT_THAT(refused(R"({"image": "cut.png", "caption": "b"})"),
                ::testing::AllOf(HasSubstr("cut.png: a broken PNG"), HasSubstr("x.jsonl:1")));
    spill(dir / "small.png", png);
    EXPECT_THAT(refused(R"({"image": "small.png", "caption": "b"})"),
                HasSubstr("small.png: the image is 13 pixels wide and 9 high; expected 32 wide and 32 high"));
    EXPECT_THAT(error_text<ContentsError>([&] { job.pipeline->request(R"({"image": "none.png"})", "in:3"); }),
                HasSubstr("in:3: [data] ./none.png: the image file does not exist"));
    const auto bert = make_model({slurp(std::string(REDCO_FIXTURES) + "/bert-mlm/config.json"), "bert"});
    job.pipeline->model = bert.get();
    EXPECT_THAT(usage_error([&] { job.pipeline->params(); }), HasSubstr("bert is a masked-lm model"));
  });
}

}  // namespace
}  // namespace redco
