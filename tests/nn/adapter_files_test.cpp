// PEFT folders: reading, refusing, writing them; a job that trains, resumes, loads and merges adapters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "assembly/job_model.h"
#include "assembly/trained_job.h"
#include "base/file.h"
#include "ckpt/peft.h"
#include "ckpt/safetensors.h"
#include "commands/merge.h"
#include "commands/train.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "verify/verify.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

std::string fixture(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }

ckpt::PeftAdapter parsed(const std::string& json) { return ckpt::parse_adapter(json, "a.json"); }

TEST(AdapterConfig, ReadsTheFilesOfPeft) {
  const ckpt::PeftAdapter a = ckpt::read_adapter(fixture("lora-llama"));
  EXPECT_EQ(a.base, "../llama");
  EXPECT_EQ(a.task_type, "CAUSAL_LM");
  EXPECT_EQ(a.config.rank, 4);
  EXPECT_EQ(a.config.alpha, 6);
  EXPECT_TRUE(a.config.use_rslora);
  EXPECT_THAT(a.config.modules_to_save, ElementsAre("norm"));
  EXPECT_EQ(a.config.rank_of("model.layers.0.mlp.down_proj"), 2);
  EXPECT_THAT(a.config.target_regex, HasSubstr("qkvo"));
  EXPECT_EQ(ckpt::base_folder(a, ""), fixture("lora-llama") + "/../llama");
  const ckpt::PeftAdapter least = parsed(R"({"peft_type": "LORA"})");
  EXPECT_EQ(least.config.rank, 8);
  EXPECT_EQ(least.config.alpha, 8);
  EXPECT_EQ(parsed(R"({"peft_type": "LORA", "target_modules": "all-linear"})").config.target_modules,
            std::vector<std::string>{kAllLinear});
}

TEST(AdapterConfig, UnsupportedOptionsAreErrors) {
  const auto why = [](const std::string& more) {
    return error_text<ContentsError>([&] { parsed(R"({"peft_type": "LORA")" + more + "}"); });
  };
  EXPECT_EQ(why(R"(, "layers_to_transform": [0], "megatron_core": "megatron.core", "made_up": null)"),
            "no error");
  // Settings of an initialization: PEFT writes them with the value that uses them.
  EXPECT_EQ(why(R"(, "init_lora_weights": "eva", "eva_config": {"rho": 2.0})"), "no error");
  EXPECT_EQ(why(R"(, "init_lora_weights": true, "loftq_config": {"loftq_bits": 4})"), "no error");
  EXPECT_THAT(why(R"(, "init_lora_weights": "loftq", "loftq_config": {"loftq_bits": 4})"),
              HasSubstr("change the base"));
  EXPECT_THAT(why(R"(, "init_lora_weights": "corda", "corda_config": {"corda_method": "ipm"})"),
              HasSubstr("change the base"));
  EXPECT_THAT(why(R"(, "init_lora_weights": "lora_ga", "lora_ga_config": {"direction": "ArB2r"})"),
              HasSubstr("change the base"));
  EXPECT_THAT(why(R"(, "use_dora": true)"), HasSubstr("DoRA"));
  EXPECT_THAT(why(R"(, "bias": "all")"), HasSubstr("a.json: bias=\"all\": expected none"));
  EXPECT_THAT(why(R"(, "init_lora_weights": "pissa")"), HasSubstr("change the base"));
  EXPECT_THAT(why(R"(, "layer_replication": [[0, 4], [2, 5]])"), HasSubstr("not supported"));
  EXPECT_THAT(why(R"(, "target_parameters": ["experts"])"), HasSubstr("is not supported"));
  // PEFT has no such key, so it changes nothing.
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(why(R"(, "made_up": 3)"), "no error");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("PEFT has no such keys for LoRA: made_up"));
  EXPECT_THAT(why(R"(, "r": 0)"), HasSubstr(">= 1"));
  EXPECT_THAT(why(R"(, "r": "8")"), HasSubstr(">= 1"));
  EXPECT_THAT(why(R"(, "r": 99999999999)"), HasSubstr(">= 1"));
  EXPECT_THAT(why(R"(, "lora_dropout": 1.5)"), HasSubstr("0 to 1"));
  EXPECT_THAT(why(R"(, "rank_pattern": {"(": 3})"), HasSubstr("regular expressions"));
  EXPECT_THAT(why(R"(, "rank_pattern": {"q": -3})"), HasSubstr(">= 1"));
  EXPECT_THAT(why(R"(, "target_modules": [3])"), HasSubstr("a list of texts"));
  EXPECT_THAT(error_text<ContentsError>([] { parsed(R"({"peft_type": "IA3"})"); }), HasSubstr("IA3"));
  EXPECT_THAT(error_text<ContentsError>([] { parsed("[]"); }), HasSubstr("an object"));
}

