// What a declaration of a setting means besides its value: resumes, origins, words, choices, the schema and
// the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/bind.h"
#include "config/dump.h"
#include "config/overrides.h"
#include "config/reference.h"
#include "config/settings_testing.h"

namespace redco::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

enum class Speed : std::uint8_t { slow, fast };
struct Chosen {
  Speed speed = Speed::slow;
  void visit(SettingsVisitor& v) {
    v.choice("speed", speed, {{"slow", Speed::slow}, {"fast", Speed::fast}}, "how fast");
  }
};

TEST(Settings, AnEnumHasItsTexts) {
  Chosen t;
  load_settings(settings_of(t), {{"job.yaml", "speed: fast\n"}}, {});
  EXPECT_EQ(t.speed, Speed::fast);
  EXPECT_THAT(dump_settings(settings_of(t)), HasSubstr("speed: fast"));
  try {
    load_settings(settings_of(t), {{"job.yaml", "speed: fastest\n"}}, {});
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("slow, fast"));
  }
  EXPECT_EQ(t.speed, Speed::fast);
}

TEST(Settings, OnResumeOfASectionAppliesToItsFields) {
  Top t;
  const std::vector<Setting> all = settings_of(t);
  const auto& train = all.at(1).fields;
  const auto& model = all.at(2).fields;
  EXPECT_EQ(train.at(0).when_resumed, OnResume::error);
  EXPECT_EQ(train.at(1).when_resumed, std::nullopt);
  EXPECT_EQ(model.at(0).when_resumed, OnResume::free);
  EXPECT_EQ(model.at(1).when_resumed, OnResume::error);
}

TEST(Settings, TheDeciderOfASectionAppliesToItsFields) {
  Top t;
  const std::vector<Setting> all = settings_of(t);
  EXPECT_EQ(all.at(1).fields.at(0).decider, std::nullopt);
  EXPECT_EQ(all.at(2).fields.at(0).decider, DecidedBy::either);
  EXPECT_EQ(all.at(2).fields.at(1).decider, DecidedBy::checkpoint);
}

TEST(Settings, OriginsDistinguishOverridesFromFiles) {
  Top t;
  Origins o = load(t, "train: {seed: 1, clip: 2.0}\nname: a\nmodel: {n_layer: 2}\n",
                   {"train.seed=3", "model.n_head=4", "words=[a, b]"});
  for (const char* key : {"train.seed", "model.n_head", "words", "words[1]"})
    EXPECT_TRUE(o.overridden(key)) << key;
  for (const char* key : {"train.clip", "name", "model.n_layer", "files"})
    EXPECT_FALSE(o.overridden(key)) << key;
  o.inherit("train.seed", "other.yaml");
  EXPECT_FALSE(o.given("train.seed"));
  EXPECT_FALSE(o.overridden("train.seed"));
  EXPECT_EQ(o.where("train.seed"), "other.yaml");
}

// A list of sections, or one word instead.
struct Shapes {
  std::string shape = "line";
  std::vector<Rule> pieces;
  void visit(SettingsVisitor& v) {
    v.items_or_word("shape", pieces, shape, {"line", "wave"}, "a shape").on_resume(OnResume::note);
  }
};

