// Pipeline contrastive: both losses against sums in fp64, requests of images and texts, recall, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/grad.h"
#include "base/error.h"
#include "ops/elementwise.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/pipelines.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/evaluate.h"
#include "train/step_embeddings.h"

namespace redco {
namespace {

using namespace redco::testing;
using test::TempDir;
using ::testing::HasSubstr;

constexpr i64 kOutputs = 5;
const char* kImageModel =
    R"({"model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 24, "num_hidden_layers": 1,
        "num_attention_heads": 4, "intermediate_size": 32, "num_labels": 5})";
const char* kTextModel =
    R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 257,
        "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32,
        "max_position_embeddings": 64, "num_labels": 5, "pad_token_id": 256})";

const char* kClip =
    R"({"model_type": "clip", "projection_dim": 5, "logit_scale_init_value": 2,
        "text_config": {"model_type": "clip_text_model", "vocab_size": 258, "hidden_size": 20,
          "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 32, "eos_token_id": 256,
          "max_position_embeddings": 64},
        "vision_config": {"model_type": "clip_vision_model", "image_size": 32, "patch_size": 8,
          "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 32}})";
const char* kSiglip =
    R"({"model_type": "siglip",
        "text_config": {"model_type": "siglip_text_model", "vocab_size": 258, "hidden_size": 20,
          "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 32, "projection_size": 5,
          "pad_token_id": 257, "max_position_embeddings": 80},
        "vision_config": {"model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8,
          "hidden_size": 5, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}})";

