// Invalid combinations of settings are errors that name the places of the values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The error message; "" if there is none.
std::string check(JobUse use, const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    check_job(job_of(text, overrides), use);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

TEST(CheckFiles, OnlyImagePipelinesReadFolders) {
  const test::TempDir folder;
  const auto checked = [&](const std::string& pipeline) -> std::string {
    try {
      check_files(job_of("pipeline: " + pipeline + "\ndata: {train: " + folder.path() + "}\n"),
                  JobUse::train);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(checked("lm"), HasSubstr("is a folder; expected a file"));
  for (const char* pipeline : {"classification", "maml"}) EXPECT_EQ(checked(pipeline), "") << pipeline;
}

TEST(CheckJob, SourcesOfData) {
  const std::string mixture =
      "model: {arch: gpt2}\ndata: {mixture: [{name: a, files: a.txt, weight: 1}, {name: %, files: b.txt, weight: 2}]}";
  const auto named = [&](const std::string& name) {
    std::string text = mixture;
    return check(JobUse::validate, text.replace(text.find('%'), 1, name));
  };
  EXPECT_EQ(named("b"), "");
  EXPECT_THAT(named("a"), HasSubstr("data.mixture[1].name=a (job.yaml:2:61): the name is used twice"));
  EXPECT_THAT(named("'../b'"), HasSubstr("expected a name of letters, digits, _ and -"));
  EXPECT_THAT(
      check(JobUse::validate,
            "model: {arch: gpt2}\ndata: {train: x.txt, mixture: [{name: a, files: a.txt, weight: 1}]}"),
      HasSubstr("data.train (job.yaml:2:15) and data.mixture (job.yaml:2:32) are both given"));
  EXPECT_THAT(check(JobUse::validate,
                    "model: {arch: gpt2}\ndata: {eval: x.txt, eval_sets: [{name: a, files: a.txt}]}"),
              HasSubstr("data.eval (job.yaml:2:14) and data.eval_sets (job.yaml:2:33) are both given"));
  EXPECT_THAT(check(JobUse::validate, "model: {arch: gpt2}\ndata: {eval_sets: [{name: a, files: []}]}"),
              HasSubstr("data.eval_sets[0].files (job.yaml:2:37) is empty"));
  EXPECT_THAT(check(JobUse::validate, "model: {arch: gpt2}\ndata: {train: [a.txt, b.jsonl]}"),
              HasSubstr("b.jsonl is a jsonl file, but a.txt is a text"));
  EXPECT_EQ(check(JobUse::validate, "model: {arch: gpt2}\ndata: {train: [a.txt, b.jsonl], format: text}"),
            "");
  EXPECT_EQ(check(JobUse::validate,
                  "pipeline: seq2seq\nmodel: {arch: t5}\ndata: {train: [a.tsv, b.jsonl], format: tsv}"),
            "");
}

TEST(CheckJob, MetricsOfNamedSets) {
  const std::string text =
      "model: {arch: gpt2}\ndata: {train: a.txt, eval_sets: [{name: wiki, files: w.txt}, {name: code, files: c.txt}]}\n"
      "workdir: x\ntrain: {global_batch_size: 1}\neval: {every_n_steps: 1}\n";
  for (const char* metric : {"wiki_loss", "code_perplexity"})
    EXPECT_EQ(check(JobUse::train, text, {std::string("train.early_stopping.metric=") + metric}), "")
        << metric;
  EXPECT_THAT(check(JobUse::train, text, {"checkpoint.save_best_by.min=[loss]"}),
              HasSubstr("use wiki_loss or wiki_perplexity or code_loss or code_perplexity"));
}

TEST(CheckJob, RanksThatDoNotFitTheMesh) {
  const std::string text = "model: {arch: gpt2}\nparallel:\n  n_ranks: 6\n  n_model_shards: 4\n";
  EXPECT_EQ(check(JobUse::plan, text),
            "[mesh] parallel.n_ranks=6 (job.yaml:3:12) is not a multiple of parallel.n_model_shards=4 "
            "(job.yaml:4:19); "
            "use n_ranks 4, 8 or 12, or n_model_shards 1, 2, 3, 6");
  EXPECT_EQ(check(JobUse::plan, text, {"parallel.n_ranks=8"}), "");
  EXPECT_THAT(check(JobUse::plan, text, {"parallel.n_ranks=2"}), HasSubstr("use n_ranks 4, 8 or 12"));
  EXPECT_THAT(check(JobUse::plan, "model: {arch: gpt2}\nparallel: {hosts: [a:2, b], n_model_shards: 2}"),
              HasSubstr("n_ranks=3 (the slots of the hosts) is not a multiple"));
  EXPECT_EQ(declared_ranks(job_of("parallel: {n_model_shards: 3}")), 3);
  EXPECT_EQ(declared_ranks(job_of("parallel: {hosts: [a:2, b, 'c:3']}")), 6);
  EXPECT_EQ(declared_ranks(job_of("parallel: {hosts: ['n[1-4]:2', m]}")), 9);
  EXPECT_EQ(declared_ranks(job_of("parallel: {hosts: [a:2], n_ranks: 1}")), 1);
  EXPECT_EQ(declared_ranks(job_of("parallel: {hostfile: h}")), std::nullopt);
}

TEST(CheckJob, BadHosts) {
  const std::string model = "model: {arch: gpt2}\n";
  for (const char* host :
       {"a:0", "a:-1", "a:x", "a:", ":3", "a b", "a:1:2", "-oProxyCommand=x", "a:99999999999999999999"}) {
    EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [ok, '" + host + "']}"),
                AllOf(HasSubstr("parallel.hosts[1] (job.yaml:2:24): '"), HasSubstr("; expected ")))
        << host;
  }
  EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [a:2, 'a:2']}"),
              HasSubstr("parallel.hosts[1] (job.yaml:2:25): host a is named twice"));
  // Of a bad list the slots are unknown: no second error about them.
  EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [a:2, 'b:x'], n_ranks: 5}"),
              ::testing::Not(HasSubstr("more than the")));
  EXPECT_EQ(
      check(JobUse::plan, model + "parallel: {hosts: [a], hostfile: h}"),
      "parallel.hosts (job.yaml:2:19) and parallel.hostfile=h (job.yaml:2:34) are both given; keep one");
  EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [a:2, 'b:2'], n_ranks: 5}"),
              HasSubstr("parallel.n_ranks=5 (job.yaml:2:42) exceeds the 4 slots of parallel.hosts"));
}