TEST(AdapterConfig, AnyBytesAreReadOrAreAContentsError) {
  const std::string good = slurp(fixture("lora-llama") + "/adapter_config.json");
  redco::testing::Random random(7);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (u64 n = 1 + random.below(4); n > 0; --n) {
      const size_t at = random.below(static_cast<i64>(bytes.size()));
      switch (random.below(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(40));
          break;
        default:
          bytes.insert(at, bytes.substr(random.below(static_cast<i64>(bytes.size())), 12));
      }
    }
    try {
      const ckpt::PeftAdapter a = parsed(bytes);
      EXPECT_GE(a.config.rank, 1);
      ++read;
    } catch (const ContentsError&) {
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_LT(read, 2900);
}

// Loads the fixture's adapter with a model, which may be another one, or with a changed config.
std::string beside(const std::string& base, const std::function<void(nlohmann::json&)>& change = {}) {
  TempDir dir;
  fs::copy(fixture("lora-gpt2"), dir.path(), fs::copy_options::recursive);
  if (change) {
    auto j = nlohmann::json::parse(slurp(dir / "adapter_config.json"));
    change(j);
    spill(dir / "adapter_config.json", j.dump());
  }
  JobConfig job = load_job({}, {});
  job.model.path = fixture(base);
  job.model.adapter = dir.path();
  try {
    const auto model = make_job_model(job, model_source(job, nullptr));
    return fmt::format("{} adapters",
                       std::count_if(model->params().specs.begin(), model->params().specs.end(),
                                     [](const ParamSpec& s) { return s.adapter.dim == 1; }));
  } catch (const ContentsError& e) {
    return e.what();
  }
}

TEST(Adapter, AnAdapterOfAnotherModelIsAnError) {
  EXPECT_EQ(beside("gpt2"), "8 adapters");
  EXPECT_THAT(beside("llama"), HasSubstr("no linear layer"));
  EXPECT_THAT(beside("gpt2-variants"), HasSubstr("made for another model"));
  EXPECT_THAT(beside("gpt2", [](auto& j) { j["r"] = 5; }),
              HasSubstr("has rank 3, but adapter_config.json says 5"));
  // A module in modules_to_save that is missing in the file is found when the values are read.
  EXPECT_EQ(beside("gpt2", [](auto& j) { j["target_modules"] = nullptr; }), "8 adapters");
}

TEST(Adapter, AMissingBaseModelAsksForModelPath) {
  JobConfig job = load_job({}, {});
  job.model.path = fixture("lora-gptj");
  const ModelSource s = model_source(job, nullptr);
  EXPECT_EQ(s.adapter, fixture("lora-gptj"));
  EXPECT_EQ(s.folder, fixture("lora-gptj") + "/../gptj");
  TempDir dir;
  fs::copy(fixture("lora-gptj"), dir.path(), fs::copy_options::recursive);
  job.model.path = dir.path();
  EXPECT_THAT(usage_error([&] { model_source(job, nullptr); }),
              HasSubstr("the folder of the base model '../gptj' does not exist; give model.path"));
  job.model.path = fixture("lora-gptj");
  job.model.adapter = dir.path();
  EXPECT_THAT(usage_error([&] { model_source(job, nullptr); }), HasSubstr("itself an adapter's folder"));
}

// The exit code of f and the errors that it prints.
std::string said(const std::function<int()>& f) {
  ::testing::internal::CaptureStderr();
  const int code = f();
  return fmt::format("{}: {}", code, ::testing::internal::GetCapturedStderr());
}

// --- Jobs ---

struct Job {
  TempDir dir;
  std::string text = dir / "text.txt";
  std::vector<std::string> keys;
  Job() {
    std::string words;
    redco::testing::Random random(3);
    for (int i = 0; i < 1200; ++i) words += static_cast<char>('a' + random.below(20));
    spill(text, words);
    keys = {"model.path=" + fixture("gpt2"),
            "model.tokenizer=bytes",
            "data.train=[" + text + "]",
            "data.max_length=16",
            "train.global_batch_size=4",
            "train.max_steps=4",
            "train.learning_rate=0.01",
            "train.schedule=constant",
            "train.warmup_steps=0",
            "checkpoint.every_n_steps=2",
            "checkpoint.keep_last=9",
            "train.lora.rank=2",
            "train.lora.alpha=4",
            "train.lora.dropout=0.1",
            "train.lora.target_modules=[c_attn, mlp.c_proj]"};
  }
  JobConfig config(const std::string& workdir, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = keys;
    all.push_back("workdir=" + (dir / workdir));
    all.insert(all.end(), more.begin(), more.end());
    return load_job({}, all);
  }
  int train(const std::string& workdir, const std::vector<std::string>& more = {}) const {
    const auto checked = [&] {
      const JobConfig job = config(workdir, more);
      check_job(job, JobUse::train);
      return job;
    };
    return run_train({.job = checked, .program = {}}, {});
  }
  std::string step(const std::string& workdir, int n) const {
    return dir / (workdir + fmt::format("/checkpoints/step-{:08}/", n));
  }
};

TEST(AdapterJob, TrainingResumingLoadingAndMergingAgree) {
  const Job job;
  ASSERT_EQ(job.train("whole"), 0);
  const std::string last = job.step("whole", 4);
  // The parts of a fused projection share one draw of dropout.
  EXPECT_THAT(slurp(job.step("whole", 4) + "../../log.txt"),
              ::testing::Not(HasSubstr("the same random numbers twice")));

  // The checkpoint has only the trained parameters.
  EXPECT_FALSE(exists(last + "model.safetensors"));
  EXPECT_FALSE(exists(last + "config.json"));
  EXPECT_TRUE(exists(last + "tokenizer.json"));
  const auto j = nlohmann::json::parse(slurp(last + "adapter_config.json"));
  EXPECT_EQ(j["peft_type"], "LORA");
  EXPECT_EQ(j["r"], 2);
  EXPECT_EQ(j["lora_alpha"], 4);
  EXPECT_EQ(j["fan_in_fan_out"], true);
  EXPECT_EQ(j["target_modules"],
            (std::vector<std::string>{"transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_proj",
                                      "transformer.h.1.attn.c_attn", "transformer.h.1.mlp.c_proj"}));
  EXPECT_EQ(fs::weakly_canonical(j["base_model_name_or_path"].get<std::string>()),
            fs::weakly_canonical(fixture("gpt2")));
  std::vector<std::string> names;
  const auto saved = ckpt::SafetensorsFile::open(last + "adapter_model.safetensors");
  for (const auto& e : saved.entries()) names.push_back(e.name);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_THAT(names, ::testing::Contains("base_model.model.transformer.h.1.mlp.c_proj.lora_B.weight"));
  EXPECT_EQ(ckpt::SafetensorsFile::open(last + "training/optimizer.safetensors").entries().size(), 16u);

  // A run resumed from step 2 has the same bytes.
  ASSERT_EQ(job.train("resumed", {"checkpoint.resume=" + job.step("whole", 2)}), 0);
  for (const char* file :
       {"adapter_model.safetensors", "adapter_config.json", "training/optimizer.safetensors"})
    EXPECT_EQ(slurp(job.step("resumed", 4) + file), slurp(last + file)) << file;
  EXPECT_NE(slurp(last + "adapter_model.safetensors"),
            slurp(job.step("whole", 2) + "adapter_model.safetensors"));
  // A job with other adapters, or none, cannot resume this run.
  const std::string resume = "checkpoint.resume=" + job.step("whole", 2);
  EXPECT_THAT(said([&] {
                return job.train("other", {resume, "train.lora.alpha=5"});
              }),
              HasSubstr("train.lora.alpha was 4, is 5"));

  // The checkpoint as a model: its folder is sufficient.
  JobConfig read = load_job({}, {});
  read.model.path = last;
  EXPECT_EQ(fs::weakly_canonical(model_source(read, nullptr).folder), fs::weakly_canonical(fixture("gpt2")));
  EXPECT_NE(job_tokenizer(read), nullptr);

  // After merging it is an ordinary model, with the same outputs as with adapters.
  const RunRequest request{.job = [&] { return merge_job(job.dir / "whole", "", {}); }, .program = {}};
  MergeOptions merge{.output = job.dir / "merged", .dtype = ""};
  ASSERT_EQ(run_merge(request, merge), 0);
  EXPECT_THAT(list_dir(merge.output), ::testing::IsSupersetOf({"config.json", "generation_config.json",
                                                               "model.safetensors", "tokenizer.json"}));
  EXPECT_FALSE(exists(merge.output + "/adapter_config.json"));
  EXPECT_FALSE(exists(job.dir / ".tmp-merged"));
  EXPECT_THAT(said([&] { return run_merge(request, merge); }), HasSubstr("exists"));
  const RunRequest whole{.job =
                             [&] {
                               JobConfig read = load_job({}, {});
                               read.predict.checkpoint = job.dir / "merged";
                               return read;
                             },
                         .program = {}};
  merge.output = job.dir / "again";
  EXPECT_THAT(said([&] { return run_merge(whole, merge); }), HasSubstr("nothing to merge"));
  EXPECT_THAT(usage_error([&] { merge_job(fixture("gpt2"), "", {}); }),
              HasSubstr("neither an adapter's folder"));
}

TEST(AdapterJob, TrainingCanStartFromAnAdapter) {
  const Job job;
  ASSERT_EQ(job.train("first", {"train.max_steps=2"}), 0);
  const std::string adapter = "model.adapter=" + job.step("first", 2);
  // With learning rate 0 the adapter does not change.
  const std::vector<std::string> still = {adapter, "train.max_steps=2", "train.learning_rate=0"};
  ASSERT_EQ(job.train("second", still), 0);
  EXPECT_EQ(slurp(job.step("second", 2) + "adapter_model.safetensors"),
            slurp(job.step("first", 2) + "adapter_model.safetensors"));
  EXPECT_EQ(slurp(job.step("second", 2) + "adapter_config.json"),
            slurp(job.step("first", 2) + "adapter_config.json"));
  EXPECT_THAT(said([&] {
                return job.train("third", {adapter, "train.lora.rank=3"});
              }),
              HasSubstr("has rank 2, but train.lora.rank is 3"));
  EXPECT_THAT(said([&] {
                return job.train("third", {adapter, "train.lora.target_modules=[c_fc]"});
              }),
              HasSubstr("is not what train.lora.target_modules"));
}

TEST(AdapterJob, InvalidLoraSettingsAreErrorsBeforeTraining) {
  const Job job;
  const auto why = [&](const std::vector<std::string>& more) {
    return usage_error([&] { check_job(job.config("x", more), JobUse::train); });
  };
  EXPECT_EQ(why({}), "no error");
  EXPECT_THAT(why({"train.lora.rank=~"}), HasSubstr("has no effect without train.lora.rank"));
  EXPECT_THAT(why({"train.lora.rank=0"}), HasSubstr("train.lora.rank"));
  EXPECT_THAT(why({"model.path=~", "model.preset=gpt2"}), HasSubstr("needs model.path"));
  EXPECT_THAT(why({"train.lora.target_modules=[]"}), HasSubstr("is empty"));
  EXPECT_THAT(said([&] { return job.train("x", {"train.lora.target_modules=[c_atn]"}); }),
              HasSubstr("did you mean c_attn?"));
  EXPECT_THAT(said([&] { return job.train("x", {"train.lora.target_modules=[c_attn, '.*c_proj']"}); }),
              HasSubstr("mixes names with the expression"));
}

// PEFT's adapters, merged on several meshes, give PEFT's logits without an adapter.
TEST(Merge, GivesTheAdaptersLogits) {
  for (const auto& [name, mesh] : {std::pair{"lora-gpt2", Mesh{1, 1}}, std::pair{"lora-gpt2", Mesh{2, 2}},
                                   std::pair{"lora-llama", Mesh{1, 4}}, std::pair{"lora-gptj", Mesh{1, 3}}}) {
    TempDir dir;
    const MergeRequest request{trained_job(merge_job(fixture(name), "", {}), Weights::needed).job,
                               {.output = dir / "merged/", .dtype = ""}};
    redco::testing::on_mesh(mesh, [&](Context&) { EXPECT_EQ(merge(request), 0); });
    redco::testing::on_one_rank([&](Context&) {
      const VerifyReport r =
          verify({.folder = dir / "merged", .expected = fixture(name) + "/expected.safetensors"});
      int checked = 0;
      for (const VerifyLine& l : r.lines)
        if (l.tensor == "logits" || l.tensor == "loss") {
          // One more rounding of each weight: twice the tolerance of PyTorch's own difference.
          EXPECT_LE(l.difference, 2 * l.tolerance) << name << " " << l.tensor;
          ++checked;
        }
      EXPECT_EQ(checked, 2);
    });
  }
}

// PEFT's all-linear also adapts BERT's pooler, which no task of redco reads.
TEST(Merge, AnAdapterOfAnUnusedLayerIsIgnored) {
  TempDir dir;
  const MergeRequest request{trained_job(merge_job(fixture("lora-bert"), "", {}), Weights::needed).job,
                             {.output = dir / "merged", .dtype = ""}};
  redco::testing::on_one_rank([&](Context&) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(merge(request), 0);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("ignored, because the model doesn't use the layer: base_model.model.pooler.dense"));
    const VerifyReport r =
        verify({.folder = dir / "merged", .expected = fixture("lora-bert") + "/expected.safetensors"});
    for (const VerifyLine& l : r.lines) EXPECT_LE(l.difference, 1e-5) << l.tensor;
    EXPECT_EQ(r.lines.size(), 2u);
  });
}

TEST(Merge, RoundsToTheGivenDtype) {
  TempDir dir;
  const auto merge = [](const std::string& base, const std::string& output) {
    return run_merge(
        {.job = [=] { return merge_job(fixture("lora-gpt2"), fixture(base), {}); }, .program = {}},
        {.output = output, .dtype = "bf16"});
  };
  ASSERT_EQ(merge("gpt2", dir / "merged"), 0);
  const auto file = ckpt::SafetensorsFile::open(dir / "merged/model.safetensors");
  EXPECT_EQ(file.at("transformer.h.0.attn.c_attn.weight").type, ckpt::StoredType::bf16);
  EXPECT_EQ(nlohmann::json::parse(slurp(dir / "merged/config.json"))["dtype"], "bfloat16");
  EXPECT_THAT(said([&] { return merge("llama", dir / "wrong"); }), HasSubstr("another model"));
  EXPECT_FALSE(exists(dir / "wrong"));
}

}  // namespace
}  // namespace redco