// A job as job/ makes it from a config.
struct ContrastiveJob {
  explicit ContrastiveJob(const std::string& loss_type, const char* text_config = kTextModel,
                          const char* image_config = kImageModel)
      : image(make_model({image_config, "test"})), text(make_model({text_config, "test"})) {
    settings->contrastive.loss_type = loss_type;
    settings->contrastive.logit_bias = -2;
    settings->train.global_batch_size = 4;
    pipeline->model = image.get();
    pipeline->models["text"] = {text.get(), tokenizer.get(), false};
    pipeline->settings = settings;
  }
  struct BothTowers {
    const char* config;
  };
  explicit ContrastiveJob(BothTowers one) : image(make_model({one.config, "test"})) {
    settings->train.global_batch_size = 4;
    pipeline->model = image.get();
    pipeline->tokenizer = tokenizer.get();
    pipeline->settings = settings;
  }
  void make() {
    const ModelParams all = pipeline->all_params();
    params.emplace(make_params(all, shard_specs(all.specs, Context::current().mesh().mp()).layouts));
    initialize(*params, 1);
  }
  std::unique_ptr<Model> image, text;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer("bytes");
  std::unique_ptr<Pipeline> pipeline = make_contrastive_pipeline();
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

// The mean loss of a pair, from the definition.
double slow_loss(const std::string& loss_type, const std::vector<double>& u, const std::vector<double>& v,
                 double log_scale, double bias) {
  const i64 n = static_cast<i64>(u.size()) / kOutputs;
  const auto z = [&](i64 i, i64 j) {
    double s = 0;
    for (i64 k = 0; k < kOutputs; ++k) s += u[i * kOutputs + k] * v[j * kOutputs + k];
    return std::exp(log_scale) * s;
  };
  double sum = 0;
  for (i64 i = 0; i < n; ++i) {
    double rows = 0, columns = 0;
    for (i64 j = 0; j < n; ++j) {
      rows += std::exp(z(i, j));
      columns += std::exp(z(j, i));
      if (loss_type == "sigmoid") sum += std::log1p(std::exp((i == j ? -1 : 1) * (z(i, j) + bias)));
    }
    if (loss_type == "softmax") sum += (std::log(rows) + std::log(columns)) / 2 - z(i, i);
  }
  return sum / static_cast<double>(n);
}

TEST(Contrastive, LossesAreThoseOfTheirDefinition) {
  TempDir dir(TempDir::in_memory);
  for (const std::string loss_type : {"softmax", "sigmoid"})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
      on_mesh(mesh, [&](Context& c) {
        ContrastiveJob job(loss_type);
        job.make();
        const auto data = job.pipeline->open(
            {.evaluation = true, .files = {"builtin:shapes"}, .cache = dir / "cache", .max_length = 64});
        const i64 n = 6;
        const BatchShape shape{.rows = n, .mine = shard_range(n, 1, mesh.dp(), c.coord().dp()), .length = 64};
        std::vector<Example> mine;
        for (i64 i = shape.mine.begin; i < shape.mine.end; ++i) mine.push_back(data->get(i));
        const Batch all =
            loss_batch(*job.pipeline, *job.params, job.pipeline->collate(mine, shape), StepContext());
        const std::vector<double> u = to_values(all["image"]), v = to_values(all["text"]);
        double length = 0;
        for (i64 k = 0; k < kOutputs; ++k) length += v[k] * v[k];
        EXPECT_NEAR(length, 1, 1e-6);
        const double log_scale = to_values((*job.params)["logit_scale"])[0];
        EXPECT_NEAR(std::exp(-log_scale), 0.07, 1e-7);
        const double sum = item(job.pipeline->loss(*job.params, all, {}).at(0).sum);
        EXPECT_NEAR(sum / n, slow_loss(loss_type, u, v, log_scale, -2), 3e-6) << loss_type;
      });
}

// A model with both towers has its own scale and bias. The padding of texts that SigLIP attends to depends on
// neither batch nor length; that of CLIP has no effect.
TEST(Contrastive, OneModelMayHaveBothTowers) {
  TempDir dir(TempDir::in_memory);
  for (const bool siglip : {false, true})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
      on_mesh(mesh, [&](Context& c) {
        ContrastiveJob job(ContrastiveJob::BothTowers{siglip ? kSiglip : kClip});
        EXPECT_TRUE(job.pipeline->extra_params().specs.empty());
        EXPECT_TRUE(job.pipeline->predicts_with().empty());
        job.make();
        const auto data = job.pipeline->open(
            {.evaluation = true, .files = {"builtin:shapes"}, .cache = dir / "cache", .max_length = 64});
        const i64 n = 4;
        const BatchShape shape{.rows = n, .mine = shard_range(n, 1, mesh.dp(), c.coord().dp()), .length = 64};
        std::vector<Example> mine;
        for (i64 i = shape.mine.begin; i < shape.mine.end; ++i) mine.push_back(data->get(i));
        const Batch b = job.pipeline->collate(mine, shape);
        EXPECT_EQ(b["input_ids"].size(1), siglip ? 80 : 64);
        const Batch all = loss_batch(*job.pipeline, *job.params, b, StepContext());
        const std::vector<double> u = to_values(all["image"]), v = to_values(all["text"]);
        const double log_scale = to_values((*job.params)["logit_scale"])[0];
        EXPECT_NEAR(log_scale, siglip ? std::log(10) : 2, 1e-6);
        const double sum = item(job.pipeline->loss(*job.params, all, {}).at(0).sum);
        EXPECT_NEAR(sum / n, slow_loss(siglip ? "sigmoid" : "softmax", u, v, log_scale, -10), 1e-5);
        // SigLIP's scale has no limit: published ones are above CLIP's.
        EXPECT_EQ(job.pipeline->after_update(*job.params, {}).size(), siglip ? 0u : 1u);
        if (mesh.ranks() > 1) return;
        const std::vector<Example> one = {mine[0]};
        const nlohmann::json answer =
            nlohmann::json::parse(job.pipeline->predict(*job.params, one, {}).at(0));
        for (i64 k = 0; k < kOutputs; ++k) {
          EXPECT_NEAR(answer.at("text_embedding").at(k), v[k], 2e-6);
          EXPECT_NEAR(answer.at("image_embedding").at(k), u[k], 2e-6);
        }
      });
}

TEST(Contrastive, SettingsThatAModelWithBothTowersHasAreErrors) {
  ContrastiveJob two("softmax"), job(ContrastiveJob::BothTowers{kClip});
  job.pipeline->models["text"] = {two.text.get(), two.tokenizer.get(), false};
  EXPECT_THAT(usage_error([&] { job.pipeline->params(); }), HasSubstr("Remove models.text"));
  ContrastiveJob scaled(ContrastiveJob::BothTowers{kClip});
  scaled.settings->contrastive.temperature = 0.1;
  EXPECT_THAT(usage_error([&] { scaled.pipeline->params(); }), HasSubstr("Remove contrastive.temperature"));
}

// A scale beyond its limit has a gradient, and the limit holds after an update.
TEST(Contrastive, TheScaleIsClampedAfterTheUpdate) {
  on_one_rank([](Context&) {
    ContrastiveJob job("softmax");
    job.make();
    job.params->set("logit_scale", from_values({1}, std::vector<float>{4.75F}));
    const Batch all{.fields = {{"image", from_values({2, 2}, std::vector<float>{1, 0, 0.6F, 0.8F})},
                               {"text", from_values({2, 2}, std::vector<float>{0, 1, 1, 0})}},
                    .weights = {},
                    .shape = {.rows = 2, .mine = {0, 2}}};
    const ParamTree params = job.params->watched();
    const Tensor g = grad(job.pipeline->loss(params, all, {}).at(0).sum, {params["logit_scale"]})[0];
    EXPECT_GT(item(g), 1);
    const auto limited = job.pipeline->after_update(*job.params, {});
    EXPECT_EQ(limited.size(), 1u);
    EXPECT_FLOAT_EQ(static_cast<float>(item(limited.at("logit_scale"))), std::log(100.F));
  });
}

TEST(Contrastive, AnswersAreEmbeddingsAndRecallIsTheirs) {
  TempDir dir(TempDir::in_memory);
  on_mesh({2, 1}, [&](Context&) {
    ContrastiveJob job("softmax");
    job.make();
    const auto data = job.pipeline->open(
        {.evaluation = true, .files = {"builtin:shapes"}, .cache = dir / "cache", .max_length = 64});
    const Evaluation e = evaluate_sets(*job.pipeline, *job.params, {{data}}, 2, 0, false);
    std::vector<std::string> names;
    for (const auto& [name, value] : e.metrics) names.push_back(name);
    EXPECT_THAT(names, ::testing::ElementsAre("image_to_text_recall_1", "image_to_text_recall_5", "loss",
                                              "text_to_image_recall_1", "text_to_image_recall_5"));
    EXPECT_GE(e.metrics.at("image_to_text_recall_5"), e.metrics.at("image_to_text_recall_1"));
  });
}

TEST(Contrastive, OutputsThatAreNotFiniteMakeNoAnswer) {
  on_one_rank([](Context&) {
    ContrastiveJob job(ContrastiveJob::BothTowers{kClip});
    job.make();
    for (size_t i = 0; i < job.params->size(); ++i)
      if (job.params->specs()[i].name == "text_projection.weight")
        job.params->values()[i] = scale(job.params->values()[i], std::numeric_limits<double>::quiet_NaN());
    Example e;
    e.ids["labels"] = {5, 256};
    try {
      job.pipeline->predict(*job.params, std::span(&e, 1), {});
      ADD_FAILURE() << "an answer";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::non_finite) << error.what();
    }
  });
}

