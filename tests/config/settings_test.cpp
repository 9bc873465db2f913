// Reading settings (config/bind.cpp, config/resolve.cpp): values, sources, mistakes; and the dump.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/bind.h"
#include "config/dump.h"
#include "config/reference.h"
#include "config/settings_testing.h"

namespace redco::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Settings, EveryKindIsRead) {
  Top t;
  const Origins o =
      load(t,
           "name: 'yes'\n"
           "train: {seed: 7, learning_rate: 1e-3, schedule: cosine, shuffle: false, clip: ~, threads: 3}\n"
           "model:\n"
           "  path: a/b\n"
           "  n_layer: 4\n"
           "  rope_scaling: {type: linear, factor: 2.0, list: [1, ~, true, \"q\\\"\"]}\n"
           "files: one.txt\n"
           "words: []\n"
           "rules:\n"
           "  - {match: '.*', spec: [~, mp]}\n"
           "  - match: b\n"
           "    spec: []\n");
  EXPECT_EQ(t.name, "yes");
  EXPECT_EQ(t.train.seed, 7);
  EXPECT_EQ(t.train.learning_rate, 1e-3);
  EXPECT_EQ(t.train.schedule, "cosine");
  EXPECT_FALSE(t.train.shuffle);
  EXPECT_FALSE(t.train.clip);
  EXPECT_EQ(t.train.threads, 3);
  EXPECT_EQ(t.model.path, "a/b");
  EXPECT_EQ(t.model.config.at("n_layer"), "4");
  EXPECT_EQ(t.model.config.at("rope_scaling"),
            R"({"type": "linear", "factor": 2.0, "list": [1, null, true, "q\""]})");
  EXPECT_THAT(t.files, ElementsAre("one.txt"));
  EXPECT_TRUE(t.words.empty());
  ASSERT_EQ(t.rules.size(), 2u);
  EXPECT_EQ(t.rules[0].match, ".*");
  EXPECT_THAT(t.rules[0].spec, ElementsAre(std::nullopt, std::optional<std::string>("mp")));
  EXPECT_TRUE(t.rules[1].spec.empty());

  EXPECT_EQ(o.where("train.seed"), "job.yaml:2:15");
  EXPECT_EQ(o.where("model.n_layer"), "job.yaml:5:12");
  EXPECT_EQ(o.where("rules[1].match"), "job.yaml:11:12");
  EXPECT_EQ(o.where("rules[1].spec[5]"), "job.yaml:12:11");
  EXPECT_TRUE(o.given("train.clip"));
  EXPECT_FALSE(o.given("train.other"));
  EXPECT_EQ(o.where("train.other"), "default");
}

TEST(Settings, SettingsNotGivenKeepTheirDefaults) {
  for (const char* text :
       {"", "# nothing\n", "---\n", "train:\n", "train: {}\n", "~", "\xEF\xBB\xBF# mark\n"}) {
    Top t;
    load(t, text);
    EXPECT_EQ(t.train.seed, 42) << text;
    EXPECT_EQ(t.train.clip, 1.0);
    EXPECT_FALSE(t.train.threads);
    EXPECT_THAT(t.words, ElementsAre("a"));
  }
}

TEST(Settings, LaterSourcesWinKeyByKey) {
  Top t;
  const Origins o = load_settings(
      settings_of(t),
      {{"a.yaml", "train: {seed: 1, schedule: cosine}\nmodel: {rope: {a: 1, b: 2}}\nwords: [x, y]\n"},
       {"b.yaml", "train: {seed: 2}\nmodel: {rope: {b: 3}}\nwords: [z]\n"}},
      {"train.threads=auto", "train.learning_rate=.5", "model.rope.c=[4]", "name=k=v",
       "train={shuffle: false}", "rules=[{match: \".*\", spec: [mp, ~]}]", "train.seed=3", "train.seed=4"});
  EXPECT_EQ(t.train.seed, 4);
  EXPECT_EQ(t.train.schedule, "cosine");
  EXPECT_EQ(t.train.learning_rate, 0.5);
  EXPECT_FALSE(t.train.shuffle);
  EXPECT_EQ(t.model.config.at("rope"), R"({"a": 1, "b": 3, "c": [4]})");
  EXPECT_THAT(t.words, ElementsAre("z"));
  EXPECT_EQ(t.name, "k=v");
  EXPECT_EQ(t.rules.at(0).match, ".*");
  EXPECT_EQ(o.where("train.seed"), "override 'train.seed=4'");
  EXPECT_EQ(o.where("train.schedule"), "a.yaml:1:28");
  EXPECT_EQ(o.where("words"), "b.yaml:3:8");
}