TEST(Settings, AListMayBeAText) {
  const auto loaded = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    Shapes s;
    load_settings(settings_of(s), {{"job.yaml", text}}, overrides);
    // What is written is read back.
    Shapes again;
    load_settings(settings_of(again), {{"dump.yaml", dump_settings(settings_of(s))}}, {});
    EXPECT_EQ(again.shape, s.shape);
    EXPECT_EQ(again.pieces.size(), s.pieces.size());
    return s;
  };
  EXPECT_EQ(loaded("").shape, "line");
  EXPECT_EQ(loaded("shape: wave").shape, "wave");
  const Shapes list = loaded("shape: [{match: a, spec: [mp]}, {match: b, spec: [mp]}]");
  ASSERT_EQ(list.pieces.size(), 2u);
  EXPECT_EQ(list.pieces[1].match, "b");
  EXPECT_EQ(loaded("shape: wave", {"shape=[{match: a, spec: [mp]}]"}).pieces.size(), 1u);
  const Shapes word = loaded("shape: [{match: a, spec: [mp]}]", {"shape=wave"});
  EXPECT_EQ(word.shape, "wave");
  EXPECT_TRUE(word.pieces.empty());

  const auto problem = [](const std::string& text) -> std::string {
    Shapes s;
    try {
      load_settings(settings_of(s), {{"job.yaml", text}}, {});
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  const char* expected = "shape: expected one of line, wave, or a list of sections, got ";
  EXPECT_THAT(problem("shape: wav"), HasSubstr(expected));
  EXPECT_THAT(problem("shape: 3"), HasSubstr(expected));
  EXPECT_THAT(problem("shape: {match: a}"), HasSubstr(expected));
  EXPECT_THAT(problem("shape: []"), HasSubstr(expected));
  EXPECT_THAT(problem("shape: ~"), HasSubstr(expected));
  EXPECT_THAT(problem("shape: [{match: a, spc: [mp]}]"), HasSubstr("shape[0].spc"));

  Shapes s;
  EXPECT_THAT(load_known_settings(settings_of(s), {"old.yaml", "shape: wav"}), ElementsAre("shape"));
  EXPECT_EQ(s.shape, "line");
  const auto j = nlohmann::json::parse(json_schema(settings_of(s), "test"))["properties"]["shape"];
  EXPECT_EQ(j["anyOf"][0]["enum"], nlohmann::json({"line", "wave"}));
  EXPECT_EQ(j["anyOf"][1]["minItems"], 1);
  EXPECT_EQ(j["anyOf"][1]["items"]["required"], nlohmann::json({"match", "spec"}));
  EXPECT_EQ(j["default"], "line");
  EXPECT_THAT(markdown_reference(settings_of(s)),
              ::testing::AllOf(HasSubstr("Value: one of line, wave, or a list of sections. Default: `line`"),
                               HasSubstr("### `shape[]`")));
  EXPECT_THAT(settings_help(settings_of(s), "shape"), HasSubstr("default line"));
  const auto candidates = complete_override(settings_of(s), "shape=w");
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].text, "shape=wave");
}

TEST(Settings, UnknownKeysCanBeIgnored) {
  Top t;
  t.rules.resize(0);
  EXPECT_THAT(load_known_settings(settings_of(t), {"old.yaml",
                                                   "name: b\nnam: c\ntrain: {seed: x, clip: 2, gone: 1}\n"
                                                   "model: {path: m, rope: {a: 1}}\nwords: [a, 3]\n"
                                                   "rules: [{match: a}]\nfiles: f\n"}),
              ElementsAre("nam", "train.seed", "train.gone", "words", "rules"));
  EXPECT_EQ(t.name, "b");
  EXPECT_EQ(t.train.seed, 42);
  EXPECT_EQ(t.train.clip, 2.0);
  EXPECT_EQ(t.model.path, "m");
  EXPECT_EQ(t.model.config.at("rope"), R"({"a": 1})");
  EXPECT_THAT(t.words, ElementsAre("a"));
  EXPECT_TRUE(t.rules.empty());
  EXPECT_THAT(t.files, ElementsAre("f"));
  EXPECT_THROW(load_known_settings(settings_of(t), {"old.yaml", "[1, 2]"}), UsageError);
}

