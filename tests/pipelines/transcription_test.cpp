// Pipeline transcription: answers, languages, times and windows of transformers; equal steps on all meshes;
// data; errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ckpt/model_files.h"
#include "ckpt/params_io.h"
#include "data/audio/decode_audio.h"
#include "data/images/image_text.h"
#include "pipelines/pipelines.h"
#include "pipelines/speech_windows.h"
#include "pipelines/text_generation.h"
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

const std::string kWhisper = std::string(REDCO_FIXTURES) + "/whisper";

// A job as job/ makes it from a config. folder "": a new model with the tokenizer `bytes`.
struct SpeechJob {
  explicit SpeechJob(const std::string& cache, const std::string& folder = kWhisper)
      : cache(cache),
        model(make_model({folder.empty() ? kNew : slurp(folder + "/config.json"), "test"})),
        tokenizer(load_tokenizer(folder.empty() ? "bytes" : folder)) {
    settings->weights_folder = folder;
    TextGeneration& g = settings->generation;
    g.settings.max_new_tokens = 20;
    if (folder.empty())
      g.tokens = {.eos = {256}, .pad = 256, .decoder_start = 256};
    else
      g.tokens = generation_tokens(folder, model->config(), tokenizer.get());
    settings->eval.n_outputs = 2;
    pipeline->model = model.get();
    pipeline->tokenizer = tokenizer.get();
    pipeline->settings = settings;
    params.emplace(make_params(model->params(),
                               shard_specs(model->params().specs, Context::current().mesh().mp()).layouts));
    if (folder.empty())
      initialize(*params, 1);
    else
      ckpt::load_params(
          *params, ckpt::ModelFiles::open(folder),
          [&](const std::string& name) { return model->canonical_name(name); }, model->params().aliases);
  }
  std::shared_ptr<const Dataset> open(const std::string& file) {
    return pipeline->open({.files = {file}, .cache = cache, .max_length = 40});
  }
  Json predict(const std::string& audio) {
    const Example e = *pipeline->request(Json({{"audio", kWhisper + "/" + audio}}).dump(), "in:1");
    return Json::parse(pipeline->predict(*params, std::span(&e, 1), {})[0]);
  }
  static constexpr const char* kNew =
      R"({"model_type": "whisper", "vocab_size": 258, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
          "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
          "num_mel_bins": 10, "max_source_positions": 50, "max_target_positions": 16, "dropout": 0.1,
          "decoder_start_token_id": 256, "pad_token_id": 257, "eos_token_id": 256})";
  std::string cache;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Pipeline> pipeline = make_transcription_pipeline();
  std::shared_ptr<PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::optional<ParamTree> params;
};

class Transcribes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reads_audio()) GTEST_SKIP() << "built without libraries for sound";
  }
};

// Suppressed tokens, detected languages, times, and a recording of several windows.
TEST_F(Transcribes, AsTransformers) {
  const Json cases = Json::parse(slurp(kWhisper + "/speech.json"))["generated"];
  ASSERT_EQ(cases.size(), 5u);
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context& c) {
      for (const Json& expected : cases) {
        SpeechJob job("");
        TranscriptionSettings& s = job.settings->transcription;
        if (expected["language"].is_string()) s.language = expected["language"];
        s.task = expected["task"];
        s.timestamps = expected.contains("return_timestamps");
        for (i32 id = 291; id < 342 && !s.timestamps; ++id)  // times, which a random model gives anyway
          job.settings->generation.tokens.suppress.push_back(id);
        const Json got = job.predict(expected["audio"]);
        if (c.world().rank() != 0) continue;
        SCOPED_TRACE(expected.dump());
        EXPECT_EQ(got["language"], expected.value("detected", expected["language"]));
        std::string text;
        for (const Json& segment : expected["segments"]) text += segment["text"].get<std::string>();
        EXPECT_EQ(got["prediction"], text);
        if (!s.timestamps) continue;
        ASSERT_EQ(got["segments"].size(), expected["segments"].size()) << got;
        for (size_t i = 0; i < got["segments"].size(); ++i) {
          const Json &a = got["segments"][i], &b = expected["segments"][i];
          EXPECT_NEAR(a["start"].get<double>(), b["start"].get<double>(), 1e-3) << i;
          EXPECT_NEAR(a["end"].get<double>(), b["end"].get<double>(), 1e-3) << i;
          EXPECT_EQ(a["text"], b["text"]) << i;
        }
      }
    });
}