// A null section has no effect in a file; as an override it removes the section's values.
TEST(Settings, ANullOverrideRemovesASection) {
  const std::string text =
      "train: {seed: 1, clip: 2}\nmodel: {path: m, rope: 1}\nrules: [{match: a, spec: [mp]}]\n";
  Top t;
  const Origins o = load_settings(settings_of(t), {{"a.yaml", text}, {"b.yaml", "train:\n"}},
                                  {"model=~", "train=~", "train.schedule=cosine"});
  EXPECT_EQ(t.train.seed, 42);
  EXPECT_EQ(t.train.clip, 1.0);
  EXPECT_EQ(t.train.schedule, "cosine");
  EXPECT_FALSE(o.given("train.seed"));
  EXPECT_FALSE(t.model.path);
  EXPECT_TRUE(t.model.config.empty());
  EXPECT_EQ(t.rules.size(), 1u);

  Top kept;
  load_settings(settings_of(kept), {{"a.yaml", text}, {"b.yaml", "train:\n"}}, {});
  EXPECT_EQ(kept.train.seed, 1);
}

TEST(Settings, AMistakeIsReportedIfALaterSourceReplacesIt) {
  EXPECT_EQ(refused("train: {seed: x}\n", {"train.seed=1"}),
            "job.yaml:1:15: train.seed: expected an integer >= 0, got the text 'x'");
}

TEST(Settings, WrongTypesAndRangesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"train: {seed: 1.5}", "1:15: train.seed: expected an integer >= 0, got the number 1.5"},
      {"train: {seed: 1e3}", "got the number 1e3; write 1000"},
      {"train: {seed: 1_000}", "got the text '1_000'; write 1000"},
      {"train: {seed: '3'}", "got the text '3'; remove the quotes"},
      {"train: {seed: -1}", "expected an integer >= 0, got the number -1"},
      {"train: {seed: true}", "expected an integer >= 0, got true"},
      {"train: {seed: 9223372036854775808}", "expected an integer >= 0, got the text '9223372036854775808'"},
      {"train: {seed: }", "1:9: train.seed: expected an integer >= 0, got nothing"},
      {"train: {seed: [1]}", "got a list"},
      {"train: {seed: {a: 1}}", "got a map"},
      {"train: {shuffle: yes}", "expected true or false, got the text 'yes'; write true"},
      {"train: {shuffle: Off}", "write false"},
      {"train: {shuffle: 1}", "expected true or false, got the number 1"},
      {"train: {shuffle: ~}", "got nothing"},
      {"train: {learning_rate: 0}", "expected a number > 0 and < 1, got the number 0"},
      {"train: {learning_rate: 1.0}", "expected a number > 0 and < 1, got the number 1.0"},
      {"train: {learning_rate: .inf}", "got the number .inf"},
      {"train: {learning_rate: .nan}", "got the number .nan"},
      {"train: {learning_rate: 1e-999}", "got the text '1e-999'"},
      {"train: {learning_rate: 3e-4x}", "got the text '3e-4x'"},
      {"train: {learning_rate: 1.2.3}", "got the text '1.2.3'"},
      {"train: {clip: -1}", "expected a number > 0 or ~"},
      {"train: {threads: 0}", "expected an integer >= 1 or auto"},
      {"train: {threads: 'auto'}", "expected an integer >= 1 or auto, got the text 'auto'"},
      {"train: {schedule: cosin}",
       "expected one of linear, cosine, got the text 'cosin'; did you mean cosine?"},
      {"train: {schedule: 3}", "expected one of linear, cosine, got the number 3"},
      {"train: 3", "1:8: train: expected a section (`key: value` lines), got the number 3"},
      {"train: []", "expected a section (`key: value` lines), got a list"},
      {"name: 12", "expected a text, got the number 12; put it in quotes: \"12\""},
      {"name: true", "put it in quotes: \"true\""},
      {"name: ~", "expected a text, got nothing"},
      {"name: \"a\\0b\"", "expected a text"},
      {"model: {path: ''}", "expected a path or ~"},
      {"model: {factor: .nan}", "1:17: .nan is not a finite number"},
      {"model: {factor: 1e999}", "the number 1e999 is too large or too small"},
      {"words: a", "expected a list of texts, got the text 'a'"},
      {"words: ~", "write [] for none"},
      {"words: [a, 3]", "1:12: words[1]: expected a text, got the number 3"},
      {"words: [a, ~]", "words[1]: expected a text, got nothing"},
      {"files: 3", "expected a path or a list of paths, got the number 3"},
      {"rules: {match: a}", "expected a list of sections, got a map"},
      {"rules: [a]", "1:9: rules[0]: expected a section (`{key: value}`), got the text 'a'"},
      {"rules: [{match: a}]", "1:9: rules[0].spec is missing: a list of `mp` or ~"},
      {"rules: [{match: a, spec: [dp]}]", "rules[0].spec[0]: expected `mp` or ~, got the text 'dp'"},
      {"rules: [{mach: a, match: b, spec: []}]", "unknown key rules[0].mach; did you mean rules[0].match?"},
  };
  for (const auto& [text, words] : cases) {
    const std::string message = refused(text);
    EXPECT_THAT(message, HasSubstr(words)) << text;
    EXPECT_THAT(message, ::testing::StartsWith("job.yaml:1:")) << text;
    EXPECT_THAT(message, Not(HasSubstr("\n"))) << text;
  }
}

