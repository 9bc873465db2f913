// Settings with every kind of member: reading, errors, writing, documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/yaml.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Rule {
  std::string match;
  std::vector<std::optional<std::string>> spec;
  void visit(SettingsVisitor& v) {
    v.field("match", match, "a pattern").required();
    v.field("spec", spec, "a spec").one_of({"mp"}).required();
  }
};
struct Inner {
  i64 seed = 42;
  double learning_rate = 3e-4;
  std::string schedule = "linear";
  bool shuffle = true;
  std::optional<double> clip = 1.0;
  std::optional<i64> threads;
  void visit(SettingsVisitor& v) {
    v.field("seed", seed, "random seed").at_least(0).on_resume(OnResume::error);
    v.field("learning_rate", learning_rate, "peak rate").above(0).below(1);
    v.field("schedule", schedule, "its shape").one_of({"linear", "cosine"});
    v.field("shuffle", shuffle, "whether to shuffle");
    v.field("clip", clip, "largest norm").above(0);
    v.field("threads", threads, "threads").at_least(1).null_means("auto").only_with("name", {"x", "y"});
  }
};
struct Model {
  std::optional<std::string> path;
  std::map<std::string, std::string> config;
  void visit(SettingsVisitor& v) {
    v.field("path", path, "a folder").path().decided_by(DecidedBy::either);
    v.rest(config, "any config key").on_resume(OnResume::error).noted_if_named("drop");
  }
};
struct Top {
  Inner train;
  Model model;
  std::vector<std::string> files, words = {"a"};
  std::vector<Rule> rules;
  std::string name = "x";
  std::optional<std::string> text;
  std::vector<std::string> texts;
  void visit(SettingsVisitor& v) {
    v.field("name", name, "a name");
    v.section("train", train, "Training").only_with("mode", {"a", "b", "c"});
    v.section("model", model, "Model").on_resume(OnResume::free).decided_by(DecidedBy::checkpoint);
    v.field("files", files, "files").path().one_or_more();
    v.field("words", words, "words");
    v.field("text", text, "free text").literal();
    v.field("texts", texts, "free texts").one_or_more().literal();
    v.items("rules", rules, "rules");
  }
};

Origins load(Top& t, const std::string& text, const std::vector<std::string>& overrides = {}) {
  return load_settings(settings_of(t), {{"job.yaml", text}}, overrides);
}

// The error message.
std::string refused(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Top t;
  try {
    load(t, text, overrides);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

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

// A list of sections, or a word in its place.
struct Shapes {
  std::string shape = "line";
  std::vector<Rule> pieces;
  void visit(SettingsVisitor& v) {
    v.items_or_word("shape", pieces, shape, {"line", "wave"}, "a shape").on_resume(OnResume::note);
  }
};

TEST(Settings, AListMayBeAWord) {
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
}  // namespace redco