TEST(CheckJob, BatchSizes) {
  const auto sizes = [](const std::string& train, i64 dp) {
    return batch_sizes(job_of("train: {" + train + "}"), dp);
  };
  BatchSizes b = sizes("global_batch_size: 32, per_device_batch_size: 4", 2);
  EXPECT_EQ(b.accumulation, 4);
  EXPECT_EQ(b.assumed, "");
  b = sizes("global_batch_size: 30, per_device_batch_size: 4", 2);
  EXPECT_EQ(b.accumulation, 4);  // 8 + 8 + 8 + 6 rows
  b = sizes("global_batch_size: 7", 3);
  EXPECT_EQ(b.per_device, 3);
  EXPECT_EQ(b.accumulation, 1);
  b = sizes("global_batch_size: 8, per_device_batch_size: 8",
            4);  // limited to a replica's share
  EXPECT_EQ(b.per_device, 2);
  EXPECT_EQ(b.accumulation, 1);
  b = sizes("per_device_batch_size: 4", 3);
  EXPECT_EQ(b.global, 12);
  EXPECT_THAT(b.assumed, HasSubstr("12 assumed"));
  b = sizes("", 3);
  EXPECT_EQ(b.global, 3);
  EXPECT_EQ(b.per_device, 1);
  EXPECT_THAT(b.assumed, HasSubstr("one row per replica"));

  const std::string model = "model: {arch: gpt2}\nparallel: {n_ranks: 4}\n";
  EXPECT_THAT(check(JobUse::plan, model + "train: {global_batch_size: 3}"),
              HasSubstr("train.global_batch_size=3 (job.yaml:3:28) is less than the 4 replicas"));
  EXPECT_THAT(
      check(JobUse::plan, model + "train: {global_batch_size: 4, per_device_batch_size: 5}"),
      HasSubstr("train.per_device_batch_size=5 (job.yaml:3:54) is more than train.global_batch_size=4 "
                "(job.yaml:3:28)"));
}