TEST(Settings, UnknownKeysAreReportedWithTheNearestKnownKey) {
  EXPECT_EQ(refused("name: a\ntrain:\n  learnin_rate: 1\n"),
            "job.yaml:3:3: unknown key train.learnin_rate; did you mean train.learning_rate?");
  EXPECT_EQ(refused("learning_rate: 1\n"),
            "job.yaml:1:1: unknown key learning_rate; did you mean train.learning_rate?");
  EXPECT_EQ(refused("learning_rat: 1\n"),
            "job.yaml:1:1: unknown key learning_rat; did you mean train.learning_rate?");
  EXPECT_EQ(
      refused("zzzzzz: 1\n"),
      "job.yaml:1:1: unknown key zzzzzz; known here: name, train, model, files, words, text, texts, rules");
  EXPECT_EQ(refused("model: {pat: x}\n"), "job.yaml:1:9: unknown key model.pat; did you mean model.path?");
  EXPECT_EQ(refused("", {"train.sed=1"}),
            "override 'train.sed=1': unknown key train.sed; did you mean train.seed?");
  EXPECT_EQ(refused("Name: a\n"), "job.yaml:1:1: unknown key Name; did you mean name?");
}

TEST(Settings, SeveralProblemsComeInOrderUpToTwenty) {
  EXPECT_EQ(refused("nam: a\ntrain: {seed: x, shuffle: 3}\n", {"wordz=[]"}),
            "job.yaml:1:1: unknown key nam; did you mean name?\n"
            "job.yaml:2:15: train.seed: expected an integer >= 0, got the text 'x'\n"
            "job.yaml:2:27: train.shuffle: expected true or false, got the number 3\n"
            "override 'wordz=[]': unknown key wordz; did you mean words?");
  std::string many;
  for (int i = 0; i < 25; ++i) many += fmt::format("bad{}: 1\n", i);
  const std::string message = refused(many);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_THAT(message, ::testing::EndsWith("... and 5 more"));
}

// Standard input. YAML reads a dash as a list of nothing.
TEST(Settings, ADashIsAText) {
  Top t;
  load(t, "", {"files=-"});
  EXPECT_THAT(t.files, ElementsAre("-"));
}

TEST(Settings, MalformedOverridesAreErrors) {
  EXPECT_THAT(refused("", {"train.seed"}), HasSubstr("expected key=value"));
  EXPECT_THAT(refused("", {"=1"}), HasSubstr("'' is not a key"));
  EXPECT_THAT(refused("", {"train..seed=1"}), HasSubstr("'train..seed' is not a key"));
  EXPECT_THAT(refused("", {".seed=1"}), HasSubstr("is not a key"));
  EXPECT_THAT(refused("", {"train.seed="}), HasSubstr("got nothing"));
  EXPECT_THAT(refused("", {"rules[0].match=a"}), HasSubstr("replaced as a whole; write rules=[...]"));
  EXPECT_THAT(refused("", {"words=[a"}), HasSubstr("override 'words=[a': the value is not valid YAML"));
  EXPECT_THAT(refused("", {"name=a: b"}), HasSubstr("put a text with `: ` in quotes"));
  EXPECT_THAT(refused("", {"name=42"}), HasSubstr("put it in quotes: '\"42\"'"));
  EXPECT_THAT(refused("", {"train.seed.x=1"}), HasSubstr("train.seed: expected an integer >= 0, got a map"));
  EXPECT_THAT(refused("", {std::string("name=\xff")}), HasSubstr("not UTF-8"));
}

