// Changed settings of a resumed run: declarations and messages.
#include "job/resume_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/shipped_jobs.h"
#include "support/jobs.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kResumedJob =
    "model: {arch: gpt2, n_layer: 2, attn_pdrop: 0.1, rope: {base: 1, dropout: 0}}\n"
    "data: {train: a.txt, label_names: [a, b]}\n"
    "train: {seed: 1, learning_rate: 3e-4, max_steps: 5, global_batch_size: 4}\n";
const char* const kSavedJob = "runs/a/checkpoints/step-5/training/job.yaml";

// Compares the saved kResumedJob with kResumedJob and `now` merged.
ResumeChanges changes(const std::vector<std::string>& now) {
  return resume_changes({kSavedJob, dump_job(job_of(kResumedJob))}, job_of(kResumedJob, now));
}

std::string refusal(const ResumeChanges& c) {
  try {
    refuse_resume_changes(c, "runs/a/checkpoints/step-5");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return "";
}

// Keys of the settings that do not declare on_resume().
std::vector<std::string> undeclared(const std::vector<Setting>& settings, const std::string& prefix) {
  std::vector<std::string> out;
  for (const Setting& s : settings) {
    const std::string key = prefix + (s.kind == Setting::Kind::rest ? "KEY" : s.name);
    if (s.kind != Setting::Kind::section && !s.when_resumed) out.push_back(key);
    for (std::string& k : undeclared(s.fields, key + ".")) out.push_back(std::move(k));
  }
  return out;
}
TEST(ResumeChanges, EverySettingDeclaresOnResume) {
  JobConfig fresh;
  EXPECT_THAT(undeclared(settings_of(fresh), ""), IsEmpty());
}

TEST(ResumeChanges, TheSameJobHasNoChanges) {
  const ResumeChanges c = changes({});
  EXPECT_THAT(c.changed, IsEmpty());
  EXPECT_EQ(refusal(c), "");
  EXPECT_THAT(resume_notes(c), IsEmpty());
}

TEST(ResumeChanges, NoShippedJobDiffersFromItsOwnDump) {
  for (const ShippedJob& s : shipped_jobs()) {
    const JobConfig job = job_of(s.text);
    const ResumeChanges c = resume_changes({kSavedJob, dump_job(job)}, job);
    EXPECT_THAT(c.changed, IsEmpty()) << s.name;
    EXPECT_THAT(c.unknown, IsEmpty()) << s.name;
  }
}

TEST(ResumeChanges, ValuesAreComparedNotTexts) {
  const ResumeChanges c = resume_changes(
      {kSavedJob, "train: {learning_rate: 0.00030, seed: 42}\nmodel: {factor: 2, rope: {b: 1, a: 2.0}}\n"},
      job_of("train: {learning_rate: 3e-4}\nmodel: {factor: 2.0, rope: {a: 2, b: 1}}\n"));
  EXPECT_THAT(c.changed, IsEmpty());
}

TEST(ResumeChanges, TheErrorListsAllChangesWithTheirRemedies) {
  const std::string message =
      refusal(changes({"train.seed=2", "model.n_layer=4", "data.label_names=[a, c]", "model.n_head=8",
                       "train.lora.rank=4", "train.learning_rate=1", "workdir=elsewhere"}));
  EXPECT_EQ(message,
            "[checkpoint] runs/a/checkpoints/step-5 cannot be resumed: these settings differ from "
            "runs/a/checkpoints/step-5/training/job.yaml. Restore them, or start a new run in another "
            "workdir or with checkpoint.resume=never:\n"
            "  model.n_head was not given, is 8 (override 'model.n_head=8'); remove it\n"
            "  model.n_layer was 2, is 4 (override 'model.n_layer=4'); restore model.n_layer=2\n"
            "  data.label_names was [a, b], is [a, c] (override 'data.label_names=[a, c]'); restore "
            "data.label_names=[a, b]\n"
            "  train.seed was 1, is 2 (override 'train.seed=2'); restore train.seed=1\n"
            "  train.lora.rank was ~, is 4 (override 'train.lora.rank=4'); restore train.lora.rank=~");
}

TEST(ResumeChanges, AScheduleIsATextOrAList) {
  const std::string pieces = "train.schedule=[{until_step: 9, to: 1}, {to: 0}]";
  const JobConfig list = job_of(kResumedJob, {pieces});
  EXPECT_THAT(resume_changes({kSavedJob, dump_job(list)}, list).changed, IsEmpty());
  const std::vector<std::string> notes = resume_notes(changes({pieces}));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("train.schedule was linear, is [{shape: linear, until_step: 9,"))
      << notes[0];
  EXPECT_EQ(resume_notes(changes({"train.schedule=wsd"})).at(0),
            "train.schedule was linear, is wsd (override 'train.schedule=wsd')");
}