TEST(CheckJob, EachCommandReportsMissingSettings) {
  const std::string model = "model: {arch: gpt2}\n";
  EXPECT_EQ(check(JobUse::plan, model), "");
  EXPECT_EQ(check(JobUse::validate, model), "");
  EXPECT_EQ(check(JobUse::verify, ""), "");
  EXPECT_THAT(check(JobUse::plan, ""), HasSubstr("path, preset or arch is missing"));
  EXPECT_THAT(check(JobUse::plan, "model: {arch: gpt2, preset: gpt2}"),
              HasSubstr("are both given; keep one"));
  EXPECT_THAT(check(JobUse::train, model),
              AllOf(HasSubstr("data.train is missing"), HasSubstr("workdir is missing"),
                    HasSubstr("train.global_batch_size is missing")));
  EXPECT_THAT(check(JobUse::train, "parallel: {hosts: ['a:0']}"),
              AllOf(HasSubstr("path, preset or arch is missing"), HasSubstr("hosts[0]"),
                    HasSubstr("workdir is missing")));
  EXPECT_THAT(check(JobUse::predict, model), HasSubstr("predict.prompt or predict.input is missing"));
  EXPECT_EQ(check(JobUse::predict, model, {"predict.prompt=Once upon a time"}), "");
  EXPECT_EQ(check(JobUse::predict, model, {"predict={prompt: [a, b]}"}), "");
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.input=b"}), HasSubstr("keep one"));
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.top_k=3"}),
              HasSubstr("predict.top_k=3 (override 'predict.top_k=3') has no effect"));
  EXPECT_THAT(
      check(JobUse::predict, model, {"predict.prompt=a", "predict.images=b"}),
      HasSubstr(
          "predict.images (override 'predict.images=b') has no effect with pipeline=lm, which makes no"));
  EXPECT_EQ(check(JobUse::predict, model, {"predict.prompt=a", "predict.max_new_tokens=3"}), "");
  EXPECT_THAT(
      check(JobUse::predict, model,
            {"pipeline=embedding", "predict.prompt=a", "predict.max_new_tokens=3", "predict.stop=x"}),
      AllOf(HasSubstr("predict.max_new_tokens (override 'predict.max_new_tokens=3') has no effect with "
                      "pipeline=embedding, which generates no text"),
            HasSubstr("predict.stop (")));
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.checkpoint=best-loss"}),
              HasSubstr("but workdir is missing"));
  EXPECT_THAT(check(JobUse::plan, model, {"pipeline=seq"}), HasSubstr("unknown pipeline"));
  EXPECT_EQ(check(JobUse::plan, model, {"pipeline=./mine.so"}), "");
}

TEST(CheckJob, ValuesThatContradictEachOther) {
  const std::string job =
      "model: {arch: gpt2}\ndata: {train: a, eval: b}\nworkdir: w\ntrain: {global_batch_size: 1}\n";
  EXPECT_EQ(check(JobUse::train, job), "");
  const auto with = [&](std::vector<std::string> o) { return check(JobUse::train, job, o); };
  EXPECT_THAT(with({"train.warmup_steps=3", "train.warmup_ratio=0.2"}), HasSubstr("keep one"));
  EXPECT_EQ(with({"train.warmup_steps=3"}), "");
  EXPECT_THAT(with({"train.warmup_steps=3", "train.max_steps=2"}),
              HasSubstr("before the peak learning rate"));
  EXPECT_EQ(with({"train.schedule=[{until_step: 3, to: 1}, {shape: cosine, to: 0.1}]"}), "");
  EXPECT_THAT(
      with({"train.schedule=[{to: 1}, {to: 0}]"}),
      HasSubstr("override 'train.schedule=[{to: 1}, {to: 0}]': [train] train.schedule[0] has neither"));
  EXPECT_THAT(with({"train.schedule=[{to: 1}]", "train.warmup_steps=3"}),
              HasSubstr("train.warmup_steps (override 'train.warmup_steps=3') has no effect with "
                        "train.schedule=a list"));
  EXPECT_THAT(with({"train.decay_ratio=0.2"}), HasSubstr("it is for train.schedule=wsd"));
  EXPECT_EQ(with({"train.optimizer=muon", "train.muon.momentum=0.9"}), "");
  EXPECT_THAT(with({"train.muon.momentum=0.9"}), HasSubstr("it is for train.optimizer=muon"));
  EXPECT_EQ(with({"train.optimizer=adafactor", "train.adafactor.scale_parameter=true"}), "");
  EXPECT_THAT(with({"train.adafactor.epsilon2=0.01"}), HasSubstr("it is for train.optimizer=adafactor"));
  EXPECT_THAT(with({"train.optimizer=muom"}), HasSubstr("no such optimizer; did you mean muon?"));
  EXPECT_THAT(with({"data.packing=false"}), HasSubstr("text files are always packed"));
  EXPECT_EQ(with({"parallel.shard_optimizer=true"}), "");
  EXPECT_THAT(
      with({"checkpoint.save_best_by.min=[los]"}),
      HasSubstr("checkpoint.save_best_by.min[0]=los (override 'checkpoint.save_best_by.min=[los]') is not "
                "evaluated; use loss or perplexity"));
  EXPECT_THAT(with({"checkpoint.save_best_by.min=[loss]", "data.eval=[]"}), HasSubstr("set data.eval"));
  EXPECT_THAT(with({"checkpoint.save_best_by={min: [loss], max: [loss]}"}), HasSubstr("named twice"));
  EXPECT_THAT(with({"eval.metrics=[perplexty]"}), HasSubstr("did you mean perplexity?"));
}