TEST(Settings, FreeTextOnTheCommandLineIsTakenAsTyped) {
  for (const std::string typed :
       {"ROMEO: ",   "[INST] hi", "# Title", "C #1 hits", "- x", "~",   "null", "123", "  both ends  ",
        "'a' \"b\"", "{a: 1}",    "*x",      "&y",        "!t",  "| z", "a: b", "",    "two\nlines\r\n\ttab",
        "%",         "@",         "a=b",     "\\n"}) {
    Top t;
    const Origins o = load(t, "text: before\ntexts: [x, y]\n", {"text=" + typed, "texts=" + typed});
    EXPECT_EQ(t.text, typed);
    EXPECT_THAT(t.texts, ElementsAre(typed));
    EXPECT_TRUE(o.given("text"));
    // Ranks read the dump, which is YAML.
    Top again;
    load(again, dump_settings(settings_of(t)));
    EXPECT_EQ(again.text, typed);
    EXPECT_THAT(again.texts, ElementsAre(typed));
  }
  // In a file it is YAML.
  Top t;
  load(t, "text: 'a # b'\ntexts: [1st, \"~\"]\n");
  EXPECT_EQ(t.text, "a # b");
  EXPECT_THAT(t.texts, ElementsAre("1st", "~"));
  EXPECT_THAT(refused("text: 123\n"), HasSubstr("put it in quotes: \"123\""));
  EXPECT_THAT(refused("", {std::string("text=\xff")}), HasSubstr("not UTF-8"));
  EXPECT_THAT(settings_help(settings_of(t), "text"), HasSubstr("on the command line as typed"));
}

TEST(Settings, ReadingTheDumpGivesTheSameValues) {
  Top t;
  load(t,
       "name: \"a: 'b' \\\"c\\\" \\\\ # é\\n\\t\\x01 \"\n"
       "train: {learning_rate: 0.1, clip: 1e-30, threads: 2, seed: 9223372036854775807}\n"
       "model: {path: \"1\", n: 4, f: 1e-05, g: 3., 'odd key: x': {a: [], b: {}, c: \"t\\n\"}, s: '4'}\n"
       "files: [\"~\", auto, 'true', \".inf\", '0x1f', 'a,b', '-x', '- x', 'null', '...', 1.0.0]\n"
       "words: ['', ' ', '[', \"…\"]\n"
       "rules: [{match: '.*\\.weight', spec: [~, mp]}, {match: b, spec: []}]\n");
  const std::string once = dump_settings(settings_of(t));
  Top u;
  load(u, once);
  EXPECT_EQ(dump_settings(settings_of(u)), once);
  EXPECT_EQ(u.name, t.name);
  EXPECT_EQ(u.train.learning_rate, 0.1);
  EXPECT_EQ(u.train.clip, 1e-30);
  EXPECT_EQ(u.train.threads, 2);
  EXPECT_EQ(u.train.seed, t.train.seed);
  EXPECT_EQ(u.model.path, "1");
  EXPECT_EQ(u.model.config, t.model.config);
  EXPECT_EQ(u.model.config.at("g"), "3.0");
  EXPECT_EQ(u.model.config.at("s"), "\"4\"");
  EXPECT_EQ(u.files, t.files);
  EXPECT_EQ(u.words, t.words);
  ASSERT_EQ(u.rules.size(), 2u);
  EXPECT_EQ(u.rules[0].match, t.rules[0].match);
  EXPECT_EQ(u.rules[0].spec, t.rules[0].spec);

  Top fresh, again;
  load(again, dump_settings(settings_of(fresh)));
  EXPECT_EQ(dump_settings(settings_of(again)), dump_settings(settings_of(fresh)));
  EXPECT_FALSE(again.train.threads);
}

}  // namespace
}  // namespace redco::test
