// redco verify, which checks models against other frameworks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"
#include "support/tensor_file.h"

namespace redco::test {
namespace {

using nlohmann::json;

class Verify : public Cli {
 protected:
  static std::string fixture(const std::string& name) { return std::string(REDCO_FIXTURES) + "/" + name; }
};

TEST_F(Verify, PassesOnMeshesAndWithInefficientRules) {
  struct Case {
    const char* model;
    int ranks, shards;
    const char* rules;
  };
  // Each task once, and each way to start ranks; tests/models compares every family on every mesh, and with
  // rules.
  for (const Case& c :
       {Case{"gpt2", 4, 2, ""},
        {"llama", 3, 3, ""},
        {"opt-fp16", 1, 1, ""},
        {"t5-v1_1", 2, 2, ""},
        {"bert-seqcls", 2, 1, ""},
        {"vit", 1, 1, ""},
        {"maml-cnn", 2, 2, ""},
        {"llama", 2, 2,
         "parallel.sharding_rules=[{match: '.*', spec: [~, mp]}, {match: '.*norm.*', spec: [mp]}]"}}) {
    Words words = {"verify",         fixture(c.model),        "--ranks", std::to_string(c.ranks),
                   "--model-shards", std::to_string(c.shards)};
    if (*c.rules) words.push_back(c.rules);
    const Ran r = good(words);
    EXPECT_THAT(r.out, HasSubstr("passed")) << c.model;
    EXPECT_THAT(r.out, HasSubstr("loss")) << c.model;
  }
  const json j = json::parse(good({"verify", fixture("gpt2"), "--ranks", "2", "--json"}).out);
  EXPECT_EQ(j["passed"], true);
  EXPECT_GT(j["tensors"].size(), 50u);
  for (const json& t : j["tensors"])
    if (t["checked"] == true)
      EXPECT_LE(t["difference"].get<double>(), t["tolerance"].get<double>()) << t["name"];
}

TEST_F(Verify, AWrongWeightFails) {
  std::filesystem::copy(fixture("gpt2"), path("wrong"), std::filesystem::copy_options::recursive);
  std::string weights = read("wrong/model.safetensors");
  weights[weights.size() / 2 | 3] ^= 0x41;  // the top byte of some weight
  write("wrong/model.safetensors", weights);
  const Ran r = run({"verify", "wrong", "--json"});
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_EQ(json::parse(r.out)["passed"], false);
  EXPECT_EQ(lines_with(r.err, "error"), 0);
  EXPECT_EQ(run({"verify", "wrong", "--ranks", "2"}).code, 1);
}

TEST_F(Verify, ReportsTheNumberOfIgnoredPositions) {
  EXPECT_EQ(
      lines_with(good({"verify", fixture("gpt2")}).out, "8 of 42 positions left out: attention_mask is 0"),
      4);
  const json j = json::parse(good({"verify", fixture("bart"), "--json"}).out);
  for (const json& t : j["tensors"])
    if (t["name"].get<std::string>().starts_with("encoder_hidden.")) {
      EXPECT_EQ(t.value("mask", ""), "attention_mask");
      EXPECT_EQ(t.value("positions", 0), 36);
      EXPECT_EQ(t.value("positions_left_out", 0), 8);
    }
}

TEST_F(Verify, StrictFailsOnATensorThatIsNotChecked) {
  EditedTensors expected(fixture("gpt2") + "/expected.safetensors");
  expected.rename("hidden.1", "hiden.1");
  expected.save(path("expected.safetensors"));
  std::filesystem::copy(fixture("gpt2") + "/tolerances.json", path("tolerances.json"));
  EXPECT_EQ(run({"verify", fixture("gpt2"), "--strict"}).code, 0);
  Words words = {"verify", fixture("gpt2"), path("expected.safetensors")};
  EXPECT_THAT(good(words).out, HasSubstr("1 not checked\n"));
  words.push_back("--strict");
  const Ran r = run(words);
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("hiden.1"), HasSubstr("1 not checked, which --strict does not allow")));
  words.insert(words.end(), {"--json", "--ranks", "2"});
  const Ran two = run(words);
  EXPECT_EQ(two.code, 1) << two.err;
  const json j = json::parse(two.out);
  EXPECT_EQ(j["passed"], false);
  EXPECT_EQ(j["strict"], true);
  EXPECT_EQ(j["not_checked"], 1);
}

TEST_F(Verify, BadArguments) {
  refused({"verify", "nowhere"}, 2, {"nowhere"});
  refused({"verify", fixture("gpt2"), "nowhere.safetensors"}, 2, {"nowhere.safetensors"});
  refused({"verify", fixture("gpt2"), "--ranks", "3", "--model-shards", "2"}, 2,
          {"--ranks=3", "--model-shards=2"});
  refused({"verify", fixture("gpt2"), "--ranks", "0"}, 2, {"--ranks", "0"});
  refused({"verify", fixture("gpt2"), "model.n_hed=3"}, 2, {"n_hed"});
  refused({"verify", fixture("gpt2"), "parallel.sharding_rules=[{match: '(', spec: [mp, ~]}]"}, 2, {"("});
}

}  // namespace
}  // namespace redco::test