TEST(Settings, TheSchemaHasTheLimitsThatTheReaderChecks) {
  Top t;
  const auto j = nlohmann::json::parse(json_schema(settings_of(t), "test"));
  EXPECT_EQ(j["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(j["additionalProperties"], false);
  const auto& train = j["properties"]["train"]["properties"];
  EXPECT_EQ(train["seed"]["type"], "integer");
  EXPECT_EQ(train["seed"]["minimum"], 0);
  EXPECT_EQ(train["seed"]["default"], 42);
  EXPECT_EQ(train["learning_rate"]["exclusiveMinimum"], 0);
  EXPECT_EQ(train["seed"]["description"], "random seed; only with mode=a, b or c; on resume: error");
  EXPECT_EQ(train["schedule"]["description"], "its shape; only with mode=a, b or c");
  EXPECT_EQ(train["schedule"]["enum"], nlohmann::json({"linear", "cosine"}));
  EXPECT_EQ(train["clip"]["type"], nlohmann::json({"number", "null"}));
  EXPECT_EQ(train["threads"]["anyOf"][1]["const"], "auto");
  EXPECT_EQ(j["properties"]["train"]["additionalProperties"], false);
  EXPECT_TRUE(j["properties"]["model"]["additionalProperties"].is_object());
  EXPECT_EQ(j["properties"]["rules"]["items"]["required"], nlohmann::json({"match", "spec"}));
}

TEST(Settings, ReferenceAndHelpNameEveryKey) {
  Top t;
  const std::string page = markdown_reference(settings_of(t));
  const std::string help = settings_help(settings_of(t), "");
  for (const std::string& key : setting_keys(settings_of(t))) {
    EXPECT_THAT(page, HasSubstr("`" + key.substr(key.rfind('.') + 1))) << key;
    EXPECT_THAT(help, HasSubstr(key)) << key;
  }
  EXPECT_THAT(page, HasSubstr("## `train`\n\nTraining. Only with: `mode=a, b or c`.\n\n"));
  EXPECT_THAT(page, HasSubstr("- **`seed`**: random seed.\n"
                              "  - Value: an integer >= 0. Default: `42`. On resume: error.\n"));
  EXPECT_THAT(page,
              HasSubstr("  - Value: an integer >= 1 or auto. Default: `auto`. Only with: `name=x or y`.\n"));
  EXPECT_THAT(page,
              HasSubstr("  - Value: a path or ~. Default: `~`. On resume: free. With a checkpoint: job, else "
                        "checkpoint.\n"));
  EXPECT_EQ(
      settings_help(settings_of(t), "train.seed"),
      "  train.seed\n      random seed; an integer >= 0; default 42; only with mode=a, b or c; on resume: "
      "error\n");
  EXPECT_THAT(settings_help(settings_of(t), "train.threads"),
              HasSubstr("; only with mode=a, b or c; name=x or y\n"));
  EXPECT_THAT(settings_help(settings_of(t), "train"), Not(HasSubstr("model")));
  EXPECT_EQ(
      settings_help(settings_of(t), "model"),
      "model: Model\n"
      "  model.path\n      a folder; a path or ~; default ~; on resume: free; with a checkpoint: job, else "
      "checkpoint\n"
      "  model.KEY\n      any config key; on resume: error; note for keys with `drop` in their name; with a "
      "checkpoint: checkpoint\n");
  EXPECT_THAT(settings_help(settings_of(t), "rules"), HasSubstr("rules[].match"));
  EXPECT_THROW(settings_help(settings_of(t), "trian"), UsageError);
}

struct Bits {
  i64 bits = 8;
  std::vector<i64> sizes;
  void visit(SettingsVisitor& v) {
    v.field("bits", bits, "bits of a number").one_of({4, 8});
    v.field("sizes", sizes, "sizes").one_of({1, 2, 4});
  }
};

TEST(Settings, IntegersHaveChoices) {
  Bits b;
  const auto problem = [&](const std::string& text) {
    try {
      load_settings(settings_of(b), {{"job.yaml", text, {}}}, {});
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem("bits: 4\nsizes: [4, 1]"), "");
  EXPECT_EQ(b.bits, 4);
  EXPECT_THAT(b.sizes, ElementsAre(4, 1));
  EXPECT_EQ(problem("bits: 5"), "job.yaml:1:7: bits: expected one of 4, 8, got the number 5");
  EXPECT_THAT(problem("sizes: [1, 3]"), HasSubstr("sizes[1]: expected one of 1, 2, 4, got the number 3"));
  EXPECT_THAT(problem("bits: eight"), HasSubstr("expected one of 4, 8, got the text 'eight'"));
  const auto j = nlohmann::json::parse(json_schema(settings_of(b), "test"))["properties"];
  EXPECT_EQ(j["bits"]["enum"], nlohmann::json({4, 8}));
  EXPECT_EQ(j["bits"]["type"], "integer");
}

// Places of a section's keys in the job; keys inside of others have theirs, entries of lists that of the
// list.
TEST(Settings, ASectionOfAUserHasItsPlaces) {
  struct Own {
    Inner train;
    std::vector<i64> sizes;
    void visit(SettingsVisitor& v) {
      v.section("train", train, "Training");
      v.field("sizes", sizes, "sizes");
    }
  };
  Origins origins;
  origins.set("settings.train", "job.yaml:3:10");
  origins.set("settings.train.seed", "override 'settings.train.seed=x'", true);
  origins.set("settings.sizes", "job.yaml:4:10");
  origins.set_key("settings.sizs", "job.yaml:5:3");
  origins.set("settings.sizs", "job.yaml:5:9");
  Own own;
  try {
    load_section(settings_of(own), "settings",
                 R"({"train": {"seed": "x", "shuffle": 1}, "sizes": [1, "a"], "sizs": 1})", origins);
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_STREQ(
        e.what(),
        "override 'settings.train.seed=x': settings.train.seed: expected an integer >= 0, got the text 'x'\n"
        "job.yaml:3:10: settings.train.shuffle: expected true or false, got the number 1\n"
        "job.yaml:4:10: settings.sizes[1]: expected an integer, got the text 'a'\n"
        "job.yaml:5:3: unknown key settings.sizs; did you mean settings.sizes?");
  }
}

}  // namespace
}  // namespace redco::test
