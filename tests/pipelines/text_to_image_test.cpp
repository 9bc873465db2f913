// Pipeline text_to_image: equal steps and images on all meshes, guidance, hidden captions, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/images/image.h"
#include "ops/create.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"
#include "train/predictor.h"
#include "train/trainer.h"

namespace redco {
namespace {

using namespace redco::testing;
using Json = nlohmann::json;
using test::TempDir;
using ::testing::HasSubstr;

// Five heads: uneven on two and three shards.
const char* kDit =
    R"({"model_type": "dit", "vocab_size": 257, "image_size": 32, "patch_size": 8, "hidden_size": 40,
  "num_hidden_layers": 2, "num_text_layers": 1, "num_attention_heads": 5, "intermediate_size": 48,
  "num_frequencies": 16, "max_position_embeddings": 64, "hidden_dropout_prob": 0.1})";

// A job as job/ makes it from a config.
struct ImageJob {
  explicit ImageJob(const std::string& cache) : cache(cache), model(make_model({kDit, "test"})) {
    settings->diffusion.caption_dropout = 0.3;
    settings->diffusion.num_inference_steps = 4;
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
    job.pipeline_name = "text_to_image";
    job.workdir = workdir;
    job.progress = false;
    redco::train(job);
    std::vector<double> out;
    std::ifstream in(workdir + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);)
      if (const Json j = Json::parse(line); j.contains("loss")) out.push_back(j["loss"]);
    return out;
  }
  // The images for captions.
  std::vector<Image> draw(const std::vector<std::string>& captions, double guidance) {
    settings->diffusion.guidance_scale = guidance;
    std::vector<Example> examples;
    for (const std::string& c : captions) {
      examples.push_back(pipeline->request(Json({{"prompt", c}}).dump(), "line 1").value());
      examples.back().ordinal = static_cast<i64>(examples.size()) - 1;
    }
    std::vector<Image> out;
    for (const std::string& answer : predict(*pipeline, *params, examples, 2))
      out.push_back(decode_image(
          png_of_data_uri(Json::parse(answer).at("prediction").get<std::string>()).value(), "an answer"));
    return out;
  }
  std::string cache;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_text_to_image_pipeline();
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

// The largest pixel_difference of two images in units of a byte.
int pixel_difference(const Image& a, const Image& b) {
  int most = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  return most;
}

const std::vector<std::string> kDrawn = {"a small red circle above a small blue square",
                                         "a large green triangle left of a large red circle", "nothing"};

// Hidden captions, dropout, noise and micro-batches: the first 20 steps and the images are the same on any
// mesh.
TEST(TextToImage, StepsAndImagesDoNotDependOnTheMesh) {
  TempDir dir(TempDir::in_memory);
  std::vector<double> one;
  std::vector<Image> drawn;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{1, 3}})
    on_mesh(mesh, [&](Context& c) {
      ImageJob job(dir / "cache");
      const std::vector<double> losses = job.train(dir / fmt::format("{}x{}", mesh.dp(), mesh.mp()), 20);
      const std::vector<Image> images = job.draw(kDrawn, 3);
      if (c.world().rank() != 0) return;
      ASSERT_EQ(losses.size(), 20u);
      ASSERT_EQ(images.size(), kDrawn.size());
      if (one.empty()) one = losses;
      if (drawn.empty()) drawn = images;
      for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(losses[i], one[i], 1e-4 * one[i]) << i;
      for (std::size_t i = 0; i < images.size(); ++i)
        EXPECT_LE(pixel_difference(images[i], drawn[i]), 1) << i;
      EXPECT_LT(losses[19], 0.8 * losses[0]);
    });
}

TEST(TextToImage, GuidanceOfZeroIgnoresTheCaptionAndNoiseFollowsTheOrdinal) {
  TempDir dir(TempDir::in_memory);
  on_mesh({1, 1}, [&](Context&) {
    ImageJob job(dir / "cache");
    job.train(dir / "run", 20);
    std::vector<std::string> other = kDrawn;
    std::swap(other[0], other[1]);
    const auto without = job.draw(kDrawn, 0), without_other = job.draw(other, 0);
    const auto with = job.draw(kDrawn, 1), with_other = job.draw(other, 1), strong = job.draw(kDrawn, 3);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(pixel_difference(without[i], without_other[i]), 0);
      EXPECT_GT(pixel_difference(with[i], with_other[i]), 0);
      EXPECT_GT(pixel_difference(with[i], without[i]), 0);
      EXPECT_GT(pixel_difference(strong[i], with[i]), 0);
    }
    EXPECT_GT(pixel_difference(without[0], without[1]), 0);  // other noise
    EXPECT_EQ(pixel_difference(strong[2], job.draw(kDrawn, 3)[2]), 0);
  });
}