const char* const kJob =
    "model: {arch: gpt2}\ndata: {train: a, eval: b}\nworkdir: w\ntrain: {global_batch_size: 1}\n";
std::string with(const std::vector<std::string>& overrides) { return check(JobUse::train, kJob, overrides); }

TEST(CheckJob, AllProblemsAreReportedTogether) {
  const std::string message = with({"parallel.hosts=[a:0]", "train.momentum=0.9", "data.packing=false"});
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
}

TEST(CheckJob, GenerationSettingsThatExcludeEachOther) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"top_k=3"}, "top_k=3 (override 'SECTION.top_k=3') has no effect: with SECTION.temperature=0"},
      {{"min_p=0.1"}, "min_p=0.1"},
      {{"temperature=1", "num_beams=2"}, "samples tokens, SECTION.num_beams=2"},
      {{"length_penalty=2"}, "has no effect without beams; set SECTION.num_beams above 1"},
      {{"early_stopping=never"}, "has no effect without beams"},
      {{"num_return_sequences=2"}, "all answers would be the same"},
      {{"num_beams=2", "num_return_sequences=3"}, "beam search gives at most one answer per beam"},
      {{"max_new_tokens=2", "min_new_tokens=3"}, "min_new_tokens=3"},
      {{"stop="}, "SECTION.stop[0]"},
  };
  for (const std::string section : {"predict", "eval.generation"}) {
    for (const auto& [values, words] : cases) {
      std::vector<std::string> overrides = {"predict.prompt=x"};
      for (const std::string& v : values) overrides.push_back(section + "." + v);
      std::string expected = words;
      for (std::size_t at; (at = expected.find("SECTION")) != std::string::npos;)
        expected.replace(at, 7, section);
      EXPECT_THAT(check(JobUse::validate, kJob, overrides), HasSubstr(expected)) << values[0];
    }
    const std::vector<std::string> good = {section + ".temperature=1", section + ".top_k=3",
                                           section + ".num_return_sequences=2"};
    EXPECT_EQ(check(JobUse::validate, kJob, good), "");
  }
  // Training reads only eval.generation; chat has one answer.
  EXPECT_EQ(with({"predict.top_k=3"}), "");
  EXPECT_THAT(check(JobUse::chat, kJob, {"predict.num_beams=2"}), HasSubstr("use 1"));
  EXPECT_THAT(with({"pipeline=grpo", "grpo.max_new_tokens=8", "grpo.soft_punish_cache=9"}),
              HasSubstr("grpo.soft_punish_cache=9"));
}

