// Settings with every kind of member, for tests of their reading and of their declarations.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/bind.h"

namespace redco::test {

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

inline Origins load(Top& t, const std::string& text, const std::vector<std::string>& overrides = {}) {
  return load_settings(settings_of(t), {{"job.yaml", text}}, overrides);
}

// The error message.
inline std::string refused(const std::string& text, const std::vector<std::string>& overrides = {}) {
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

}  // namespace redco::test