// The first 20 steps, with dropout, are the same on any mesh, and learn.
TEST_F(Transcribes, StepsDoNotDependOnTheMesh) {
  TempDir dir(TempDir::in_memory);
  std::vector<double> one;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
    on_mesh(mesh, [&](Context& c) {
      SpeechJob job(dir / "cache", "");
      const std::string workdir = dir / fmt::format("{}x{}", mesh.dp(), mesh.mp());
      Context::current().world().on_first([&] { std::filesystem::create_directories(workdir); });
      job.pipeline->train_data = job.open("builtin:tones");
      TrainJob t;
      t.pipeline = job.pipeline.get();
      t.params = &*job.params;
      t.train.max_steps = 20;
      t.train.learning_rate = 1e-2;
      t.train.logging_steps = 1;
      t.eval.sanity_check = false;
      t.global_batch_size = 6;
      t.per_device_batch_size = 3;
      t.pipeline_name = "transcription";
      t.workdir = workdir;
      t.progress = false;
      redco::train(t);
      if (c.world().rank() != 0) return;
      std::vector<double> losses;
      std::ifstream in(workdir + "/metrics.jsonl");
      for (std::string line; std::getline(in, line);)
        if (const Json j = Json::parse(line); j.contains("loss")) losses.push_back(j["loss"]);
      ASSERT_EQ(losses.size(), 20u);
      if (one.empty()) one = losses;
      for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(losses[i], one[i], 1e-4 * one[i]) << i;
      EXPECT_LT(losses[19], 0.6 * losses[0]);
    });
}

TEST_F(Transcribes, TargetsHaveLanguageAndTask) {
  TempDir dir(TempDir::in_memory);
  spill(dir / "metadata.csv", "file_name,text\n" + kWhisper + "/short.wav,The man\n");
  const std::string uri = media_text_of(slurp(kWhisper + "/short.wav")).value();
  spill(dir / "b.jsonl", Json({{"audio", uri}, {"text", "The man"}}).dump() + "\n");
  on_one_rank([&](Context&) {
    SpeechJob job(dir / "cache");
    job.settings->transcription.language = "de";
    const auto data = job.open(dir / "metadata.csv");
    EXPECT_THAT(data->describe(), HasSubstr("1 recording with texts of"));
    const Example e = data->get(0);
    const auto& labels = e.ids.at("labels");
    const auto id = [&](const char* token) { return *job.tokenizer->token_to_id(token); };
    ASSERT_GE(labels.size(), 5u);
    EXPECT_EQ(std::vector<i32>(labels.begin(), labels.begin() + 3),
              (std::vector<i32>{id("<|de|>"), id("<|transcribe|>"), id("<|notimestamps|>")}));
    EXPECT_EQ(labels.back(), id("<|endoftext|>"));
    EXPECT_EQ(job.tokenizer->decode(labels, true), "The man");
    EXPECT_EQ(e.values.at("features").size(), 12u * 100);
    EXPECT_EQ(job.open(dir / "b.jsonl")->get(0).values, e.values);
    const Evaluation evaluation = evaluate_sets(*job.pipeline, *job.params, {{data}}, 2, 2);
    std::vector<std::string> names;
    for (const auto& [name, value] : evaluation.metrics) names.push_back(name);
    EXPECT_THAT(names, ::testing::ElementsAre("cer", "exact_match", "loss", "wer"));
    const Json line = Json::parse(evaluation.outputs.at(0).lines.at(0));
    EXPECT_EQ(line["reference"], "The man");
    EXPECT_EQ(line["audio"], kWhisper + "/short.wav");
  });
}

