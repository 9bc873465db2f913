// The data of pipeline lm, from the `data:` section to rows.
#include "assembly/lm_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "assembly/job_model.h"
#include "base/file.h"
#include "base/temporaries.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using test::spill;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class LmJob : public ::testing::Test {
 protected:
  JobConfig job(const Words& more) const {
    Words all = {"data.train=" + (dir / "a.jsonl"), "data.eval=" + (dir / "a.jsonl"), "data.max_length=8"};
    all.insert(all.end(), more.begin(), more.end());
    return job_of("", all);
  }
  // The description of the data.
  std::string described(const JobConfig& j, bool evaluation = false) const {
    const LmDataRequest r =
        lm_data_request(j, j.data.sources(evaluation).at(0), evaluation, *bytes, nullptr, "", dir / "cache");
    std::string out;
    for (const std::string& line : describe_lm_data(r, *open_lm_data(r, build_lm_data(r))))
      out += line + "\n";
    return out;
  }
  std::unique_ptr<Model> model() const {
    const JobConfig j = job_of(
        "model: {arch: gpt2, n_layer: 1, n_embd: 8, n_head: 2, n_positions: 16}\n"
        "parallel: {n_ranks: 1}\n",
        {"model.tokenizer=bytes"});
    return make_job_model(j, model_source(j, bytes.get()));
  }
  test::TempDir dir;
  std::unique_ptr<Tokenizer> bytes = load_tokenizer("bytes");
};

TEST_F(LmJob, TheRowLengthComesFromTheJobElseFromTheModel) {
  const auto m = model();
  const auto length = [&](const JobConfig& j, const Model* of) {
    return lm_data_request(j, {}, false, *bytes, of, "", "").max_length;
  };
  EXPECT_EQ(length(job({}), nullptr), 8);
  EXPECT_EQ(length(job({"data.max_length=~"}), m.get()), 16);
  EXPECT_THAT(usage_error([&] { length(job({"data.max_length=~"}), nullptr); }),
              HasSubstr("data.max_length is missing"));
  EXPECT_THAT(usage_error([&] { length(job({"data.max_length=17"}), m.get()); }),
              HasSubstr("data.max_length=17 (override 'data.max_length=17') is more than the model's 16"));
}

TEST_F(LmJob, DescribesTheData) {
  spill(dir / "a.txt", "abcdefg\n\nhij\n");
  EXPECT_THAT(
      described(job({"data.train=" + (dir / "a.txt"), "data.documents=paragraph"})),
      AllOf(HasSubstr("training data: "), HasSubstr("of 2 documents in "), HasSubstr("windows of 8")));
  spill(dir / "a.jsonl",
        "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"a\", \"completion\": \"bcdefghij\"}\n");
  EXPECT_THAT(described(job({})),
              AllOf(HasSubstr("2 examples of 14 tokens, 12 to learn"),
                    HasSubstr("examples of more than data.max_length=8 tokens: 1 cut at the end (3 tokens")));
  EXPECT_THAT(described(job({"data.too_long=skip"})), HasSubstr("1 left out"));
  // Evaluation has one example per row.
  EXPECT_THAT(described(job({}), true), HasSubstr("evaluation data: 2 examples"));
  EXPECT_THAT(described(job({}), true), HasSubstr("a row each, at most 8 tokens"));
}

TEST_F(LmJob, BadLinesAreErrorsOrCounted) {
  spill(dir / "a.jsonl", "{\"text\": \"abc\"}\nnonsense\n");
  EXPECT_THAT(error_text<ContentsError>([&] { described(job({})); }), HasSubstr("a.jsonl:2"));
  EXPECT_THAT(described(job({"data.skip_bad=true"})), HasSubstr("1 bad line"));
}

TEST_F(LmJob, TheChatTemplateComesFromTheJobElseFromTheFolder) {
  const std::vector<ChatMessage> hi = {{"user", "hi", "", true}};
  const auto rendered = [&](const JobConfig& j, const std::string& folder) -> std::string {
    const auto t = job_chat_template(j, *bytes, folder);
    return t ? t->render(hi, {}) : "none";
  };
  EXPECT_EQ(rendered(job({}), ""), "none");
  EXPECT_EQ(rendered(job({}), dir.path()), "none");
  spill(dir / "chat_template.jinja", "{{ messages[0].content }}!");
  EXPECT_EQ(rendered(job({}), dir.path()), "hi!");
  // A template file gets the tokenizer's special tokens.
  spill(dir / "mine.jinja", "{{ eos_token }}{{ messages[0].content }}");
  EXPECT_EQ(rendered(job({"data.chat_template=" + (dir / "mine.jinja")}), dir.path()), "<|endoftext|>hi");
  EXPECT_THAT(rendered(job({"data.chat_template=builtin:chat"}), dir.path()), HasSubstr("hi"));
  EXPECT_THAT(usage_error([&] { rendered(job({"data.chat_template=none.jinja"}), ""); }),
              HasSubstr("data.chat_template=none.jinja (override 'data.chat_template=none.jinja')"));
}

TEST(TemporaryFolder, IsRemovedWithItsObject) {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    spill(path + "/file", "x");
  }
  EXPECT_FALSE(path.empty());
  EXPECT_FALSE(exists(path));
}

}  // namespace
}  // namespace redco