TEST(ResumeChanges, ANoteHasBothValuesAndThePlace) {
  const ResumeChanges c =
      resume_changes({kSavedJob, dump_job(job_of(kResumedJob))},
                     job_of("model: {arch: gpt2, n_layer: 2, rope: {base: 1, dropout: 0.5}}\n"
                            "data: {train: [a.txt, b.txt], label_names: [a, b]}\n"
                            "train:\n  seed: 1\n  learning_rate: 1e-3\n  global_batch_size: 4\n"));
  EXPECT_EQ(refusal(c), "");
  EXPECT_THAT(resume_notes(c),
              ElementsAre("model.attn_pdrop was 0.1, is not given",
                          "model.rope.dropout was 0, is 0.5 (job.yaml:1:58)",
                          "data.train was [a.txt], is [a.txt, b.txt] (job.yaml:2:15); the run checks that "
                          "the contents are the same",
                          "train.max_steps was 5, is ~ (default)",
                          "train.learning_rate was 0.0003, is 0.001 (job.yaml:5:18)"));
}

TEST(ResumeChanges, FreeSettingsChangeWithoutAMessage) {
  const ResumeChanges c =
      changes({"workdir=b", "train.logging_steps=1", "eval.every_n_steps=3", "eval.generation.seed=1",
               "checkpoint.keep_last=9", "predict.prompt=x", "plan.devices=1 x 1 x 1GiB", "fault.timeout=1",
               "parallel.hosts=[a, b]", "data.eval=e.txt"});
  EXPECT_EQ(c.changed.size(), 10u);
  EXPECT_EQ(refusal(c), "");
  EXPECT_THAT(resume_notes(c), IsEmpty());
}

TEST(ResumeChanges, SettingsOfAPipelineAndShardingRulesAreNoted) {
  EXPECT_THAT(resume_notes(changes({"settings.beta=0.2", "parallel.n_ranks=2",
                                    "parallel.sharding_rules=[{match: .*, spec: [mp, ~]}]"})),
              ElementsAre("parallel.n_ranks was ~, is 2 (override 'parallel.n_ranks=2')",
                          "parallel.sharding_rules was [], is [{match: \".*\", spec: [mp, ~]}] (override "
                          "'parallel.sharding_rules=[{match: .*, spec: [mp, ~]}]')",
                          "settings.beta was not given, is 0.2 (override 'settings.beta=0.2')"));
}

TEST(ResumeChanges, AJobSavedByAnotherVersionIsRead) {
  // The saved job has keys and a schedule that this version lacks. It has no seed, so the seed's default
  // applies.
  const ResumeChanges c =
      resume_changes({kSavedJob,
                      "old_key: [1, {a: b}]\ngone: {a: 1}\n"
                      "train: {schedule: triangle, old_rate: 1, learning_rate: 0.5, max_steps: 0}\n"},
                     job_of("train: {seed: 43}\n"));
  EXPECT_THAT(c.unknown,
              ElementsAre("old_key", "gone", "train.schedule", "train.old_rate", "train.max_steps"));
  EXPECT_THAT(
      resume_notes(c),
      ElementsAre("train.learning_rate was 0.5, is 0.0003 (default)",
                  "runs/a/checkpoints/step-5/training/job.yaml has settings that this version of redco "
                  "does not have: old_key, gone, train.schedule, train.old_rate, train.max_steps"));
  EXPECT_THAT(refusal(c), HasSubstr("train.seed was 42, is 43 (job.yaml:1:15)"));
}

TEST(ResumeChanges, LongValuesAreShortened) {
  const std::string names = "data.label_names=[" + std::string(500, 'x') + "]";
  const ResumeChanges c = resume_changes({kSavedJob, dump_job(job_of("", {names}))}, job_of(""));
  EXPECT_THAT(refusal(c), AllOf(HasSubstr("xxx..., is [] (default); restore the saved value"),
                                Not(HasSubstr(std::string(100, 'x')))));
}

TEST(ResumeChanges, ADamagedSavedJobIsAContentsError) {
  for (const char* text : {"train: {seed", "just words", "- a\n- b\n"}) {
    try {
      resume_changes({kSavedJob, text}, job_of(""));
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::contents);
      EXPECT_THAT(e.what(), HasSubstr(kSavedJob));
    }
  }
}

}  // namespace
}  // namespace redco