TEST(TextToImage, EvaluationsDrawTheSameNoise) {
  TempDir dir(TempDir::in_memory);
  on_mesh({2, 1}, [&](Context& c) {
    ImageJob job(dir / "cache");
    job.train(dir / "run", 3);
    const auto data = job.open("builtin:shapes", true);
    std::vector<Example> some;
    for (i64 i = 0; i < 5; ++i) some.push_back(data->get(i));
    const EvalSet set{std::make_shared<ExampleList>(some, "few")};
    std::vector<double> losses;
    Evaluation e;
    for (const i64 step : {7, 9})
      for (const i64 rows : {1, 2}) {
        c.random.step = step;
        e = evaluate_sets(*job.pipeline, *job.params, {set}, rows, 2);
        losses.push_back(e.metrics.at("loss"));
        EXPECT_NEAR(losses.back(), losses[0], 1e-6 * losses[0]) << step << " " << rows;
      }
    if (c.world().rank() != 0) return;
    ASSERT_EQ(e.outputs.at(0).lines.size(), 2u);
    const Json first = Json::parse(e.outputs[0].lines[0]);
    EXPECT_EQ(first["caption"], Json::parse(some[0].text)["caption"]);
    EXPECT_TRUE(png_of_data_uri(first["prediction"].get<std::string>()));
    EXPECT_TRUE(outputs_table(e.outputs[0], 2).at(0) == std::vector<std::string>{"caption"});  // no image
  });
}

// The first token of the memory of a hidden caption is the same for all captions; a shown one's is not.
TEST(TextToImage, AHiddenCaptionHasNoEffect) {
  on_mesh({1, 1}, [](Context&) {
    const auto model = make_model({kDit, "test"});
    ParamTree params = make_params(model->params(), shard_specs(model->params().specs, 1).layouts);
    initialize(params, 1);
    const std::vector<i32> ids = {3, 4, 5, 6, 7, 8}, mask = {0, 0, 0, 0, 0, 0}, shown = {1, 1, 1, 1, 1, 0};
    const auto first = [&](const std::vector<i32>& visible) {
      const Tensor memory = model->encode(
          params, {.input_ids = from_ids({2, 3}, ids), .key_mask = from_ids({2, 3}, visible)}, {});
      const std::vector<double> all = to_values(memory);
      const std::size_t row = all.size() / 2;
      return std::pair(std::vector<double>(all.begin(), all.begin() + 40),
                       std::vector<double>(all.begin() + row, all.begin() + row + 40));
    };
    EXPECT_EQ(first(mask).first, first(mask).second);
    EXPECT_NE(first(shown).first, first(shown).second);
  });
}

// On two model shards: one all-reduce for each attention, cross-attention and MLP in the forward pass, two
// small ones for the time and the modulation, one for the embedding; the stream is never gathered.
TEST(TextToImage, TheForwardPassOnlyReduces) {
  const auto c = Context::meta(Mesh(1, 2), 0);
  const Context::Use use(*c);
  ImageJob job("");
  c->keep_ledger();
  const BatchShape shape{.rows = 2, .mine = {0, 2}, .length = 8};
  job.pipeline->loss(*job.params, job.pipeline->collate({}, shape), {});
  i64 reduced = 0;
  for (const LedgerLine& line : c->ledger()->collectives()) {
    EXPECT_THAT(line.what, HasSubstr("all_reduce")) << line.where;
    reduced += line.count;
  }
  EXPECT_EQ(reduced, 1 + 2 * 1 + 3 * 2 + 2);
}

TEST(TextToImage, BadInputIsNamed) {
  on_mesh({1, 1}, [](Context&) {
    ImageJob job("");
    EXPECT_THAT(error_text<ContentsError>([&] { job.pipeline->request(R"({"text": 1})", "a.jsonl:3"); }),
                HasSubstr("a.jsonl:3: \"text\" is not a text but number"));
    EXPECT_THAT(error_text<ContentsError>([&] {
                  job.pipeline->request(Json({{"caption", std::string(80, 'a')}}).dump(), "a.jsonl:3");
                }),
                AllOf(HasSubstr("a.jsonl:3"), HasSubstr("more than 64 tokens")));
    const auto vit = make_model({R"({"model_type": "vit"})", "test"});
    job.pipeline->model = vit.get();
    EXPECT_THAT(error_text<UsageError>([&] { job.pipeline->params(); }),
                AllOf(HasSubstr("model.arch: dit"), HasSubstr("image-classification")));
  });
}

}  // namespace
}  // namespace redco