TEST(Contrastive, AnAnswerHasTheEmbeddingsOfItsLine) {
  on_one_rank([](Context&) {
    ContrastiveJob job("softmax");
    job.make();
    const auto request = [&](const std::string& json) {
      const std::vector<Example> one = {*job.pipeline->request(json, "line 1")};
      return nlohmann::json::parse(job.pipeline->predict(*job.params, one, {}).at(0));
    };
    const nlohmann::json both =
        request(R"({"image": "drawn:shapes/3", "caption": "a small red circle above a large red square"})");
    EXPECT_EQ(both.at("image_embedding").size(), 5u);
    EXPECT_EQ(both.at("text_embedding").size(), 5u);
    const nlohmann::json text = request(R"({"prompt": "a small red circle above a large red square"})");
    EXPECT_EQ(text.size(), 1u);
    EXPECT_EQ(text.at("text_embedding"), both.at("text_embedding"));
    const nlohmann::json image = request(R"({"image": "drawn:shapes/3"})");
    EXPECT_EQ(image.size(), 1u);
    EXPECT_EQ(image.at("image_embedding"), both.at("image_embedding"));
    EXPECT_THAT(error_text<ContentsError>([&] { job.pipeline->request(R"({"picture": "x"})", "line 1"); }),
                HasSubstr(R"(line 1: neither "image" nor "caption" is a text)"));
  });
}

TEST(Contrastive, BothModelsMustMakeEmbeddingsOfOneSize) {
  on_one_rank([](Context&) {
    const auto error = [](const char* text, const char* image) {
      ContrastiveJob job("softmax", text, image);
      return usage_error([&] { job.pipeline->all_params(); });
    };
    std::string wider = kTextModel;
    wider.replace(wider.find("\"num_labels\": 5"), 15, "\"num_labels\": 8");
    EXPECT_THAT(error(wider.c_str(), kImageModel),
                HasSubstr("models.text is a bert model for sequence-classification with 8 outputs; expected "
                          "sequence-classification with num_labels 5"));
    EXPECT_THAT(error(kTextModel, kTextModel),
                HasSubstr("pipeline: contrastive needs an image classification model"));
    ContrastiveJob alone("softmax");
    alone.pipeline->models.clear();
    EXPECT_THAT(usage_error([&] { alone.pipeline->all_params(); }),
                HasSubstr("this pipeline needs the model 'text'"));
  });
}

}  // namespace
}  // namespace redco