TEST(CheckJob, SettingsWhoseConditionsDoNotHoldAreErrors) {
  EXPECT_THAT(with({"maml.n_ways=3"}),
              HasSubstr("maml.n_ways (override 'maml.n_ways=3') has no effect with pipeline=lm: it is for "
                        "pipeline=maml. Remove the key."));
  EXPECT_THAT(with({"rl.gamma=0.5"}), HasSubstr("rl.gamma"));
  EXPECT_THAT(with({"data.source_prefix=x"}),
              HasSubstr("has no effect with pipeline=lm: it is for pipeline=seq2seq."));
  EXPECT_THAT(with({"pipeline=seq2seq", "model.arch=t5", "data.packing=false"}),
              HasSubstr("has no effect with pipeline=seq2seq: it is for pipeline=lm or distillation."));
  EXPECT_THAT(
      with({"pipeline=regression", "model.arch=mlp", "train.label_smoothing=0.1"}),
      HasSubstr(
          "train.label_smoothing (override 'train.label_smoothing=0.1') has no effect with "
          "pipeline=regression: it is for pipeline=lm, seq2seq, captioning, transcription or classification."));
  EXPECT_THAT(with({"pipeline=captioning", "data.fields.source=x"}), HasSubstr("data.fields.source"));
  const std::vector<std::string> rl = {"pipeline=rl", "rl.env=CartPole-v1", "model=~", "data=~"};
  EXPECT_EQ(with(rl), "");
  auto more = rl;
  more.push_back("rl.tau=0.1");
  EXPECT_THAT(with(more), HasSubstr("has no effect with rl.algorithm=ppo: it is for rl.algorithm=ddpg."));
  more.push_back("rl.algorithm=ddpg");
  EXPECT_EQ(with(more), "");
  // A user's pipeline may read every setting.
  EXPECT_EQ(with({"pipeline=./mine.so", "maml.n_ways=3", "data.header=true", "rl.tau=0.1"}), "");
  // Conditions on other keys hold for every pipeline.
  for (const std::string pipeline : {"lm", "./mine.so"}) {
    EXPECT_THAT(with({"pipeline=" + pipeline, "train.momentum=0.9"}),
                HasSubstr("has no effect with train.optimizer=adamw: it is for train.optimizer=sgd."));
    EXPECT_EQ(with({"pipeline=" + pipeline, "train.momentum=0.9", "train.optimizer=sgd"}), "");
  }
}

// The dump of a job gives every key, so a default value that is given must not be an error.
TEST(CheckJob, TheDumpOfAValidJobIsValid) {
  const JobConfig job = job_of(kJob, {"train.warmup_steps=3"});
  const std::string dump = dump_job(job);
  EXPECT_EQ(check(JobUse::train, dump), "");
  EXPECT_THAT(check(JobUse::train, dump, {"train.warmup_ratio=0.3"}), HasSubstr("keep one"));
}

TEST(CheckJob, JsonlAndTextHaveTheirOwnSettings) {
  const auto jsonl = [&](std::vector<std::string> more) {
    more.push_back("data.train=a.jsonl");
    more.push_back("data.eval=b.jsonl");
    return with(more);
  };
  EXPECT_EQ(jsonl({"data.skip_bad=true", "data.packing=false"}), "");
  EXPECT_THAT(with({"data.skip_bad=true"}), HasSubstr("it needs data.format=jsonl"));
  EXPECT_THAT(jsonl({"data.documents=line"}), HasSubstr("it needs data.format=text"));
  EXPECT_THAT(jsonl({"data.max_length=1"}), HasSubstr("at least 2 tokens"));
  EXPECT_THAT(jsonl({"data.packing=false", "data.attention_across=true"}),
              HasSubstr("each row has one example"));
  EXPECT_THAT(jsonl({"data.fields.prompt=~"}), HasSubstr("prompt and completion need each other"));
  EXPECT_THAT(jsonl({"data.fields.output=~"}), HasSubstr("instruction and output need each other"));
  EXPECT_THAT(with({"data.format=parallel"}), HasSubstr("pipeline lm reads the formats "));
}

TEST(CheckJob, EarlyStoppingNeedsAMetricThatIsEvaluated) {
  EXPECT_THAT(with({"train.early_stopping.patience=2"}), HasSubstr("set train.early_stopping.metric"));
  EXPECT_THAT(with({"train.early_stopping.metric=loss"}), HasSubstr("eval.every_n_steps"));
  EXPECT_EQ(with({"train.early_stopping.metric=loss", "eval.every_n_steps=5"}), "");
  EXPECT_THAT(with({"train.early_stopping.metric=bleu", "eval.every_n_steps=5"}),
              HasSubstr("is not evaluated; use loss or perplexity"));
  EXPECT_THAT(with({"train.early_stopping.metric=loss", "eval.every_n_steps=5", "data.eval=[]"}),
              HasSubstr("set data.eval"));
}

}  // namespace
}  // namespace redco