// Common Voice's columns; "zh-CN" and the like name a language and its region.
TEST_F(Transcribes, RecordsMayHaveTheirOwnLanguages) {
  TempDir dir(TempDir::in_memory);
  const std::string path = kWhisper + "/short.wav";
  spill(dir / "cv.tsv", "path\tsentence\tlocale\n" + path + "\tThe man\tfr\n" + path + "\tThe man\tde-AT\n");
  on_one_rank([&](Context&) {
    SpeechJob job(dir / "cache");
    job.settings->data.fields.audio = "path";
    job.settings->data.fields.text = "sentence";
    const auto data = job.open(dir / "cv.tsv");
    const auto id = [&](const char* token) { return *job.tokenizer->token_to_id(token); };
    EXPECT_EQ(data->get(0).ids.at("labels").at(0), id("<|fr|>"));
    EXPECT_EQ(data->get(1).ids.at("labels").at(0), id("<|de|>"));
    EXPECT_EQ(data->get(1).ids.at("labels").at(1), id("<|transcribe|>"));
    // An evaluation transcribes each in its language, and so does a line of predict.input.
    const Evaluation evaluation = evaluate_sets(*job.pipeline, *job.params, {{data}}, 2, 2);
    EXPECT_EQ(Json::parse(evaluation.outputs.at(0).lines.at(0))["language"], "fr");
    EXPECT_EQ(Json::parse(evaluation.outputs.at(0).lines.at(1))["language"], "de");
    const Example asked = *job.pipeline->request(Json({{"path", path}, {"language", "fr"}}).dump(), "in:1");
    EXPECT_EQ(Json::parse(job.pipeline->predict(*job.params, std::span(&asked, 1), {})[0])["language"], "fr");
    job.settings->transcription.language = "fr";
    EXPECT_THAT(error_text<ContentsError>([&] { job.open(dir / "cv.tsv"); }),
                HasSubstr("cv.tsv:3: the language is de-AT, but transcription.language is fr. Remove"));
    job.settings->transcription.language.reset();
    spill(dir / "x.tsv", "path\tsentence\tlocale\n" + path + "\tThe man\txx\n");
    EXPECT_THAT(error_text<ContentsError>([&] { job.open(dir / "x.tsv"); }),
                HasSubstr("x.tsv:2: the language xx is not one of the tokenizer's 3"));
  });
}

TEST_F(Transcribes, BadInputsAreErrors) {
  TempDir dir(TempDir::in_memory);
  on_one_rank([&](Context&) {
    const auto refused = [&](const std::string& line, bool cut = false) {
      SpeechJob job(dir / "cache");
      job.settings->transcription.language = "en";
      job.settings->transcription.cut_long = cut;
      spill(dir / "x.jsonl", line + "\n");
      return error_text<ContentsError>([&] { job.open(dir / "x.jsonl")->get(0); });
    };
    EXPECT_THAT(refused(R"({"text": "a"})"), HasSubstr("x.jsonl:1: no \"audio\""));
    EXPECT_THAT(refused(R"({"audio": "a.wav"})"), HasSubstr("x.jsonl:1: no \"text\""));
    EXPECT_THAT(refused(R"({"audio": "a.wav", "text": "a"})"),
                ::testing::AllOf(HasSubstr("a.wav: the audio file does not exist"), HasSubstr("x.jsonl:1")));
    const std::string line = Json({{"audio", kWhisper + "/long.flac"}, {"text", "a"}}).dump();
    EXPECT_THAT(refused(line),
                HasSubstr("long.flac: the recording is longer than the model's window of 1 seconds"));
    spill(dir / "y.jsonl", line + "\n");
    EXPECT_THAT(error_text<ContentsError>([&] { SpeechJob(dir / "cache").open(dir / "y.jsonl"); }),
                HasSubstr("y.jsonl:1: no language: the model has 3 languages"));
    SpeechJob job(dir / "cache");
    job.settings->transcription.language = "xx";
    EXPECT_THAT(usage_error([&] { job.open(dir / "y.jsonl"); }), HasSubstr("languages: en, de, fr"));
    job.settings->transcription.language = "en";
    job.settings->transcription.cut_long = true;
    EXPECT_EQ(job.open(dir / "y.jsonl")->get(0).values.at("features").size(), 1200u);
    job.settings->generation.settings.num_beams = 2;
    EXPECT_THAT(usage_error([&] { job.predict("long.flac"); }), HasSubstr("need num_beams: 1"));
    EXPECT_THAT(error_text<ContentsError>([&] { job.pipeline->request(R"({"audio": "none.wav"})", "in:3"); }),
                HasSubstr("in:3: [data] ./none.wav: the audio file does not exist"));
    const auto bert = make_model({slurp(std::string(REDCO_FIXTURES) + "/bert-mlm/config.json"), "bert"});
    job.pipeline->model = bert.get();
    EXPECT_THAT(usage_error([&] { job.pipeline->params(); }), HasSubstr("bert is a masked-lm model"));
  });
}

}  // namespace
}  // namespace redco
